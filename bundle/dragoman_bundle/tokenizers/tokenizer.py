"""Text to token ids and back, with the place of every token in the text; and tags before a text.

Owns the sentencepiece model of one side of a bundle. Must not know how ids are batched or decoded. A tag is a
character for private use that tells a model how to translate, a piece of its own in the vocabulary of one
that was trained with it. In a caller's text it is no tag: a server shows it to no tokenizer.
"""

import copy
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import sentencepiece

FORMAL = "\ue000"
"""Asks for formal address, such as German "Sie"."""
INFORMAL = "\ue001"
"""Asks for informal address, such as German "du"."""
MACHINE = "\ue002"
"""Marks a source that a machine translated (Caswell et al. 2019); for training alone."""
FIRST_TAG, LAST_TAG = "\ue000", "\ue00f"
"""Those that recipes may name."""


T = TypeVar("T", int, str)

MIN_TEXTS_FOR_THREADS = 100
"""Fewest texts that go to sentencepiece as a list: for each list it starts threads, as many as there are
cores, which takes as long as some fifty short texts."""


@dataclass(frozen=True, kw_only=True)
class TokenizedText:
    text: str
    """The text that the spans count in."""
    ids: list[int]
    """Token ids, without begin- or end-of-sentence."""
    spans: list[tuple[int, int]]
    """The half-open range of code points of `text` that each token covers; may be empty."""


class Tokenizer:
    """A sentencepiece model (Kudo and Richardson 2018) with its special ids."""

    def __init__(self, model: bytes) -> None:
        """Takes a serialised sentencepiece model. Raises ValueError where it is not one."""
        try:
            self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        except RuntimeError as error:
            raise ValueError(f"not a sentencepiece model: {error}") from error
        self.model = model
        self.vocabulary_size: int = self._processor.vocab_size()
        self.pad_id: int = self._processor.pad_id()
        self.unk_id: int = self._processor.unk_id()
        self.bos_id: int = self._processor.bos_id()
        self.eos_id: int = self._processor.eos_id()
        self._first: list[int] = []
        # Found once for all copies, of which a bundle of many languages makes one a request.
        self._unreadable_ids: list[frozenset[int]] = []

    @property
    def unreadable_ids(self) -> frozenset[int]:
        """The unknown token, and Latin letters such as "Š" that stand in no longer piece: a model has hardly
        seen these. Letters of Latin-1 stand in loan words, and other scripts have pieces of one letter.
        """
        if not self._unreadable_ids:
            self._unreadable_ids.append(self._find_unreadable())
        return self._unreadable_ids[0]

    def _find_unreadable(self) -> frozenset[int]:
        letters: dict[str, int] = {}
        in_words: set[str] = set()
        for id_ in range(self.vocabulary_size):
            piece = self.piece(id_).lstrip("▁")
            if len(piece) > 1:
                in_words.update(piece)
            elif piece > "\xff" and piece.isalpha() and unicodedata.name(piece, "").startswith("LATIN"):
                letters[piece] = id_
        return frozenset([self.unk_id, *(id_ for letter, id_ in letters.items() if letter not in in_words)])

    @classmethod
    def load(cls, path: Path) -> "Tokenizer":
        """Reads a `.spm` file. Raises OSError or ValueError."""
        return cls(path.read_bytes())

    def encode(self, text: str) -> TokenizedText:
        """Tokenizes one sentence. Characters the vocabulary lacks become unknown tokens."""
        mapping = self._processor.encode(text, return_type="offset_mapping", return_bytes=False)
        first = self._first if mapping["ids"] else []
        spans = [(0, 0)] * len(first) + mapping["offsets"]
        return TokenizedText(text=text, ids=[*first, *mapping["ids"]], spans=spans)

    def encode_ids(self, texts: Sequence[str], *, num_threads: int = -1) -> list[list[int]]:
        """Token ids of many sentences: the fast path, without spans.

        `num_threads` is how many sentencepiece starts for many texts; -1: as many as there are cores.
        """
        found = self._encode_all(texts, int, num_threads)
        return [[*self._first, *ids] if ids else [] for ids in found] if self._first else found

    def tagged(self, tag: str) -> "Tokenizer":
        """The tokenizer with a tag before every sentence, whose tokens cover nothing of it.

        Raises ValueError where the vocabulary has no such tag.
        """
        if self.id_of(tag) is None:
            raise ValueError(f"the vocabulary has no tag {tag!r}")
        tagged = copy.copy(self)
        tagged._first = self._processor.encode(tag, out_type=int)
        return tagged

    def decode_text(self, ids: Sequence[int]) -> str:
        """Joins tokens to a text: the fast path, without spans."""
        return str(self._processor.decode(list(ids)))

    def decode(self, ids: Sequence[int]) -> TokenizedText:
        """Joins tokens to a text."""
        mapping = self._processor.decode(list(ids), return_type="offset_mapping", return_bytes=False)
        return TokenizedText(text=mapping["text"], ids=list(ids), spans=mapping["offsets"])

    def piece(self, id_: int) -> str:
        """The token's surface, with `▁` for a space before it."""
        return str(self._processor.id_to_piece(id_))

    def id_of(self, piece: str) -> int | None:
        """The token of a piece, given as `piece` returns it; None where there is none."""
        id_: int = self._processor.piece_to_id(piece)
        return id_ if self.piece(id_) == piece else None

    def _encode_all(self, texts: Sequence[str], out_type: type[T], num_threads: int) -> list[list[T]]:
        """The tokens of each text, as ids or as pieces."""
        if len(texts) < MIN_TEXTS_FOR_THREADS:
            return [self._processor.encode(text, out_type=out_type) for text in texts]
        encode: Any = self._processor.encode
        return list(encode(list(texts), out_type=out_type, num_threads=num_threads))
