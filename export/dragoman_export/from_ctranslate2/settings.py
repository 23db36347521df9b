"""How a model of CTranslate2 is used, by config.json or its variables: which tokens begin and end what."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman_export.from_ctranslate2.errors import CTranslate2Error
from dragoman_export.from_ctranslate2.variables import Variables

CONFIG_FILE = "config.json"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Tokens with a meaning of their own."""

    unk: str
    eos: str
    decoder_start: str
    """What the decoder reads first."""
    source_end: bool
    """Whether `eos` is put behind a source."""
    norm_epsilon: float


def read_settings(folder: Path, version: int, variables: Variables) -> Settings:
    """Those of config.json from binary version 6 on, or of the variables. Raises CTranslate2Error."""
    table = _read_config(folder, is_needed=version >= 6)
    if version < 6:
        flags = {
            name: bool(variables.number(name, default))
            for name, default in (
                ("with_source_bos", 0),
                ("with_source_eos", 0),
                ("with_target_bos", 1),
                ("user_decoder_start_tokens", 0),
            )
        }
        bos, eos = variables.text("bos_token", "<s>"), variables.text("eos_token", "</s>")
        start = bos if flags["with_target_bos"] else eos
        table |= {
            "unk_token": variables.text("unk_token", "<unk>"),
            "bos_token": bos,
            "eos_token": eos,
            "add_source_bos": flags["with_source_bos"],
            "add_source_eos": flags["with_source_eos"],
            "decoder_start_token": None if flags["user_decoder_start_tokens"] else start,
        }
    if table.get("multi_query_attention"):
        raise CTranslate2Error(f"{folder} has multi-query attention, which our Transformer has no place for")
    if table.get("quantization_type"):
        raise CTranslate2Error(f"{folder} is quantized as AWQ, which is not read; int8 and int16 are")
    if table.get("add_source_bos"):
        raise CTranslate2Error(
            f"{folder} wants {table.get('bos_token')!r} before every source (add_source_bos); such models "
            "can't be exported"
        )
    if table.get("decoder_start_token", "") is None:
        raise CTranslate2Error(
            f"{folder} leaves what a translation begins with to its callers, as models of many target "
            "languages do; such models can't be exported"
        )
    epsilon = table.get("layer_norm_epsilon")
    if not (epsilon is None or (isinstance(epsilon, float) and 0 < epsilon < 1)):
        raise CTranslate2Error(f"{folder / CONFIG_FILE}: layer_norm_epsilon is {epsilon!r}")
    eos = _token(folder, table, "eos_token", "</s>")
    return Settings(
        unk=_token(folder, table, "unk_token", "<unk>"),
        eos=eos,
        decoder_start=_token(folder, table, "decoder_start_token", "<s>"),
        source_end=bool(table.get("add_source_eos", False)),
        norm_epsilon=1e-5 if epsilon is None else epsilon,
    )


def _read_config(folder: Path, *, is_needed: bool) -> dict[str, Any]:
    path = folder / CONFIG_FILE
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if is_needed:
            raise CTranslate2Error(f"{folder} has no {CONFIG_FILE}, which its model.bin needs") from None
        return {}
    except OSError as error:
        raise CTranslate2Error(f"{path} can't be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise CTranslate2Error(f"{path} is not JSON: {error}") from error
    if not isinstance(table, dict):
        raise CTranslate2Error(f"{path} is no JSON object")
    return table


def _token(folder: Path, table: dict[str, Any], key: str, default: str) -> str:
    token = table.get(key, default)
    if not isinstance(token, str) or not token:
        raise CTranslate2Error(f"{folder / CONFIG_FILE}: {key} is {token!r}, and must be a token")
    return token
