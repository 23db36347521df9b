"""What was trained here on its way to a bundle: checkpoints as what is exported, their graphs, their card.

A card has the commands that train a model again. A Transformer's graphs are written from its arrays, as those
of models from elsewhere are; the other families and ensembles are traced.
"""

import dataclasses
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import onnx_ir as ir
import torch
from torch import Tensor, nn

from dragoman_export.bundle_files import recipe_files, recipe_toml
from dragoman_export.graphs.builder import Graphs
from dragoman_export.graphs.trace import trace
from dragoman_export.model import NOT_STATED, Card, ExportedModel, Subject
from dragoman_export.parity.torch_reference import TorchReference
from dragoman_export.reference.imported import AlignmentHead, Floats, Imported, Name, TransformerArchitecture
from dragoman_training.checkpoint import Checkpoint, as_one, decoding_of, path_tail, provenances
from dragoman_training.markdown import enumeration
from dragoman_training.models import LanguageModelConfig, Seq2Seq, Transformer
from dragoman_training.recipe.data import DataConfig


@dataclass(frozen=True)
class TrainedModel(ExportedModel):
    """A model in PyTorch, in evaluation mode."""

    model: Seq2Seq
    bos: int
    """Target token that begins every sentence."""
    reference_name = "the model in PyTorch"

    @cached_property
    def imported(self) -> Imported | None:  # type: ignore[override]
        return arrays_of(self.model, self.bos) if isinstance(self.model, Transformer) else None

    def reference(self) -> TorchReference:
        return TorchReference(self.model, self.bos)

    def graphs(self, *, dtype: ir.DataType = ir.DataType.FLOAT, for_cpu: bool = False) -> Graphs:
        if self.imported is not None:
            return super().graphs(dtype=dtype, for_cpu=for_cpu)
        return trace(self.model, dtype=torch.float16 if (dtype == ir.DataType.FLOAT16) else torch.float32)


def subject_of(members: Sequence[Checkpoint]) -> Subject:
    """A checkpoint, or several as an ensemble, as what is exported.

    An ensemble is decoded and described by the recipe of its first member, but owes what each of them owes. A
    language model goes on in the language that it is given. Raises ValueError for one that was never trained.
    """
    if not all(member.progress for member in members):
        raise ValueError(
            "a checkpoint that `dragoman adapt` begins with is a bundle's weights and has no training of its "
            "own: export best.safetensors of that folder"
        )
    first = members[0]
    return Subject(
        model=TrainedModel(as_one(members), first.target_tokenizer.bos_id),
        sizes=tuple(dataclasses.asdict(member.recipe.model) for member in members),
        parameters=sum(parameter.numel() for member in members for parameter in member.model.parameters()),
        source_tokenizer=first.source_tokenizer,
        target_tokenizer=first.target_tokenizer,
        source_language=first.recipe.data.source_language or first.recipe.data.target_language,
        target_language=first.recipe.data.target_language,
        continues=isinstance(first.recipe.model, LanguageModelConfig),
        decoding=decoding_of(members),
        card=_card_of(members),
        training=training_text(members),
        recipes=tuple(recipe_toml(member.recipe) for member in members),
    )


def _card_of(members: Sequence[Checkpoint]) -> Card:
    """The first one's, with the data, licences and credits of everybody and of what they were begun with."""
    owed = [provenance for member in members for provenance in provenances(member.recipe, member.progress)]
    everything = {
        key: "; ".join(dict.fromkeys(getattr(provenance, key) or NOT_STATED for provenance in owed))
        for key in ("data", "licence", "credit")
    }
    stated = {key: "" if value == NOT_STATED else value for key, value in everything.items()}
    return Card(description=members[0].recipe.card.description, **stated)


def arrays_of(model: Transformer, bos: int) -> Imported:
    """A Transformer's architecture, and its weights uncopied; what is tied is one array."""
    config, head = model.config, model.alignment_head
    tensors: dict[str, Tensor] = dict(model.named_parameters(remove_duplicate=False))
    tensors |= {
        Name.SOURCE: model.source_embedding.weight,
        Name.TARGET: model.target_embedding.weight,
        Name.OUTPUT: model.output.embedding.weight,
        Name.BIAS: model.output.bias,
        Name.POSITIONS: model.positions.table_LD,
        Name.TARGET_POSITIONS: (model.target_positions or model.positions).table_LD,
    }
    arrays: dict[int, Floats] = {id(tensor): tensor.detach().numpy() for tensor in tensors.values()}
    (norm_epsilon,) = {module.eps for module in model.modules() if isinstance(module, nn.LayerNorm)}
    return Imported(
        architecture=TransformerArchitecture(
            width=config.width,
            heads=config.heads,
            feed_forward=config.feed_forward,
            encoder_layers=config.encoder_layers,
            decoder_layers=config.decoder_layers,
            past=config.past,
            norm=config.norm,
            activation=config.activation,
            embedding_scale=model.embedding_scale,
            norm_epsilon=norm_epsilon,
            alignment_head=None if head is None else AlignmentHead(layer=head.layer, head=head.head),
            bos=bos,
            never_produced=tuple(np.flatnonzero(model.output.never.numpy()).tolist()),
        ),
        weights={name: arrays[id(tensor)] for name, tensor in tensors.items()},
    )


ENSEMBLE = """An ensemble: in each step the normalised geometric mean of what its members say, trained apart.

"""


AGAIN = "this trains and exports the model again"
AGAIN_IF_ENDED = "this trains and exports the model again, provided that its training went to its end"
ALIKE = "this trains and exports one like it, though not the same"


def training_text(members: Sequence[Checkpoint]) -> str:
    """The card's part on training, in Markdown; `{export}` stands for the options of the export."""
    paragraphs, commands, checkpoints, promises = [], [], [], {AGAIN}
    for number, (file, member) in enumerate(zip(recipe_files(members), members, strict=True), start=1):
        progress, name = member.progress, member.recipe.name
        # Each run calls its best one the same: the run's folder tells them apart.
        run = f"runs/{name}" if len(members) == 1 else f"runs/{name}-{number}"
        paragraphs.append(f"- {_description(member)}; `{file}` holds every setting.")
        processes = _num_processes(progress)
        spread = f"torchrun --nproc-per-node {processes} -m dragoman_training"
        train = "dragoman train" if processes == 1 else spread
        commands.append(_lines(f"{train} {file} --out {run}", *_options(member)))
        checkpoint_file = _kept_as(member)
        promises.add({None: ALIKE, "best.safetensors": AGAIN_IF_ENDED}.get(checkpoint_file, AGAIN))
        averaged = progress.get("averaged")
        if averaged and len(averaged) <= member.recipe.training.keep_validated:
            checkpoint_file = "average.safetensors"
            out = f"--out {run}/{checkpoint_file}"
            commands.append(_lines("dragoman average", f"{run}/step-*.safetensors", out))
        checkpoints.append(f"{run}/{checkpoint_file or 'best.safetensors'}")
    commands.append(_lines(f"dragoman export {' '.join(checkpoints)}", "{export} --force"))
    promise = next(candidate for candidate in (ALIKE, AGAIN_IF_ENDED, AGAIN) if candidate in promises)
    begun = any(member.recipe.training.start_from for member in members)
    needed = "the data, and the checkpoint that training began with," if begun else "the data"
    return f"""{ENSEMBLE if len(members) > 1 else ""}{chr(10).join(paragraphs)}

With {needed} in a folder whose full path is `$DATA`, {promise}:

```
{chr(10).join(commands)}
```"""


def _description(member: Checkpoint) -> str:
    progress, start = member.progress, member.recipe.training.start_from
    averaged = progress.get("averaged")
    minutes = progress["seconds"] / 60
    return "".join(
        [
            f"{progress['step']:,} steps in {minutes:.{1 if minutes % 1 and minutes < 10 else 0}f} minutes",
            f" by {processes} processes" if (processes := _num_processes(progress)) > 1 else "",
            f", begun with the checkpoint {path_tail(start, 2)}" if start else "",
            f", the mean of the models after {enumeration([f'{step:,}' for step in averaged])} steps"
            if averaged
            else "",
        ]
    )


def _kept_as(member: Checkpoint) -> str | None:
    """The file in which the same training keeps this model; None where it may not come to it."""
    progress, config = member.progress, member.recipe.training
    if config.max_minutes or progress.get("changed"):
        return None  # How many steps that is, the machine decides; and no run in one stretch has both ways.
    if progress.get("device") != "cpu" or not progress.get("precision"):
        return None  # Numbers are the same again on CPUs, and in the precision that it was.
    if progress.get("averaged"):
        return None  # The same training keeps the last ones, and whether these are is not known.
    if progress.get("best_step") in (None, progress["step"]):
        return "best.safetensors"  # Of which nobody knows, while it is written, whether it stays the best.
    is_over = progress["epoch"] >= config.max_epochs or 0 < config.patience <= progress["stale"]
    return "last.safetensors" if is_over else None


def _num_processes(progress: Mapping[str, Any]) -> int:
    return progress.get("processes") or 1


def _options(member: Checkpoint) -> list[str]:
    """The options of `dragoman train` that say where each of a recipe's files is now, and what "auto" was.
    With data so named, training takes nothing of the card from the recipe."""
    recipe = member.recipe
    options = _data_options(recipe.data)
    options += [
        f"--set {shlex.quote(f'card.{key}={json.dumps(value, ensure_ascii=False)}')}"
        for key, value in dataclasses.asdict(recipe.card).items()
        if value and options
    ]
    if start := recipe.training.start_from:
        options.append(f'--set "training.start_from=$DATA/{path_tail(start, 2)}"')
    if recipe.training.precision == "auto" and (precision := member.progress.get("precision")):
        options.append(f"--set training.precision={precision}")
    return options


def _data_options(data: DataConfig) -> list[str]:
    options = []
    for field in dataclasses.fields(data):
        value = getattr(data, field.name)
        # Numbers that go with the files are in the recipe.
        if isinstance(value, tuple) and value and isinstance(value[0], str):
            are_told_apart = len({path_tail(path, 1) for path in value}) == len(value)
            paths = [f"$DATA/{path_tail(path, 1 if are_told_apart else 2)}" for path in value]
            files = paths[0] if len(paths) == 1 else "[" + ", ".join(f"'{path}'" for path in paths) + "]"
            options.append(f'--set "data.{field.name}={files}"')
    return options


def _lines(*parts: str) -> str:
    return " \\\n  ".join(parts)
