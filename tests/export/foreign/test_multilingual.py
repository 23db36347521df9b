"""Checkpoints of M2M100 and NLLB become bundles of many languages that decode as transformers does."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from dragoman_bundle import Bundle, open_bundle
from tests.engine.house import decode
from tests.export.commands import call
from tests.export.marian_checkpoint import changed
from tests.export.multilingual_checkpoint import TEXT, write_multilingual

from dragoman_export.get.cli import get
from dragoman_export.importers.files import FormatError
from dragoman_export.importers.hf import load_checkpoint
from dragoman_export.importers.hf_tokenizers import languages_of
from dragoman_export.importers.reading import Reading
from dragoman_server.engine import EngineLimits
from dragoman_server.engine.onnx.opening import open_decoder
from dragoman_server.engine.onnx.session import DecoderOptions
from dragoman_server.text.options import TranslationOptions
from dragoman_server.text.stages import prepare

MAX_TOKENS = 20
PAIRS = [("de", "en"), ("en", "de"), ("es", "zh")]


@pytest.fixture(scope="module", params=[True, False], ids=["nllb", "m2m100"])
def checkpoint(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hub") / "tiny-200"
    write_multilingual(folder, nllb=request.param)
    return folder


@pytest.fixture(scope="module")
def bundle(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    models = tmp_path_factory.mktemp("models")
    code, said = call(get, checkpoint, "--models", models, "--precisions", "fp32,int8,fp16")
    assert code == 0, said
    return open_bundle(models / "tiny-200" / "1")


def source_ids(bundle: Bundle, text: str) -> list[int]:
    return [*bundle.source_tokenizer.encode_ids([text])[0], bundle.manifest.source_ids.eos]


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_pieces_are_those_of_their_tokenizer(checkpoint: Path, bundle: Bundle, pair: tuple[str, str]) -> None:
    from transformers import AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(checkpoint)
    tokenizer.src_lang = bundle.manifest.languages[pair[0]].strip("_")
    for text in [*TEXT, "mann", "ein roter hund é"]:
        ids, (language, *expected) = source_ids(bundle.between(*pair), text), tokenizer(text)["input_ids"]
        # Of a toy's NLLB, theirs numbers <mask> before the languages; that of Meta's has a file for it.
        assert bundle.source_tokenizer.piece(ids[0]) == tokenizer.convert_ids_to_tokens(language)
        assert ids[1:] == expected


@torch.inference_mode()
def generate(model: Any, source: list[int], start: int, beam_size: int) -> tuple[list[int], float]:
    """The best translation behind its language, without its end, and its log-probability."""
    output: Any = model.generate(
        torch.tensor([source]),
        forced_bos_token_id=start,
        num_beams=beam_size,
        do_sample=False,
        length_penalty=0.0,
        early_stopping=beam_size > 1,
        bad_words_ids=[[1]],
        max_length=MAX_TOKENS + 2,
        return_dict_in_generate=True,
        output_scores=True,
    )
    ids = output.sequences[0, 2:].tolist()
    found = ids[: ids.index(2)] if 2 in ids else ids
    if beam_size > 1:
        return found, float(output.sequences_scores[0])
    logits = model(torch.tensor([source]), decoder_input_ids=torch.tensor([[2, start, *ids]])).logits[0, 1:-1]
    return found, float(logits.log_softmax(-1).gather(1, torch.tensor(ids)[:, None]).sum())


@pytest.mark.parametrize("beam_size", [1, 4])
def test_the_engine_finds_what_generate_finds(checkpoint: Path, bundle: Bundle, beam_size: int) -> None:
    from transformers import M2M100ForConditionalGeneration

    model = M2M100ForConditionalGeneration.from_pretrained(checkpoint).eval()
    decoder = open_decoder(bundle, DecoderOptions(device="cpu", precision="fp32", num_threads=1))
    options = TranslationOptions(beam_size=beam_size, length_penalty=0.0, max_output_tokens=MAX_TOKENS)
    # All in one batch: each has a start of its own.
    cases = [(bundle.between(*pair), text) for pair in PAIRS for text in TEXT]
    sentences = [
        sentence
        for between, text in cases
        for sentence in prepare(text, between, options, deadline=None).sentences
    ]
    results = decode(decoder, [sentences], EngineLimits())
    said = set()
    for (between, text), sentence, result in zip(cases, sentences, results, strict=True):
        assert list(sentence.source) == source_ids(between, text)
        (found,) = result.hypotheses
        expected, log_probability = generate(model, list(sentence.source), between.target_start[0], beam_size)
        assert list(found.tokens) == expected
        assert found.log_probability == pytest.approx(log_probability, abs=1e-4)
        said.add(found.tokens)
    # The language makes a difference.
    assert len(said) > len(TEXT)


def test_a_bundle_tells_its_languages(bundle: Bundle, checkpoint: Path) -> None:
    manifest = bundle.manifest
    assert (manifest.source_language, manifest.target_language) == ("mul", "mul")
    # 256,000 pieces are in memory once.
    assert bundle.source_tokenizer is bundle.target_tokenizer
    languages = manifest.languages
    if "deu_Latn" in languages.values():
        assert len(languages) == 202
        expected = {"de": "deu_Latn", "zh": "zho_Hans", "zh-Hant": "zho_Hant", "shn": "shn_Mymr"}
    else:
        assert len(languages) == 100
        expected = {"de": "__de__", "nso": "__ns__", "zh": "__zh__"}
    assert expected.items() <= languages.items()
    card = " ".join((bundle.path / "README.md").read_text().split())
    assert f"from each of these {len(languages)} languages to each other: " in card
    assert manifest.licence == "cc-by-nc-4.0"


def test_the_codes_of_flores_are_those_that_callers_write() -> None:
    codes = {"arb_Arab": "ar", "arb_Latn": "ar-Latn", "srp_Cyrl": "sr", "kas_Deva": "ks-Deva"}
    codes["zsm_Latn"] = "ms"
    assert languages_of(["<s>", *codes, "▁mul_Latn"]) == {code: token for token, code in codes.items()}


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("tokenizer_config.json", {"additional_special_tokens": 5}, "can't be read"),
        ("config.json", {"vocab_size": 40}, "is no tokenizer of this model"),
        ("generation_config.json", {"min_length": 5}, "min_length = 5"),
    ],
)
def test_what_is_not_whole_is_refused(
    checkpoint: Path, tmp_path: Path, file: str, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(FormatError, match=message):
        load_checkpoint(changed(checkpoint, tmp_path, file, change))


def test_options_for_one_pair_are_refused(checkpoint: Path, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"of many languages, .* leave --source-language de out"):
        load_checkpoint(checkpoint, Reading(source_language="de"))
    folder = shutil.copytree(checkpoint, tmp_path / "m")
    (folder / "sentencepiece.bpe.model").unlink()
    with pytest.raises(FormatError, match=r"has no sentencepiece\.bpe\.model; copy it"):
        load_checkpoint(folder)
