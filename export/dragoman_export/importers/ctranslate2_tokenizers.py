"""The tokens of a model of CTranslate2's, those that begin and end what, and what cuts text into them.

CTranslate2 keeps no tokenizer: it is given tokens. A sentencepiece model is found beside model.bin, or named
by the user; where all tokens are letters, none is needed.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman_bundle.manifest import SpecialIds
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from dragoman_bundle.tokenizers.vocabulary_tokenizer import SPACE, VocabularyTokenizer
from sentencepiece import sentencepiece_model_pb2

from dragoman_export.importers.ctranslate2_variables import BinaryModel
from dragoman_export.importers.files import FormatError, read_bytes, read_json, read_object, read_text
from dragoman_export.importers.subjects import numbered_tokenizer

spm: Any = sentencepiece_model_pb2  # Made by protobuf as it is imported: nothing tells its types.

CONFIG_FILE = "config.json"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Tokens with a meaning of their own."""

    unk: str
    eos: str
    decoder_start: str
    source_end: bool
    """Whether `eos` is put behind a source."""
    norm_epsilon: float


def read_settings(folder: Path, model: BinaryModel) -> Settings:
    """Those of config.json from binary version 6 on, or of the model. Raises FormatError."""
    table = read_object(folder / CONFIG_FILE, is_needed=model.version >= 6)
    if model.version < 6:
        bos, eos = model.text("bos_token", "<s>"), model.text("eos_token", "</s>")
        start = bos if model.number("with_target_bos", 1) else eos
        table |= {
            "unk_token": model.text("unk_token", "<unk>"),
            "bos_token": bos,
            "eos_token": eos,
            "add_source_bos": bool(model.number("with_source_bos", 0)),
            "add_source_eos": bool(model.number("with_source_eos", 0)),
            "decoder_start_token": None if model.number("user_decoder_start_tokens", 0) else start,
        }
    begin = f"wants {table.get('bos_token')!r} before every source (add_source_bos)"
    open_start = "leaves what a translation begins with to its callers, as models of many target languages do"
    for is_so, why in (
        (
            table.get("multi_query_attention"),
            "has multi-query attention, which our Transformer has no place for",
        ),
        (table.get("quantization_type"), "is quantized as AWQ, which is not read; int8 and int16 are"),
        (table.get("add_source_bos"), f"{begin}; such models can't be exported"),
        (table.get("decoder_start_token", "") is None, f"{open_start}; such models can't be exported"),
    ):
        if is_so:
            raise FormatError(f"{folder} {why}")
    epsilon = table.get("layer_norm_epsilon")
    if not (epsilon is None or (isinstance(epsilon, float) and 0 < epsilon < 1)):
        raise FormatError(f"{folder / CONFIG_FILE}: layer_norm_epsilon is {epsilon!r}")
    return Settings(
        unk=_token(folder, table, "unk_token", "<unk>"),
        eos=_token(folder, table, "eos_token", "</s>"),
        decoder_start=_token(folder, table, "decoder_start_token", "<s>"),
        source_end=bool(table.get("add_source_eos", False)),
        norm_epsilon=1e-5 if epsilon is None else epsilon,
    )


def _token(folder: Path, table: dict[str, Any], key: str, default: str) -> str:
    token = table.get(key, default)
    if not isinstance(token, str) or not token:
        raise FormatError(f"{folder / CONFIG_FILE}: {key} is {token!r}, and must be a token")
    return token


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """Tokens by their ids."""

    path: Path
    tokens: tuple[str, ...]

    def ids(self) -> dict[str, int]:
        """The id of each token; of one that stands there twice, the first."""
        return {token: id_ for id_, token in reversed(list(enumerate(self.tokens)))}

    def id_of(self, token: str) -> int:
        """The id of a token that the model begins or ends with. Raises FormatError where there is none."""
        if token not in self.tokens:
            raise FormatError(
                f"{self.path} is not of this model: it lacks {token!r}, which the model begins or ends with"
            )
        return self.tokens.index(token)


def read_vocabularies(folder: Path, settings: Settings) -> tuple[Vocabulary, Vocabulary]:
    """Source and target; the same object where one is for both. Raises FormatError."""
    shared = _find(folder, "shared_vocabulary")
    if shared is not None:
        vocabulary = _read(shared, settings)
        return vocabulary, vocabulary
    found = [_find(folder, f"{side}_vocabulary") for side in ("source", "target")]
    if _find(folder, "source_vocabulary_1") is not None:
        raise FormatError(f"{folder} has source features beside the tokens; such models can't be exported")
    source, target = found
    if source is None or target is None:
        side = "source" if source is None else "target"
        raise FormatError(
            f"{folder} has no {side}_vocabulary.txt or .json, nor shared_vocabulary.txt or .json for both "
            "sides"
        )
    return _read(source, settings), _read(target, settings)


def _find(folder: Path, name: str) -> Path | None:
    paths = [folder / f"{name}.{suffix}" for suffix in ("json", "txt")]
    return next((path for path in paths if path.is_file()), None)


def _read(path: Path, settings: Settings) -> Vocabulary:
    if path.suffix == ".json":
        tokens = read_json(path)
        if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
            raise FormatError(f"{path} is no list of tokens")
    else:
        tokens = _lines(read_text(path))
    # As CTranslate2 does: the models of OpenNMT-tf have it behind what is in the file.
    if settings.unk not in tokens:
        tokens.append(settings.unk)
    return Vocabulary(path=path, tokens=tuple(tokens))


def _lines(text: str) -> list[str]:
    """The lines of a file that only line feeds end: some tokens are what others would take for an end."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    if lines and all(line.endswith("\r") for line in lines):
        lines = [line.removesuffix("\r") for line in lines]
    return lines


FILES = (
    *("{side}.spm", "{short}.spm.model", "sentencepiece.model", "sentencepiece.bpe.model"),
    *("shared.spm", "spm.model", "joint.spm.model"),
)
"""What sentencepiece models beside a model are called."""
BPE_FILE = "bpe.model"
PADS = ("<blank>", "<pad>")
MIN_KNOWN = 0.9
"""Least share of pieces that a vocabulary and its sentencepiece model have in common, of whichever has fewer:
a vocabulary of two languages has more pieces than the model of either, and that of one fewer than the model
of both. They share all but a few; of German alone and of German with English, learnt apart, it is 0.8."""


def find_tokenizer(folder: Path, side: str) -> Path | None:
    """The sentencepiece model of a side in a folder, or None. Raises FormatError for another kind."""
    for name in FILES:
        path = folder / name.format(side=side, short={"source": "src", "target": "tgt"}[side])
        if path.is_file():
            return path
    if (folder / BPE_FILE).is_file():
        raise FormatError(
            f"{folder / BPE_FILE} is no sentencepiece model: text would be cut by Moses' tokenizer and "
            "subword-nmt, which are not supported"
        )
    return None


def make_tokenizer(
    vocabulary: Vocabulary, path: Path | None, side: str, size: int, bos: int, settings: Settings
) -> VocabularyTokenizer:
    """The tokenizer of a side by its sentencepiece model, or by letters where there is none.

    `size` is the number of its tokens, `bos` the one that begins a translation. Raises FormatError.
    """
    ids = vocabulary.ids()
    pad = next((ids[token] for token in PADS if token in ids), bos)
    unk = ids[settings.unk]
    # A source without an end needs none.
    special = SpecialIds(pad=pad, unk=unk, bos=bos, eos=ids.get(settings.eos, unk))
    model = _letters_model(vocabulary, side) if path is None else read_bytes(path)
    tokenizer = numbered_tokenizer(path or vocabulary.path, model, ids, size=size, special=special)
    if path is not None:
        _check_is_its_own(Tokenizer(model), ids, path, vocabulary.path)
    return tokenizer


def _check_is_its_own(model: Tokenizer, ids: dict[str, int], path: Path, vocabulary: Path) -> None:
    pieces = {model.piece(id_) for id_ in range(model.vocabulary_size)}
    both = len(pieces & ids.keys())
    if both < MIN_KNOWN * min(len(pieces), len(ids)):
        raise FormatError(
            f"{path} is the sentencepiece model of another vocabulary than {vocabulary}: of its "
            f"{len(pieces)} pieces and the {len(ids)} tokens there {both} are the same"
        )


def _letters_model(vocabulary: Vocabulary, side: str) -> bytes:
    """A sentencepiece model that cuts text into the vocabulary's letters and changes nothing."""
    tokens = [token for token in vocabulary.tokens if not (token.startswith("<") and token.endswith(">"))]
    if not tokens or any(len(token) != 1 for token in tokens):
        longer = next((token for token in tokens if len(token) != 1), "")
        raise FormatError(
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
    return model.SerializeToString()
