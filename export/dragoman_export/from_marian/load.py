"""Reads a model of Marian's as what is exported."""

import shlex
from dataclasses import replace
from pathlib import Path

from dragoman_bundle.decoding import DecodingDefaults

from dragoman_export.foreign.given import command_line
from dragoman_export.foreign.weights import starting_with
from dragoman_export.from_marian.errors import MarianFileError
from dragoman_export.from_marian.files import Files, find_files
from dragoman_export.from_marian.items import read_items
from dragoman_export.from_marian.s2s import read_s2s
from dragoman_export.from_marian.settings import TransformerSettings, read_settings
from dragoman_export.from_marian.transformer import read_transformer
from dragoman_export.from_marian.vocabularies import Vocabulary, read_vocabulary
from dragoman_export.model import ImportedModel
from dragoman_export.reference.imported import SOURCE, TARGET, Imported
from dragoman_export.subject import Card, Subject

MAX_TOKENS = 512
"""Most tokens of a sentence: none are trained on longer ones."""
BEAM_SIZE, GREEDY = 4, 1
"""Where no decoder.yml says it: of `.npz`, and of `.bin`, whose models are trained to be decoded greedily."""
MAX_OUTPUT_RATIO, MAX_OUTPUT_MARGIN = 3.0, 30
DIFFERENCES = """\
- There a hypothesis' log-probability is divided by length^a; here by ((5 + length) / 6)^a (Wu et al. 2016,
  equation 14), with the same a.
- There a beam grows narrower by each hypothesis that has ended; here it stays as wide until so many have."""


def import_marian(
    path: Path,
    *,
    source_language: str | None = None,
    target_language: str | None = None,
    source_tokenizer: Path | None = None,
    target_tokenizer: Path | None = None,
) -> Subject:
    """The model in an `.npz` or a `.bin`, or in a folder that has one, with its vocabularies.

    Languages that are not given are those of the file's name, as Firefox's have them. Raises MarianFileError
    where it is no model of Marian's, is not whole, or has what is not known here.
    """
    files = find_files(path, source_tokenizer, target_tokenizer)
    languages = _languages(files, source_language, target_language)
    items = read_items(files.model)
    settings = read_settings(files.model, items.configuration)
    if isinstance(settings, TransformerSettings):
        imported = read_transformer(items, settings, max_positions=MAX_TOKENS)
    else:
        imported = read_s2s(items, settings)
    source, target = (
        read_vocabulary(vocabulary, cutter)
        for vocabulary, cutter in zip(files.vocabularies, files.cutters, strict=True)
    )
    pieces = {name: len(imported.weights[name]) for name in (SOURCE, TARGET)}
    is_shared = imported.weights[SOURCE] is imported.weights[TARGET]
    imported = _starting_from_zero(imported, target)
    # A source has no beginning: any of its tokens does.
    source_size, source_bos = pieces[SOURCE] + is_shared, pieces[TARGET] if is_shared else source.end
    target_tokens = target.tokenizer(pieces=pieces[TARGET], size=pieces[TARGET] + 1, bos=pieces[TARGET])
    is_one = is_shared and files.vocabularies[0] == files.vocabularies[1] and source.model == target.model
    source_tokens = (
        target_tokens if is_one else source.tokenizer(pieces=pieces[SOURCE], size=source_size, bos=source_bos)
    )
    model, name = ImportedModel(imported), files.model.name
    is_greedy = files.model.suffix == ".bin"
    options = command_line(
        source_language=source_language,
        target_language=target_language,
        source_tokenizer=source_tokenizer,
        target_tokenizer=target_tokenizer,
    )
    return Subject(
        model=model,
        sizes=(model.sizes,),
        parameters=model.num_parameters,
        source_tokenizer=source_tokens,
        target_tokenizer=target_tokens,
        source_language=languages[0],
        target_language=languages[1],
        decoding=DecodingDefaults(
            beam_size=int(files.decoder.get("beam-size", GREEDY if is_greedy else BEAM_SIZE)),
            length_penalty=float(files.decoder.get("normalize", 0)),
            max_source_tokens=MAX_TOKENS,
            max_output_tokens=MAX_TOKENS,
            max_output_ratio=MAX_OUTPUT_RATIO,
            max_output_margin=MAX_OUTPUT_MARGIN,
        ),
        card=Card(
            description=f"A model of Marian's, {name}.",
            data=f"That of {name}: see where it comes from",
            credit=f"The makers of {name}",
        ),
        training=f"""Trained elsewhere. This gets {name} again:

```
dragoman get {shlex.quote(name)}{options} \\
  {{export}}
```

It may find another translation than Marian:

{DIFFERENCES}""",
    )


def _starting_from_zero(imported: Imported, target: Vocabulary) -> Imported:
    """The same with a token that begins translations, and whose embedding is 0, as Marian begins them."""
    architecture = imported.architecture
    imported = starting_with(imported, architecture.bos, never_produced=architecture.never_produced)
    return replace(imported, architecture=replace(imported.architecture, barred=target.barred))


def _languages(files: Files, source: str | None, target: str | None) -> tuple[str, str]:
    found = []
    for side, given, named in zip(
        ("source", "target"), (source, target), files.languages or (None, None), strict=True
    ):
        language = given or named
        if not language:
            raise MarianFileError(
                f"{files.model} does not say its {side} language; give it with --{side}-language"
            )
        found.append(language)
    return found[0], found[1]
