"""What cuts text into the tokens of a model's vocabularies.

CTranslate2 keeps none: it is given tokens. A sentencepiece model is found beside model.bin, or named by the
user; where all tokens are letters, none is needed.
"""

import json
from pathlib import Path
from typing import Any

from dragoman_bundle.manifest import SpecialIds
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from dragoman_bundle.tokenizers.vocabulary_tokenizer import SPACE, VocabularyTokenizer
from sentencepiece import sentencepiece_model_pb2

from dragoman_export.from_ctranslate2.errors import CTranslate2Error
from dragoman_export.from_ctranslate2.settings import Settings
from dragoman_export.from_ctranslate2.vocabulary import Vocabulary

spm: Any = sentencepiece_model_pb2  # Made by protobuf as it is imported: nothing tells its types.

FILES = (
    "{side}.spm",
    "{short}.spm.model",
    "sentencepiece.model",
    "sentencepiece.bpe.model",
    "shared.spm",
    "spm.model",
    "joint.spm.model",
)
"""What sentencepiece models beside a model are called."""
BPE_FILE = "bpe.model"
PADS = ("<blank>", "<pad>")
MIN_KNOWN = 0.9
"""Least share of pieces that a vocabulary and its sentencepiece model have in common, of whichever has fewer:
a vocabulary of two languages has more pieces than the model of either, and that of one fewer than the model
of both. They share all but a few; of German alone and of German with English, learnt apart, it is 0.8."""


def find_tokenizer(folder: Path, side: str) -> Path | None:
    """The sentencepiece model of a side in a folder, or None. Raises CTranslate2Error for another kind."""
    for name in FILES:
        path = folder / name.format(side=side, short={"source": "src", "target": "tgt"}[side])
        if path.is_file():
            return path
    if (folder / BPE_FILE).is_file():
        raise CTranslate2Error(
            f"{folder / BPE_FILE} is no sentencepiece model: text would be cut by Moses' tokenizer and "
            "subword-nmt, which are not supported"
        )
    return None


def make_tokenizer(
    vocabulary: Vocabulary, path: Path | None, *, side: str, size: int, bos: int, settings: Settings
) -> VocabularyTokenizer:
    """The tokenizer of a side by its sentencepiece model, or by letters where there is none.

    `size` is the number of its tokens, `bos` the one that begins a translation. Raises CTranslate2Error.
    """
    ids = vocabulary.ids()
    pad = next((ids[token] for token in PADS if token in ids), bos)
    unk = ids[settings.unk]
    # A source without an end needs none.
    special = SpecialIds(pad=pad, unk=unk, bos=bos, eos=ids.get(settings.eos, unk))
    if path is not None:
        try:
            model = path.read_bytes()
        except OSError as error:
            raise CTranslate2Error(f"{path} can't be read: {error.strerror}") from error
    else:
        model = _letters_model(vocabulary, side)
    try:
        tokenizer = VocabularyTokenizer(
            model, json.dumps(ids, ensure_ascii=False).encode(), size=size, ids=special
        )
        if path is not None:
            _check_is_its_own(Tokenizer(model), ids, path, vocabulary.path)
    except CTranslate2Error:
        raise
    except ValueError as error:
        raise CTranslate2Error(f"{path or vocabulary.path}: {error}") from error
    return tokenizer


def _check_is_its_own(model: Tokenizer, ids: dict[str, int], path: Path, vocabulary: Path) -> None:
    pieces = {model.piece(id_) for id_ in range(model.vocabulary_size)}
    both = len(pieces & ids.keys())
    if both < MIN_KNOWN * min(len(pieces), len(ids)):
        raise CTranslate2Error(
            f"{path} is the sentencepiece model of another vocabulary than {vocabulary}: of its "
            f"{len(pieces)} pieces and the {len(ids)} tokens there {both} are the same"
        )


def _letters_model(vocabulary: Vocabulary, side: str) -> bytes:
    """A sentencepiece model that cuts text into the vocabulary's letters and changes nothing."""
    tokens = [token for token in vocabulary.tokens if not (token.startswith("<") and token.endswith(">"))]
    if not tokens or any(len(token) != 1 for token in tokens):
        longer = next((token for token in tokens if len(token) != 1), "")
        raise CTranslate2Error(
            f"there is no sentencepiece model for {vocabulary.path}, whose tokens are more than letters, as "
            f"{longer!r}: give the one it was trained with as --{side}-tokenizer FILE"
        )
    model = spm.ModelProto()
    model.trainer_spec.model_type = spm.TrainerSpec.CHAR
    model.normalizer_spec.name = "identity"
    model.normalizer_spec.add_dummy_prefix = False
    model.normalizer_spec.remove_extra_whitespaces = False
    model.normalizer_spec.escape_whitespaces = SPACE in tokens
    model.pieces.add(piece="<unk>", score=0, type=spm.ModelProto.SentencePiece.UNKNOWN)
    for token in dict.fromkeys(tokens):
        model.pieces.add(piece=token, score=0)
    serialised: bytes = model.SerializeToString()
    return serialised
