"""What was trained here on its way to a bundle: checkpoints as what is exported, and their graphs.

A Transformer's graphs are written from its arrays, as those of models from elsewhere are; the other families
and ensembles are traced.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir
import torch
from torch import Tensor, nn

from dragoman_export.bundle_files import recipe_toml
from dragoman_export.card.training_text import training_text
from dragoman_export.graphs.builder import Graphs
from dragoman_export.graphs.trace import trace
from dragoman_export.graphs.transformer import takes_kernels, write_transformer
from dragoman_export.model import NOT_STATED, Card, ExportedModel, Subject
from dragoman_export.parity.torch_reference import TorchReference
from dragoman_export.reference.imported import (
    BIAS,
    OUTPUT,
    POSITIONS,
    SOURCE,
    TARGET,
    TARGET_POSITIONS,
    AlignmentHead,
    Floats,
    Imported,
    TransformerArchitecture,
)
from dragoman_training.checkpoint import Checkpoint, as_one, decoding_of, provenances
from dragoman_training.models import LanguageModelConfig, Seq2Seq, Transformer


@dataclass(frozen=True)
class TrainedModel(ExportedModel):
    """A model in PyTorch, in evaluation mode."""

    model: Seq2Seq
    bos: int
    """Target token that begins every sentence."""
    reference_name = "the model in PyTorch"

    @property
    def is_transformer(self) -> bool:
        return isinstance(self.model, Transformer)

    @property
    def takes_kernels(self) -> bool:
        return isinstance(self.model, Transformer) and takes_kernels(arrays_of(self.model, self.bos))

    def reference(self) -> TorchReference:
        return TorchReference(self.model, self.bos)

    def graphs(self, *, dtype: ir.DataType = ir.DataType.FLOAT, for_cpu: bool = False) -> Graphs:
        if isinstance(self.model, Transformer):
            return write_transformer(arrays_of(self.model, self.bos), dtype=dtype, for_cpu=for_cpu)
        is_half = dtype == ir.DataType.FLOAT16
        return trace(self.model, dtype=torch.float16 if is_half else torch.float32)


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
        SOURCE: model.source_embedding.weight,
        TARGET: model.target_embedding.weight,
        OUTPUT: model.output.embedding.weight,
        BIAS: model.output.bias,
        POSITIONS: model.positions.table_LD,
        TARGET_POSITIONS: (model.target_positions or model.positions).table_LD,
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
