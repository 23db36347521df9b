"""A model from elsewhere as what is exported, and what its card says of where it is from.

Must not know how its files are read.
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dragoman_bundle.decoding import DecodingDefaults
from dragoman_bundle.tokenizers.tokenizer import Tokenizer

from dragoman_export.importers.files import FormatError
from dragoman_export.model import Card, ImportedModel, Subject
from dragoman_export.reference.imported import Imported

MAX_TOKENS = 512
"""Most tokens of a sentence, where the model has positions for more: none are trained on longer ones."""
BEAM_SIZE = 4
"""Where the files do not say."""
MAX_OUTPUT_RATIO, MAX_OUTPUT_MARGIN = 3.0, 30
"""No model from elsewhere has such a limit of its own; this one only ends what has gone astray."""


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where a model is from, as its card says it."""

    name: str
    """What the model is called there."""
    kind: str
    """What it is, with its article."""
    version: str = ""
    options: str = ""
    """Options of `dragoman get` that read it again, with a space before each."""
    data: str = "see where it comes from"
    """Where its training data are told of."""
    licence: str = ""
    program: str
    """What decodes it there."""
    differences: str
    """How that searches otherwise, as a list in Markdown."""

    def training(self) -> str:
        """The card's section on training."""
        return f"""Trained elsewhere. This exports {self.name} again:

```
dragoman get {shlex.quote(self.name)}{self.options} \\
  {{export}}
```

It may find another translation than {self.program}:

{self.differences}"""


def command_line(**given: str | Path | None) -> str:
    """The options that are given, by their names, with a space before each, as a card repeats them; of a file
    its name alone, as the folder that it was in is nobody else's.
    """
    texts = {name: value.name if isinstance(value, Path) else value for name, value in given.items()}
    return "".join(f" --{name.replace('_', '-')} {shlex.quote(text)}" for name, text in texts.items() if text)


def foreign_subject(
    imported: Imported,
    origin: Origin,
    *,
    tokenizers: tuple[Tokenizer, Tokenizer],
    pair: tuple[str, str],
    languages: Mapping[str, str] | None = None,
    source_end: bool = True,
    beam_size: int,
    length_penalty: float,
    max_source_tokens: int = MAX_TOKENS,
    max_output_tokens: int = MAX_TOKENS,
) -> Subject:
    """The model with the tokenizers and languages of source and target, and how it is decoded by default."""
    model = ImportedModel(imported)
    version = f", version {origin.version}" if origin.version else ""
    return Subject(
        model=model,
        sizes=(model.sizes,),
        parameters=model.num_parameters,
        source_tokenizer=tokenizers[0],
        target_tokenizer=tokenizers[1],
        source_language=pair[0],
        target_language=pair[1],
        languages=languages or {},
        source_end=source_end,
        decoding=DecodingDefaults(
            beam_size=beam_size,
            length_penalty=length_penalty,
            max_source_tokens=max_source_tokens,
            max_output_tokens=max_output_tokens,
            max_output_ratio=MAX_OUTPUT_RATIO,
            max_output_margin=MAX_OUTPUT_MARGIN,
        ),
        card=Card(
            description=f"{origin.kind}, {origin.name}{version}.",
            data=f"That of {origin.name}: {origin.data}",
            licence=origin.licence,
            credit=f"The makers of {origin.name}",
        ),
        training=origin.training(),
    )


def languages_of_pair(where: Path, source: str | None, target: str | None) -> tuple[str, str]:
    """The languages of both sides. Raises FormatError where nobody says one."""
    for side, language in (("source", source), ("target", target)):
        if not language:
            raise FormatError(f"{where} does not say its {side} language; give it with --{side}-language")
    return str(source), str(target)
