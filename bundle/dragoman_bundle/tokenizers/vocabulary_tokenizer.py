"""A tokenizer whose ids are not the sentencepiece model's own, but those of a vocabulary beside it.

So it is with models trained by Marian: a model for each side cuts text to pieces, and one vocabulary, or one
for each side, numbers them.
"""

import copy
import json
from collections.abc import Sequence

from dragoman_bundle.manifest import SpecialIds
from dragoman_bundle.tokenizers.tokenizer import TokenizedText, Tokenizer

SPACE = "▁"
"""Stands for a space in a piece."""


class VocabularyTokenizer(Tokenizer):
    """A sentencepiece model, and a vocabulary that gives each piece its id.

    A text may begin with a token such as `>>fra<<`, which tells some models the language to translate to.
    What the vocabulary lacks is no such token but text, for `>>` and `<<` are quotation marks too; to
    transformers' MarianTokenizer all up to the `<<` is one unknown token. With a `language_token` of its own,
    the tokenizer begins every text with that one which has none.
    """

    def __init__(
        self,
        model: bytes,
        vocabulary: bytes,
        *,
        size: int,
        ids: SpecialIds,
        language_token: str | None = None,
    ) -> None:
        """Takes a serialised sentencepiece model and a JSON object with the id of each piece.

        `size` is the number of ids, of which not all need to have a piece. Raises ValueError where the model
        is none, or the vocabulary is not of this form, has an id twice, has one that is not below `size`, or
        lacks the language token.
        """
        super().__init__(model)
        self.vocabulary = vocabulary
        self._id_of = _read(vocabulary)
        self._piece_of = [""] * size
        for piece, id_ in self._id_of.items():
            if not 0 <= id_ < size:
                raise ValueError(f"piece {piece!r} has the id {id_}; there are {size}, from 0 on")
            if self._piece_of[id_]:
                raise ValueError(f"pieces {self._piece_of[id_]!r} and {piece!r} both have the id {id_}")
            self._piece_of[id_] = piece
        for name, special in (("pad", ids.pad), ("unk", ids.unk), ("bos", ids.bos), ("eos", ids.eos)):
            if not 0 <= special < size:
                raise ValueError(f"the {name} id is {special}; there are {size}, from 0 on")
        self.vocabulary_size = size
        self.pad_id, self.unk_id, self.bos_id, self.eos_id = ids.pad, ids.unk, ids.bos, ids.eos
        self._check_language_token(language_token)
        self.language_token = language_token

    def beginning_with(self, language_token: str) -> "VocabularyTokenizer":
        """The same with another language token. Raises ValueError where the vocabulary lacks it."""
        self._check_language_token(language_token)
        other = copy.copy(self)
        other.language_token = language_token
        return other

    def lengthened(self, size: int) -> "VocabularyTokenizer":
        """The same with so many ids, of which those that it has not have no piece."""
        other = copy.copy(self)
        other._piece_of = [*self._piece_of, *[""] * (size - self.vocabulary_size)]
        other.vocabulary_size = size
        return other

    def _check_language_token(self, language_token: str | None) -> None:
        if language_token is not None and language_token not in self._id_of:
            known = sorted(piece for piece in self._id_of if piece.startswith(">>") and piece.endswith("<<"))
            has = ", ".join(known) or "none"
            raise ValueError(f"the vocabulary has no language token {language_token!r}; it has {has}")

    def encode(self, text: str) -> TokenizedText:
        """Tokenizes one sentence. Pieces that the vocabulary lacks become unknown tokens."""
        code, rest = self._split_code(text)
        mapping = self._processor.encode(rest, return_type="offset_mapping", return_bytes=False)
        spans = [(start + len(code), end + len(code)) for start, end in mapping["offsets"]]
        ids = self._ids(code, mapping["pieces"])
        # The tokenizer's own language token covers nothing of the text.
        first = [(0, len(code))] if len(ids) > len(spans) else []
        return TokenizedText(text=text, ids=ids, spans=[*first, *spans])

    def encode_ids(self, texts: Sequence[str], *, num_threads: int = -1) -> list[list[int]]:
        parts = [self._split_code(text) for text in texts]
        cut = self._encode_all([rest for _, rest in parts], str, num_threads)
        return [self._ids(code, pieces) for (code, _), pieces in zip(parts, cut, strict=True)]

    def decode_text(self, ids: Sequence[int]) -> str:
        text: str = self._processor.decode([self._piece_of[id_] for id_ in ids])
        # A piece of the other side's model passes through as it is.
        return text.replace(SPACE, " ")

    def decode(self, ids: Sequence[int]) -> TokenizedText:
        pieces = [self._piece_of[id_] for id_ in ids]
        mapping = self._processor.decode(pieces, return_type="offset_mapping", return_bytes=False)
        # A piece of the other side's model passes through as it is.
        shown = mapping["text"].replace(SPACE, " ")
        return TokenizedText(text=shown, ids=list(ids), spans=mapping["offsets"])

    def piece(self, id_: int) -> str:
        return self._piece_of[id_]

    def id_of(self, piece: str) -> int | None:
        return self._id_of.get(piece)

    def has_vocabulary_of(self, other: Tokenizer) -> bool:
        """Whether both number pieces alike, whatever cuts their text."""
        return isinstance(other, VocabularyTokenizer) and self.vocabulary == other.vocabulary

    def _ids(self, code: str, pieces: Sequence[str]) -> list[int]:
        """The ids of the text's language token and of its pieces; nothing where there is neither."""
        if not code and pieces and self.language_token is not None:
            code = self.language_token
        return [self._id_of.get(piece, self.unk_id) for piece in ((code, *pieces) if code else pieces)]

    def _split_code(self, text: str) -> tuple[str, str]:
        """The language token that a text begins with, or nothing, and what follows."""
        name, mark, rest = text.partition("<<")
        is_code = text.startswith(">>") and mark and name + mark in self._id_of
        return (name + mark, rest) if is_code else ("", text)


def _read(vocabulary: bytes) -> dict[str, int]:
    try:
        ids = json.loads(vocabulary)
    except ValueError as error:
        raise ValueError(f"the vocabulary is not valid JSON: {error}") from error
    if not isinstance(ids, dict) or not all(type(id_) is int for id_ in ids.values()):
        raise ValueError("the vocabulary must be a JSON object with a whole number for each piece")
    return ids
