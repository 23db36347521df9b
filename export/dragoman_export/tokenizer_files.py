"""The files of a bundle that turn text into tokens and back."""

from dataclasses import dataclass
from pathlib import Path

from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from dragoman_bundle.tokenizers.vocabulary_tokenizer import VocabularyTokenizer


@dataclass(frozen=True, kw_only=True)
class TokenizerFiles:
    """Names of the files of both sides; both may be in one."""

    source: str
    target: str
    source_pieces: str | None
    """Where the pieces' ids are, if they are not the tokenizer's own."""
    target_pieces: str | None


def write_tokenizers(folder: Path, source: Tokenizer, target: Tokenizer) -> TokenizerFiles:
    """Writes what both sides need: one file where they are one tokenizer."""
    names = ("shared.spm", "shared.spm") if source is target else ("source.spm", "target.spm")
    for name, tokenizer in zip(names, (source, target), strict=True):
        (folder / name).write_bytes(tokenizer.model)
    source_pieces, target_pieces = _write_vocabularies(folder, source, target)
    return TokenizerFiles(
        source=names[0], target=names[1], source_pieces=source_pieces, target_pieces=target_pieces
    )


def _write_vocabularies(folder: Path, source: Tokenizer, target: Tokenizer) -> tuple[str | None, str | None]:
    """Writes the pieces' ids where they are not the tokenizers' own; returns the files of both sides."""
    if not isinstance(source, VocabularyTokenizer) or not isinstance(target, VocabularyTokenizer):
        return None, None
    same = source.vocabulary == target.vocabulary
    files = ("vocab.json", "vocab.json") if same else ("source.vocab.json", "target.vocab.json")
    for file, tokenizer in zip(files, (source, target), strict=True):
        (folder / file).write_bytes(tokenizer.vocabulary)
    return files
