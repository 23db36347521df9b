"""The vocabularies of a model of Marian's: sentencepiece's own, or YAML beside a model of sentencepiece's.

Must not know parameters.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml
from dragoman_bundle.manifest import SpecialIds
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from dragoman_bundle.tokenizers.vocabulary_tokenizer import VocabularyTokenizer

from dragoman_export.importers.files import FormatError

END, UNKNOWN = "</s>", "<unk>"
_CONTROL = tuple(f"<0x{code:02X}>" for code in range(32))
"""Pieces of single bytes that are part of no character; Marian says none of them."""


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """The pieces of one side, and what cuts text into them."""

    path: Path
    """Of the file that numbers the pieces."""
    model: bytes
    """A serialised sentencepiece model."""
    ids: Mapping[str, int]

    @property
    def end(self) -> int:
        """The piece that ends a sentence."""
        return self.ids[END]

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
        ids = SpecialIds(pad=bos, unk=self.ids[UNKNOWN], bos=bos, eos=self.end)
        vocabulary = json.dumps(dict(self.ids), ensure_ascii=False).encode()
        try:
            return VocabularyTokenizer(self.model, vocabulary, size=size, ids=ids)
        except ValueError as error:
            raise FormatError(f"{self.path}: {error}") from error


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
