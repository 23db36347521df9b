"""Reads a model of Marian's own formats, `.npz` and Firefox's `.bin`, as what is exported.

Owns the names of the files beside each other, parameters, vocabularies and how it decodes, as releases of
OPUS-MT, Firefox and Marian's own training have them; and vocabularies: sentencepiece's own, or YAML beside a
model of sentencepiece's.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from dragoman_bundle.manifest import SpecialIds
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from dragoman_bundle.tokenizers.vocabulary_tokenizer import VocabularyTokenizer

from dragoman_export.importers.files import FormatError
from dragoman_export.importers.marian_items import read_items
from dragoman_export.importers.marian_model import read_model
from dragoman_export.importers.marian_settings import read_options, read_settings
from dragoman_export.importers.reading import Reading
from dragoman_export.importers.subjects import (
    BEAM_SIZE,
    Origin,
    foreign_subject,
    languages_of_pair,
    numbered_tokenizer,
    starting_with,
)
from dragoman_export.model import Subject
from dragoman_export.reference.imported import Name

Options = Mapping[str, Any]
DECODER = "decoder.yml"
_MODELS = ("*.npz", "*.bin")
_NO_MODEL = re.compile(r"^(lex|vocab|srcvocab|trgvocab)\.|optimizer|\.s2t\.")
_PAIR = re.compile(r"\.([a-z]{2})([a-z]{2})\.")
"""Languages in a name of Firefox's files, as in `model.deen.intgemm.alphas.bin`."""
_SHARED = ("vocab.spm", "vocabulary.spm", "vocab.*.spm", "*.vocab.yml", "vocab.yml", "vocab.*.yml")
_SEPARATE = (
    ("srcvocab.*.spm", "trgvocab.*.spm"),
    ("vocab.src.*", "vocab.trg.*"),
    ("*.src.vocab.yml", "*.trg.vocab.yml"),
)


def _find_model(folder: Path, decoder: Options) -> Path:
    named = [folder / Path(str(name)).name for name in decoder.get("models") or ()]
    there = [each for pattern in _MODELS for each in sorted(folder.glob(pattern))]
    found = named or [each for each in there if not _NO_MODEL.search(each.name)]
    if len(found) != 1:
        names = ", ".join(each.name for each in found)
        several = f"{len(found)} models of Marian's: {names or '*.npz, *.bin'}"
        kind = f"an ensemble of {names}" if named else several
        raise FormatError(f"{folder} has {kind}; one is imported: give its file")
    return found[0]


def _find_vocabularies(folder: Path, model: Path, decoder: Options, given: Reading) -> tuple[Path, Path]:
    named = [folder / Path(str(name)).name for name in decoder.get("vocabs") or ()]
    if len(named) == 2 and all(each.is_file() for each in named):
        return named[0], named[1]
    pair = _PAIR.search(model.name)
    for patterns in _SEPARATE:
        first, second = (_one(folder, pattern, pair) for pattern in patterns)
        if first is not None and second is not None:
            return first, second
    for pattern in _SHARED:
        shared = _one(folder, pattern, pair)
        if shared is not None:
            return shared, shared
    if given.source_tokenizer is not None:
        return given.source_tokenizer, given.target_tokenizer or given.source_tokenizer
    raise FormatError(
        f"{folder} has no vocabulary, as vocab.spm or vocab.yml for both sides; give those of {model.name} "
        "with --source-tokenizer and --target-tokenizer"
    )


def _one(folder: Path, pattern: str, pair: Sequence[str] | re.Match[str] | None) -> Path | None:
    """The only file of that name, or of several the one of the same pair of languages."""
    found = sorted(folder.glob(pattern))
    if len(found) > 1 and pair is not None:
        found = [each for each in found if pair[0] in each.name]
    return found[0] if len(found) == 1 else None


GREEDY = 1
"""Hypotheses of a `.bin`, whose models are trained to be decoded so, where no decoder.yml says it."""
DIFFERENCES = """\
- There a hypothesis' log-probability is divided by length^a; here by ((5 + length) / 6)^a (Wu et al. 2016,
  equation 14), with the same a.
- There a beam grows narrower by each hypothesis that has ended; here it stays as wide until so many have."""


def load_marian(path: Path, given: Reading = Reading()) -> Subject:
    """The model in an `.npz` or a `.bin`, or in a folder that has one, with its vocabularies.

    Languages that are not given are those of the file's name, as Firefox's have them. Raises FormatError
    where it is no model of Marian's, is not whole, or has what is not known here. Tokenizers are vocabularies
    or what cuts text for those that are found.
    """
    folder = path if path.is_dir() else path.parent
    is_told = (folder / DECODER).is_file()
    decoder = read_options((folder / DECODER).read_bytes(), str(folder / DECODER)) if is_told else {}
    model = path if path.is_file() else _find_model(folder, decoder)
    files = _find_vocabularies(folder, model, decoder, given)
    beside = [folder / f"{side}.spm" for side in ("source", "target")]
    found = [each if each.is_file() else None for each in beside]
    named = _PAIR.search(model.name) or (None, None, None)
    pair = languages_of_pair(model, given.source_language or named[1], given.target_language or named[2])
    items = read_items(model)
    read = read_model(items, read_settings(model, items.configuration))
    source = read_vocabulary(files[0], given.source_tokenizer or found[0])
    target = read_vocabulary(files[1], given.target_tokenizer or given.source_tokenizer or found[1])
    pieces = {name: len(read.weights[name]) for name in (Name.SOURCE, Name.TARGET)}
    is_shared = read.weights[Name.SOURCE] is read.weights[Name.TARGET]
    # Marian begins translations with zeros: what has these as its embedding is one token more.
    bos = pieces[Name.TARGET]
    imported = starting_with(read, bos, never_produced=(bos,), barred=target.barred)
    source_size, target_size = (len(imported.weights[name]) for name in (Name.SOURCE, Name.TARGET))
    target_tokens = target.tokenizer(pieces=bos, size=target_size, bos=bos)
    is_one = is_shared and files[0] == files[1] and source.model == target.model
    # A source has no beginning: any of its tokens does.
    source_bos = bos if is_shared else source.ids[END]
    source_tokens = target_tokens
    if not is_one:
        source_tokens = source.tokenizer(pieces=pieces[Name.SOURCE], size=source_size, bos=source_bos)
    origin = Origin(
        name=model.name,
        kind="A model of Marian's",
        options=given.options,
        program="Marian",
        differences=DIFFERENCES,
    )
    beam_size = GREEDY if model.suffix == ".bin" else BEAM_SIZE
    return foreign_subject(
        imported,
        origin,
        tokenizers=(source_tokens, target_tokens),
        pair=pair,
        beam_size=int(decoder.get("beam-size", beam_size)),
        length_penalty=float(decoder.get("normalize", 0)),
    )


END, UNKNOWN = "</s>", "<unk>"
_CONTROL = tuple(f"<0x{code:02X}>" for code in range(32))
"""Pieces of single bytes that are part of no character; Marian says none of them."""


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """The pieces of one side, and what cuts text into them."""

    path: Path
    """The path of the file that numbers the pieces."""
    model: bytes
    ids: Mapping[str, int]

    @property
    def barred(self) -> tuple[int, ...]:
        """The pieces that Marian keeps out of translations."""
        return tuple(self.ids[piece] for piece in (UNKNOWN, *_CONTROL) if piece in self.ids)

    def tokenizer(self, *, pieces: int, size: int, bos: int) -> VocabularyTokenizer:
        """The tokenizer of a model with embeddings for so many pieces, `size` with what was added.

        Raises FormatError where the vocabulary is another model's.
        """
        if not pieces >= len(self.ids) > pieces // 2:
            raise FormatError(
                f"{self.path} is not of this model: it has {len(self.ids)} pieces, and the model {pieces} "
                "embeddings"
            )
        # There is no padding in Marian: what begins a translation stands in.
        special = SpecialIds(pad=bos, unk=self.ids[UNKNOWN], bos=bos, eos=self.ids[END])
        return numbered_tokenizer(self.path, self.model, self.ids, size=size, special=special)


def read_vocabulary(path: Path, cutter: Path | None = None) -> Vocabulary:
    """The vocabulary in a file of sentencepiece's, or of YAML, which needs a `cutter` of sentencepiece's.

    Raises FormatError.
    """
    is_yaml = path.suffix in (".yml", ".yaml", ".json")
    if is_yaml and cutter is None:
        raise FormatError(
            f"{path} numbers pieces, and nothing tells what cuts text into them: give sentencepiece models "
            "with --source-tokenizer and --target-tokenizer, or put them beside as source.spm and target.spm"
        )
    model_path = cutter if cutter is not None and is_yaml else path
    try:
        content, model = path.read_bytes(), model_path.read_bytes()
        tokenizer = Tokenizer(model)
    except OSError as error:
        raise FormatError(f"{error.filename} can't be read: {error.strerror}") from error
    except ValueError as error:
        raise FormatError(f"{model_path}: {error}") from error
    own_ids = {tokenizer.piece(id_): id_ for id_ in range(tokenizer.vocabulary_size)}
    ids = _read_yaml(path, content) if is_yaml else own_ids
    for piece in (END, UNKNOWN):
        if piece not in ids:
            raise FormatError(f"{path} has no {piece}, which Marian's vocabularies have")
    return Vocabulary(path=path, model=model, ids=ids)


def _read_yaml(path: Path, content: bytes) -> dict[str, int]:
    """A piece and its number on each line, in YAML or JSON."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        pieces = yaml.load(content, loader)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise FormatError(f"{path} is no YAML: {error}") from error
    if not isinstance(pieces, dict) or not all(type(id_) is int for id_ in pieces.values()):
        raise FormatError(f"{path} is no YAML with a number for each piece")
    # Numbers, "no" and the like are pieces too.
    if not all(isinstance(piece, str) for piece in pieces):
        pieces = yaml.load(content, yaml.BaseLoader)
    return {piece: int(id_) for piece, id_ in pieces.items()}
