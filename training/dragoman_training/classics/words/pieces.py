"""The space of a model: the embeddings of its vocabulary's pieces."""

from pathlib import Path

from dragoman_bundle.tokenizers.tokenizer import Tokenizer

from dragoman_training.checkpoint import load_checkpoint
from dragoman_training.classics.words.space import Space

SPACE = "▁"


def open_pieces(checkpoint: Path) -> Space:
    """That of the target's embeddings, which are the source's, too, where both share a vocabulary."""
    loaded = load_checkpoint(checkpoint)
    tokenizer = loaded.target_tokenizer
    special = (tokenizer.pad_id, tokenizer.unk_id, tokenizer.bos_id, tokenizer.eos_id)
    pieces = [tokenizer.piece(id_) for id_ in range(tokenizer.vocabulary_size)]
    return Space(
        title=f"embeddings of {loaded.recipe.name}",
        vector_VD=loaded.model.output.embedding.weight.detach().float().numpy(),
        words=[piece.replace(SPACE, " ").strip() or SPACE for piece in pieces],
        row_of=lambda word: piece_of(word, tokenizer),
        no_words=[id_ for id_ in special if id_ >= 0],
    )


def piece_of(word: str, tokenizer: Tokenizer) -> int:
    """The token that a word is. Raises ValueError where it is none, or several, and says which."""
    ids = tokenizer.encode_ids([word])[0]
    whole = [id_ for id_ in ids if tokenizer.piece(id_) != SPACE]
    if len(whole) == 1 and whole[0] != tokenizer.unk_id:
        return whole[0]
    pieces = " ".join(tokenizer.piece(id_) for id_ in ids) or "nothing"
    raise ValueError(
        f"{word!r} is no piece of the vocabulary, which writes it as {pieces}: take a more frequent word, or "
        "one of these"
    )
