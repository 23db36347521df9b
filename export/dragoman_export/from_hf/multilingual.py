"""The tokenizer of M2M100's and NLLB's checkpoints, one for both sides, and the languages that they know.

A source begins with the token of its language, a translation with that of its own. M2M100 has a vocabulary
beside its sentencepiece model; NLLB numbers that model's own pieces, after fairseq's four marks.
"""

import json
from collections.abc import Mapping
from pathlib import Path

import sentencepiece
from dragoman_bundle.manifest import SpecialIds
from dragoman_bundle.tokenizers.vocabulary_tokenizer import VocabularyTokenizer

from dragoman_export.foreign.language_tokens import languages_of
from dragoman_export.from_hf.configuration import Configuration
from dragoman_export.from_hf.errors import CheckpointError

_MODEL_FILE, _PIECES_FILE = "sentencepiece.bpe.model", "vocab.json"
_MARKS = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}
_NUM_OWN_MARKS = 3
"""The marks that such a sentencepiece model has itself, before its pieces."""


def read_multilingual(
    folder: Path, config: Configuration, added: Mapping[str, int | None]
) -> tuple[VocabularyTokenizer, dict[str, str]]:
    """The tokenizer, and the token of each language by its BCP 47 code. Raises CheckpointError.

    Tokens of languages are among those that were `added`. One whose id no file tells comes behind the
    vocabulary, in their order.
    """
    model_file = folder / _MODEL_FILE
    if not model_file.is_file():
        raise CheckpointError(
            f"{folder} has no {_MODEL_FILE}; copy it from the model that this one was made from"
        )
    try:
        model = model_file.read_bytes()
        pieces = _pieces(folder, model)
        languages, first = languages_of(added), len(pieces)
        for rank, token in enumerate(languages.values()):
            known = added[token]
            pieces.setdefault(token, first + rank if known is None else known)
        if not languages:
            raise CheckpointError(
                f"{folder} names no languages: special_tokens_map.json or tokenizer_config.json should list "
                "their tokens, such as '__de__' or 'deu_Latn'"
            )
        ids = SpecialIds(pad=config.pad, unk=pieces["<unk>"], bos=config.start, eos=config.eos)
        vocabulary = json.dumps(pieces, ensure_ascii=False).encode()
        return VocabularyTokenizer(model, vocabulary, size=config.source_size, ids=ids), languages
    except CheckpointError:
        raise
    except (AttributeError, KeyError, RuntimeError, TypeError, ValueError) as error:
        raise CheckpointError(f"{folder}: {_MODEL_FILE} is no tokenizer of this model: {error}") from error


def _pieces(folder: Path, model: bytes) -> dict[str, int]:
    """The id of each piece that is no language."""
    if (folder / _PIECES_FILE).is_file():
        return dict(json.loads((folder / _PIECES_FILE).read_bytes()))
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    own = range(_NUM_OWN_MARKS, processor.vocab_size())
    return _MARKS | {processor.id_to_piece(id_): id_ + len(_MARKS) - _NUM_OWN_MARKS for id_ in own}
