"""Tokens that were added to a checkpoint's tokenizer: each is read as Hugging Face reads it, or refused.

They stand in one of three files, and not always in the vocabulary. Hugging Face cuts them out of a text
before sentencepiece sees it; our tokenizer does so with a language token at its beginning.
"""

import json
from collections.abc import Mapping
from typing import Any

from dragoman_bundle.tokenizers.vocabulary_tokenizer import VocabularyTokenizer

from dragoman_export.from_hf.errors import CheckpointError

FILES = "added_tokens.json, tokenizer_config.json or special_tokens_map.json"


def added_tokens(
    name: str, *, added: Mapping[str, Any], tokenizer_config: Mapping[str, Any], special: Mapping[str, Any]
) -> dict[str, int | None]:
    """The tokens of the three files with their ids; None for one that has none there.

    Raises CheckpointError where the files are not of the form that Hugging Face writes, or name a token
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
        raise CheckpointError(f"{name}: the added tokens of {FILES} can't be read: {error!r}") from error
    found: dict[str, int | None] = {}
    for token, id_ in pairs:
        if id_ is None or found.get(token) in (None, id_):
            found[token] = found.get(token) if id_ is None else id_
            continue
        raise CheckpointError(f"{name}: the added token {token!r} has two ids, {found[token]} and {id_}")
    return found


def with_added_tokens(name: str, vocabulary: bytes, added: Mapping[str, int | None]) -> bytes:
    """The vocabulary with what was added to it; the same bytes where it has all of it already."""
    pieces = json.loads(vocabulary)
    for token, id_ in added.items():
        if id_ is not None and pieces.get(token, id_) != id_:
            raise CheckpointError(
                f"{name}: the added token {token!r} has the id {id_}, and {pieces[token]} in the vocabulary"
            )
    more = {token: id_ for token, id_ in added.items() if id_ is not None and token not in pieces}
    return json.dumps(pieces | more, ensure_ascii=False).encode() if more else vocabulary


def check_added_tokens(name: str, tokenizer: VocabularyTokenizer, added: Mapping[str, int | None]) -> None:
    """Raises CheckpointError, naming them, for added tokens that the tokenizer does not read as such."""
    pieces = json.loads(tokenizer.vocabulary)
    # No text means these: they stand for its end and the like.
    marks = {tokenizer.pad_id, tokenizer.unk_id, tokenizer.bos_id, tokenizer.eos_id}
    strange = [
        token
        for token, id_ in ((token, pieces.get(token)) for token in added)
        if id_ not in marks and tokenizer.encode_ids([token])[0] != [id_]
    ]
    if strange:
        raise CheckpointError(
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
