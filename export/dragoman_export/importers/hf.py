"""Reads a checkpoint as Hugging Face keeps it: a folder.

It has config.json, model.safetensors or pytorch_model.bin, the tokenizer's files (of MarianMT source.spm,
target.spm and vocab.json, of M2M100 and NLLB sentencepiece.bpe.model), and may have generation_config.json,
tokenizer_config.json, added_tokens.json, special_tokens_map.json, target_vocab.json, metadata.json and
README.md. Where there is no generation_config.json, as in older releases, config.json has what stands there.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from textwrap import fill
from typing import Any

from dragoman_bundle.manifest import MULTIPLE_LANGUAGES, SpecialIds
from dragoman_bundle.tokenizers.vocabulary_tokenizer import VocabularyTokenizer

from dragoman_export.importers.files import FormatError, read_object, read_tensors
from dragoman_export.importers.hf_model import Configuration, read_configuration, read_transformer
from dragoman_export.importers.hf_tokenizers import (
    added_tokens,
    check_added_tokens,
    read_multilingual,
    with_added_tokens,
)
from dragoman_export.importers.reading import Reading
from dragoman_export.importers.subjects import BEAM_SIZE, Origin, foreign_subject, searchable
from dragoman_export.model import Subject
from dragoman_export.reference.imported import Name

Table = Mapping[str, Any]
WEIGHTS = ("model.safetensors", "pytorch_model.bin")
_KINDS = {"marian": "A MarianMT", "m2m_100": "A multilingual"}
_OFF_AT_0 = (
    *("diversity_penalty", "encoder_no_repeat_ngram_size", "min_new_tokens", "no_repeat_ngram_size"),
    "penalty_alpha",
)
_OFF_AT_1 = ("encoder_repetition_penalty", "guidance_scale", "num_beam_groups", "repetition_penalty")
_NEUTRAL: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(_OFF_AT_0, (0,)),
    **dict.fromkeys(_OFF_AT_1, (1,)),
    **dict.fromkeys(("begin_suppress_tokens", "force_words_ids", "forced_decoder_ids"), ([],)),
    "do_sample": (False,),
    "exponential_decay_length_penalty": (),
    "min_length": (0, 1),
    "sequence_bias": ({},),
}
"""What of generation_config.json makes `generate()` search otherwise, and values beside None that do not."""


def load_checkpoint(path: Path, given: Reading = Reading()) -> Subject:
    """The checkpoint in a folder. One of M2M100 or NLLB knows its languages itself.

    Languages that are not given are those of tokenizer_config.json, or else of metadata.json. Raises
    FormatError where it is of neither type, is not whole, names no languages, has no such token as is given,
    or holds what our Transformer has no place for.

    The engine may find another translation than `generate()`: `_differences` has the definitions.
    """
    folder, name = path, str(path)
    if not folder.is_dir():
        raise FormatError(f"there is no folder {name}")
    stated = read_object(folder / "config.json")
    config = read_configuration(name, stated)
    # Where there is none, as in older releases, config.json has what stands there.
    generation = read_object(folder / "generation_config.json", is_needed=False) or stated
    _check_generation(name, config, generation)
    tokenizer_config = read_object(folder / "tokenizer_config.json", is_needed=False)
    is_separate = bool(tokenizer_config.get("separate_vocabs"))
    added = added_tokens(
        name,
        added=read_object(folder / "added_tokens.json", is_needed=False),
        tokenizer_config=tokenizer_config,
        special=read_object(folder / "special_tokens_map.json", is_needed=False),
    )
    languages: dict[str, str] = {}
    pair = MULTIPLE_LANGUAGES, MULTIPLE_LANGUAGES
    if config.type == "m2m_100":
        if given.options:
            raise FormatError(
                f"{name} is of many languages, all of which its bundle has; leave{given.options} out"
            )
        source, languages = read_multilingual(folder, config, added)
        target = source
    else:
        source, target = _tokenizers(folder, config, is_separate, given.language_token, added)
        check_added_tokens(name, source, added)
        metadata = read_object(folder / METADATA_FILE, is_needed=False)
        pair = (
            given.source_language or _find_language(name, tokenizer_config, metadata, "source"),
            given.target_language or _find_language(name, tokenizer_config, metadata, "target"),
        )
    never_produced = _never_produced(name, config, generation)
    paths = [folder / file for file in WEIGHTS if (folder / file).is_file()]
    if not paths:
        raise FormatError(f"{folder} has neither {' nor '.join(WEIGHTS)}, of which a checkpoint has one")
    imported = searchable(read_transformer(name, config, read_tensors(paths[0]), never_produced))
    is_one = source is target
    source = source.lengthened(len(imported.weights[Name.SOURCE]))
    target = source if is_one else target.lengthened(len(imported.weights[Name.TARGET]))
    card = _read(folder, "README.md", default=b"").decode(errors="replace")
    licence = re.search(r"^license:\s*(\S.*)$", card, re.MULTILINE)
    origin = Origin(
        name=folder.resolve().name,
        kind=f"{_KINDS[config.type]} model of Hugging Face",
        options=given.options,
        data="see its own card",
        licence=licence[1].strip() if licence else "",
        program="`generate()` of Hugging Face",
        differences=_differences(config, generation),
    )
    # The token of a language comes before those of a translation.
    positions = config.max_positions - bool(languages)
    length_penalty = generation.get("length_penalty")
    # The former counts what is generated, and goes before the latter, as in `generate()`, which counts the
    # token that decoding starts with too.
    max_tokens = generation.get("max_new_tokens") or (generation.get("max_length") or positions + 1) - 1
    return foreign_subject(
        imported,
        origin,
        tokenizers=(source, target),
        pair=pair,
        languages=languages,
        beam_size=generation.get("num_beams") or BEAM_SIZE,
        length_penalty=1.0 if length_penalty is None else max(0.0, float(length_penalty)),
        max_source_tokens=positions,
        max_output_tokens=min(positions, max_tokens),
    )


def _differences(config: Configuration, generation: Table) -> str:
    """How the checkpoint's own search is defined otherwise than the engine's, as a list in Markdown."""
    stopping = generation.get("early_stopping") or False
    penalty = (
        "There a hypothesis' log-probability is divided by length^a; here by ((5 + length) / 6)^a (Wu et al. "
        "2016, equation 14), with the same length penalty a."
    )
    found = [penalty]
    if config.type == "marian" and not generation.get("renormalize_logits"):
        found.append(
            "There tokens that are never produced are left out after probabilities are taken; here before, "
            "as with `renormalize_logits=True`."
        )
    if stopping is not True:
        length = "any length" if stopping == "never" else "the length it has"
        found.append(
            f"There, with `early_stopping={stopping!r}`, a search whose beam is full of ended hypotheses "
            f"goes on while a running one might, at {length}, beat the worst of them; here it ends then, "
            "as with `early_stopping=True`."
        )
    if generation.get("forced_eos_token_id") is not None:
        found.append(
            "There a translation at the limit of output tokens ends with a token that is forced; here it is "
            "cut, with one token more."
        )
    return "\n".join(fill(f"- {each}", 110, subsequent_indent="  ") for each in found)


def _tokenizers(
    folder: Path,
    config: Configuration,
    is_separate: bool,
    language_token: str | None,
    added: Mapping[str, int | None],
) -> tuple[VocabularyTokenizer, VocabularyTokenizer]:
    tokenizers, name = [], str(folder)
    target_file = "target_vocab.json" if is_separate else "vocab.json"
    for side, file, size, token in (
        ("source", "vocab.json", config.source_size, language_token),
        ("target", target_file, config.target_size, None),
    ):
        vocabulary = _read(folder, file)
        try:
            if side == "source" or not is_separate:
                vocabulary = with_added_tokens(name, vocabulary, added)
            pieces = json.loads(vocabulary)
            ids = SpecialIds(pad=config.pad, unk=pieces["<unk>"], bos=config.architecture.bos, eos=config.eos)
            tokenizer = VocabularyTokenizer(
                _read(folder, f"{side}.spm"), vocabulary, size=size, ids=ids, language_token=token
            )
        except FormatError:
            raise
        except ValueError as error:
            raise FormatError(f"{name}: {side}.spm with {file}: {error}") from error
        except (AttributeError, KeyError, TypeError) as error:
            raise FormatError(f"{name}: {side}.spm with {file} is no tokenizer: {error!r}") from error
        tokenizers.append(tokenizer)
    return tokenizers[0], tokenizers[1]


def _never_produced(name: str, config: Configuration, generation: Table) -> set[int]:
    """The token that pads, and those that the checkpoint keeps out of what it generates."""
    never = {config.pad, *(generation.get("suppress_tokens") or ())}
    for words in generation.get("bad_words_ids") or ():
        if len(words) != 1:
            raise FormatError(
                f"{name}: bad_words_ids keeps out the sequence {words}; only single tokens can be kept out. "
                "Take it out of generation_config.json"
            )
        # As Hugging Face does: nothing would ever end.
        if words[0] != config.eos:
            never.add(words[0])
    size = config.target_size
    if strange := sorted(token for token in never if not 0 <= token < size):
        raise FormatError(
            f"{name}: it keeps out token {strange[0]}, and there are {size}: correct suppress_tokens or "
            "bad_words_ids in generation_config.json"
        )
    return never


def _check_generation(name: str, config: Configuration, generation: Table) -> None:
    """Raises FormatError where `generate()` has rules that the engine does not know."""
    # A model of many languages is told by it which to write, as a request tells the engine.
    forced = {} if config.type == "m2m_100" else {"forced_bos_token_id": ()}
    for key, neutral in (_NEUTRAL | forced).items():
        value = generation.get(key)
        if value is not None and value not in neutral:
            raise FormatError(
                f"{name}: generation_config.json has {key} = {value}, which no search of ours knows; take it "
                "out, if the translations may be others without it"
            )
    bos, eos, pad = config.architecture.bos, config.eos, config.pad
    for key, expected in (("decoder_start_token_id", bos), ("eos_token_id", eos), ("pad_token_id", pad)):
        value = generation.get(key)
        if value not in (None, expected, [expected]):
            raise FormatError(
                f"{name}: {key} is {value} in generation_config.json and {expected} in config.json; "
                "make them one"
            )


def _read(folder: Path, file: str, default: bytes | None = None) -> bytes:
    """A file of the checkpoint. Raises FormatError where there is none and no default."""
    path = folder / file
    if path.is_file():
        return path.read_bytes()
    if default is None:
        raise FormatError(f"{folder} has no {file}, which such a checkpoint has")
    return default


METADATA_FILE = "metadata.json"
_METADATA_KEYS = {
    "source": ("src_alpha2", "source_languages", "src_alpha3"),
    "target": ("tgt_alpha2", "target_languages", "tgt_alpha3"),
}
_ONE_LANGUAGE = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*")


def _find_language(name: str, tokenizer_config: Table, metadata: Table, side: str) -> str:
    """The language of "source" or "target". Raises FormatError where no file of a release names one.

    Which files there are depends on its year: those of the first have a tokenizer_config.json of their own,
    those of the Tatoeba challenge a metadata.json too. The tokenizer's own word goes first. Of metadata.json
    a list of several languages is none.
    """
    named = [tokenizer_config.get(f"{side}_lang"), *(metadata.get(key) for key in _METADATA_KEYS[side])]
    if isinstance(named[0], str) and named[0]:
        return named[0]
    for language in named[1:]:
        if isinstance(language, str) and _ONE_LANGUAGE.fullmatch(language):
            return language
    raise FormatError(
        f"{name}: neither tokenizer_config.json nor {METADATA_FILE} names one {side} language; give it with "
        f"--{side}-language"
    )
