"""Tokens of checkpoints' tokenizers that are no pieces of words: added ones, and those of languages.

What was added stands in one of three files, and not always in the vocabulary. Hugging Face cuts it out of a
text before sentencepiece sees it; our tokenizer does so with a language token at its beginning. A source of
M2M100 and NLLB begins with the token of its language, a translation with that of its own. M2M100 has a
vocabulary beside its sentencepiece model; NLLB numbers that model's own pieces, after fairseq's four marks.
"""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import sentencepiece
from dragoman_bundle.languages import primary_language, usual_script
from dragoman_bundle.manifest import SpecialIds
from dragoman_bundle.tokenizers.vocabulary_tokenizer import VocabularyTokenizer

from dragoman_export.importers.files import FormatError
from dragoman_export.importers.hf_model import Configuration

FILES = "added_tokens.json, tokenizer_config.json or special_tokens_map.json"


def added_tokens(
    name: str, *, added: Mapping[str, Any], tokenizer_config: Mapping[str, Any], special: Mapping[str, Any]
) -> dict[str, int | None]:
    """The tokens of the three files with their ids; None for one that has none there.

    Raises FormatError where the files are not of the form that Hugging Face writes, or name a token
    twice.
    """
    try:
        pairs: list[tuple[str, int | None]] = [(token, int(id_)) for token, id_ in added.items()]
        decoder = tokenizer_config.get("added_tokens_decoder") or {}
        pairs += [(_content(token), int(id_)) for id_, token in decoder.items()]
        for key in ("extra_special_tokens", "additional_special_tokens"):
            for config in (tokenizer_config, special):
                listed = config.get(key) or []
                named = listed.values() if isinstance(listed, dict) else listed
                pairs += [(_content(token), None) for token in named]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise FormatError(f"{name}: the added tokens of {FILES} can't be read: {error!r}") from error
    found: dict[str, int | None] = {}
    for token, id_ in pairs:
        if id_ is None or found.get(token) in (None, id_):
            found[token] = found.get(token) if id_ is None else id_
            continue
        raise FormatError(f"{name}: the added token {token!r} has two ids, {found[token]} and {id_}")
    return found


def with_added_tokens(name: str, vocabulary: bytes, added: Mapping[str, int | None]) -> bytes:
    """The vocabulary with what was added to it; the same bytes where it has all of it already."""
    pieces = json.loads(vocabulary)
    for token, id_ in added.items():
        if id_ is not None and pieces.get(token, id_) != id_:
            raise FormatError(
                f"{name}: the added token {token!r} has the id {id_}, and {pieces[token]} in the vocabulary"
            )
    more = {token: id_ for token, id_ in added.items() if id_ is not None and token not in pieces}
    return json.dumps(pieces | more, ensure_ascii=False).encode() if more else vocabulary


def check_added_tokens(name: str, tokenizer: VocabularyTokenizer, added: Mapping[str, int | None]) -> None:
    """Raises FormatError, naming them, for added tokens that the tokenizer does not read as such."""
    pieces = json.loads(tokenizer.vocabulary)
    # No text means these: they stand for its end and the like.
    marks = {tokenizer.pad_id, tokenizer.unk_id, tokenizer.bos_id, tokenizer.eos_id}
    strange = [
        token
        for token, id_ in ((token, pieces.get(token)) for token in added)
        if id_ not in marks and tokenizer.encode_ids([token])[0] != [id_]
    ]
    if strange:
        raise FormatError(
            f"{name}: tokens were added to its tokenizer that ours would cut to pieces or not know: "
            f"{', '.join(map(repr, strange))}. Of added tokens, only such as '>>fra<<' can be taken over. If "
            f"your texts have none of the others, take them out of {FILES}"
        )


def _content(token: Any) -> str:
    """The token's text; Hugging Face writes it bare, or with how it is cut out."""
    if isinstance(token, str):
        return token
    content = token["content"]
    if not isinstance(content, str):
        raise TypeError(f"{content!r} is no token")
    return content


_MODEL_FILE, _PIECES_FILE = "sentencepiece.bpe.model", "vocab.json"
_MARKS = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}
_NUM_OWN_MARKS = 3
"""The marks that such a sentencepiece model has itself, before its pieces."""


def read_multilingual(
    folder: Path, config: Configuration, added: Mapping[str, int | None]
) -> tuple[VocabularyTokenizer, dict[str, str]]:
    """The tokenizer, and the token of each language by its BCP 47 code. Raises FormatError.

    Tokens of languages are among those that were `added`. One whose id no file tells comes behind the
    vocabulary, in their order.
    """
    model_file = folder / _MODEL_FILE
    if not model_file.is_file():
        raise FormatError(
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
            raise FormatError(
                f"{folder} names no languages: special_tokens_map.json or tokenizer_config.json should list "
                "their tokens, such as '__de__' or 'deu_Latn'"
            )
        ids = SpecialIds(pad=config.pad, unk=pieces["<unk>"], bos=config.architecture.bos, eos=config.eos)
        vocabulary = json.dumps(pieces, ensure_ascii=False).encode()
        return VocabularyTokenizer(model, vocabulary, size=config.source_size, ids=ids), languages
    except FormatError:
        raise
    except (AttributeError, KeyError, RuntimeError, TypeError, ValueError) as error:
        raise FormatError(f"{folder}: {_MODEL_FILE} is no tokenizer of this model: {error}") from error


def _pieces(folder: Path, model: bytes) -> dict[str, int]:
    """The id of each piece that is no language."""
    if (folder / _PIECES_FILE).is_file():
        return dict(json.loads((folder / _PIECES_FILE).read_bytes()))
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    own = range(_NUM_OWN_MARKS, processor.vocab_size())
    return _MARKS | {processor.id_to_piece(id_): id_ + len(_MARKS) - _NUM_OWN_MARKS for id_ in own}


_TOKEN = re.compile(r"__(?P<code>[a-z]{2,3})__|(?P<language>[a-z]{3})_(?P<script>[A-Z][a-z]{3})")
_OWN_CODES = {"ns": "nso"}
"""M2M100's codes that are none of BCP 47."""


def languages_of(tokens: Iterable[str]) -> dict[str, str]:
    """Those of the tokens that stand for languages, by BCP 47 codes, which name a script where it is not the
    language's usual one. None for fewer than two: of one language alone no model need be told.
    """
    found = {_code(token): token for token in tokens if _TOKEN.fullmatch(token)}
    return found if len(found) > 1 else {}


def _code(token: str) -> str:
    match = _TOKEN.fullmatch(token)
    assert match is not None
    if match["code"]:
        return _OWN_CODES.get(match["code"], match["code"])
    language = primary_language(match["language"])
    return language if match["script"].lower() == usual_script(language) else f"{language}-{match['script']}"
