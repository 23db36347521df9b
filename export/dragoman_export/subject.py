"""What is exported, wherever it is from: a model with its tokenizers, and what its bundle says of it."""

import dataclasses
from dataclasses import dataclass
from pathlib import PurePath

from dragoman_bundle.tokenizer import Tokenizer
from dragoman_training.checkpoint import Checkpoint
from dragoman_training.models import ModelConfig, Seq2Seq
from dragoman_training.recipe import CardConfig, DataConfig, DecodingConfig, Recipe


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A model on its way to a bundle."""

    model: Seq2Seq
    """In evaluation mode."""
    config: ModelConfig
    """Its family and sizes."""
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    """The same object where the vocabulary is shared."""
    source_language: str
    """BCP 47 code."""
    target_language: str
    """BCP 47 code."""
    decoding: DecodingConfig
    """Decoding defaults."""
    card: CardConfig
    """What the card says that numbers don't."""
    training: str
    """What the card says under "Training", in Markdown; `{export}` stands for the options of its export."""
    recipe: Recipe | None
    """How it was trained, where that was here."""


def subject_of(checkpoint: Checkpoint) -> Subject:
    """A checkpoint as what is exported. Raises ValueError for a language model."""
    recipe, progress = checkpoint.recipe, checkpoint.progress
    if not recipe.data.has_source:
        raise ValueError(
            f'"{recipe.name}" is a language model, which can\'t be exported: a bundle translates. '
            "`dragoman evaluate --checkpoint` measures it"
        )
    return Subject(
        model=checkpoint.model,
        config=recipe.model,
        source_tokenizer=checkpoint.source_tokenizer,
        target_tokenizer=checkpoint.target_tokenizer,
        source_language=recipe.data.source_language,
        target_language=recipe.data.target_language,
        decoding=recipe.decoding,
        card=recipe.card,
        training=f"""{progress["step"]:,} steps in {progress["seconds"] / 60:.0f} minutes. \
`recipe.toml` holds every setting.
With the data in a folder whose full path is `$DATA`, this trains and exports the model again:

```
{_lines("dragoman train recipe.toml", *_data_options(recipe.data))}
dragoman export runs/{recipe.name}/best.safetensors \\
  {{export}} --force
```""",
        recipe=recipe,
    )


def _data_options(data: DataConfig) -> list[str]:
    """The options of `dragoman train` that say where each of a recipe's files is now."""
    options = []
    for field in dataclasses.fields(data):
        value = getattr(data, field.name)
        if isinstance(value, tuple) and value:
            paths = [f"$DATA/{PurePath(path).name}" for path in value]
            told = paths[0] if len(paths) == 1 else "[" + ", ".join(f"'{path}'" for path in paths) + "]"
            options.append(f'--set "data.{field.name}={told}"')
    return options


def _lines(*parts: str) -> str:
    return " \\\n  ".join(parts)
