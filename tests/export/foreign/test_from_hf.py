"""A MarianMT checkpoint becomes a bundle that our engine decodes to what `generate()` does."""

import json
import os
import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from dragoman_bundle import Bundle, search
from tests.engine import house
from tests.export.commands import got, refusal
from tests.export.foreign.imported import imported, open_reference
from tests.export.marian_checkpoint import SOURCE_TEXT, TARGET_TEXT, changed, their_tokenizer, write_marian

from dragoman_export.graphs.step_end import block_size
from dragoman_export.importers.files import FormatError
from dragoman_export.importers.hf import load_checkpoint
from dragoman_export.importers.reading import Reading
from dragoman_server.engine import EngineLimits, SearchOptions, Sentence, SentenceResult
from dragoman_server.engine.onnx.opening import open_decoder
from dragoman_server.engine.onnx.session import DecoderOptions
from dragoman_server.text.options import Protection, TranslationOptions
from dragoman_server.text.stages import prepare

TEXTS = [
    *SOURCE_TEXT,
    "der hund",
    "mann",
    "ein roter fisch sucht den alten mann und den vogel heute",
    "☃ hund é",
    ">>fra<< der mann ruft",
    "",
]
MAX_TOKENS = 25


@pytest.fixture(
    scope="module",
    params=[False, pytest.param(True, marks=pytest.mark.long)],
    ids=["one-vocabulary", "two-vocabularies"],
)
def checkpoint(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hub") / "opus-mt-de-en"
    write_marian(folder, separate=request.param)
    return folder


@pytest.fixture(scope="module")
def bundle(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    folder = tmp_path_factory.mktemp("models") / "opus-de-en" / "1"
    return got(checkpoint, folder, "--precisions", "fp32,int8")


def sources(bundle: Bundle) -> list[list[int]]:
    return [[*ids, bundle.manifest.source_ids.eos] for ids in bundle.source_tokenizer.encode_ids(TEXTS)]


def decode(bundle: Bundle, precision: str, beam_size: int) -> list[SentenceResult]:
    decoder = open_decoder(bundle, DecoderOptions(device="cpu", precision=precision, num_threads=1))
    options = SearchOptions(
        beam_size=beam_size, num_hypotheses=1, length_penalty=0.0, max_output_tokens=MAX_TOKENS
    )
    given = map(tuple, sources(bundle))
    sentences = [Sentence(source=source, options=options, return_attention=True) for source in given]
    return house.decode(decoder, [sentences], EngineLimits())


@cache
def their_model(folder: Path) -> Any:
    from transformers import MarianMTModel

    return MarianMTModel.from_pretrained(folder).eval()


@torch.inference_mode()
def generate(
    folder: Path,
    source: list[int],
    beam_size: int,
    *,
    length_penalty: float = 0.0,
    early_stopping: bool = True,
) -> tuple[list[int], float]:
    """The best translation's ids without its end, and its log-probability over length^length_penalty.

    At the limit theirs ends with a certain end, and ours without one: the same tokens and the same score.
    The token that pads is left out before probabilities are made, as ours does and as Marian does; theirs
    would leave it out after. By default the search ends as ours does.
    """
    output: Any = their_model(folder).generate(
        torch.tensor([source]),
        num_beams=beam_size,
        do_sample=False,
        length_penalty=length_penalty,
        early_stopping=early_stopping and beam_size > 1,
        renormalize_logits=True,
        max_length=MAX_TOKENS + 2,  # its start and its end
        return_dict_in_generate=True,
        output_scores=True,
    )
    ids = output.sequences[0, 1:].tolist()
    if beam_size > 1:
        return ids[: ids.index(0)], float(output.sequences_scores[0])
    scores = [score[0].log_softmax(-1)[id_] for score, id_ in zip(output.scores, ids, strict=True)]
    return ids[: ids.index(0)], float(sum(scores))


@pytest.mark.parametrize("beam_size", [1, 4])
def test_the_engine_finds_what_generate_finds(checkpoint: Path, bundle: Bundle, beam_size: int) -> None:
    lengths = set()
    for source, result in zip(sources(bundle), decode(bundle, "fp32", beam_size), strict=True):
        (found,) = result.hypotheses
        ids, log_probability = generate(checkpoint, source, beam_size)
        assert list(found.tokens) == ids
        assert found.log_probability == pytest.approx(log_probability, abs=1e-4)
        lengths.add(len(ids))
    assert len(lengths) > 2


def test_where_lengths_count_the_search_differs_in_how_it_divides_and_when_it_ends(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The first of the two made theirs.
    monkeypatch.setattr(search, "length_penalty", lambda num_tokens, alpha: float(num_tokens**alpha))
    subject = load_checkpoint(checkpoint)
    source, stepper = subject.source_tokenizer, open_reference(subject)
    decoding = replace(subject.decoding, length_penalty=1.0, max_output_tokens=MAX_TOKENS)
    generator = np.random.default_rng(1)
    better = 0
    for length in generator.integers(2, 12, 16):
        ids = [*generator.integers(2, source.bos_id, length).tolist(), source.eos_id]
        ours = search.beam_search(stepper, [ids], decoding)[0][0]
        tokens, score = generate(checkpoint, ids, decoding.beam_size, length_penalty=1.0)
        assert list(ours.tokens) == tokens
        if ours.ended:  # At the limit theirs is longer, by a certain end.
            assert ours.score == pytest.approx(score, abs=1e-4)
        beam = decoding.beam_size
        tokens, score = generate(checkpoint, ids, beam, length_penalty=1.0, early_stopping=False)
        if list(ours.tokens) != tokens:
            # It went on, and found one that is better by its measure.
            assert score > ours.score
            better += 1
    assert better > 0


@pytest.mark.parametrize(
    ("changes", "told", "not_told"),
    [
        ({}, "`early_stopping=False`, a search", "any length"),
        ({"early_stopping": "never"}, "`early_stopping='never'`, a search", "the length it has"),
        ({"early_stopping": True}, "here before, as with `renormalize_logits=True`", "early_stopping"),
        ({"renormalize_logits": True}, "`early_stopping=False`, a search", "renormalize_logits"),
        ({"forced_eos_token_id": 0}, "ends with a token that is forced; here it is cut", "any length"),
        ({"forced_eos_token_id": None}, "`early_stopping=False`, a search", "is forced"),
    ],
)
def test_the_card_tells_where_the_search_is_defined_otherwise(
    checkpoint: Path, tmp_path: Path, changes: dict[str, Any], told: str, not_told: str
) -> None:
    training = load_checkpoint(changed(checkpoint, tmp_path, "generation_config.json", changes)).training
    training = " ".join(training.split())
    assert "here by ((5 + length) / 6)^a" in training
    assert told in training
    assert not_told not in training


@torch.inference_mode()
def test_alignments_are_those_that_marian_gives_out(checkpoint: Path, bundle: Bundle) -> None:
    from transformers import MarianMTModel

    source = sources(bundle)[0]
    (found,) = decode(bundle, "fp32", 1)[0].hypotheses
    assert found.attention is not None
    model = MarianMTModel.from_pretrained(checkpoint, attn_implementation="eager").eval()
    read = torch.tensor([[model.config.decoder_start_token_id, *found.tokens]])
    output: Any = model(torch.tensor([source]), decoder_input_ids=read, output_attentions=True)
    theirs_UT = output.cross_attentions[-1][0, 0, : len(found.attention)].numpy()
    assert theirs_UT == pytest.approx(found.attention, abs=1e-4)
    assert not bundle.manifest.attention_of_input


def test_ids_and_text_are_those_of_their_tokenizer(checkpoint: Path, bundle: Bundle) -> None:
    theirs = their_tokenizer(checkpoint)
    for text, ids in zip(TEXTS, sources(bundle), strict=True):
        assert theirs(text)["input_ids"] == ids
        assert [*bundle.source_tokenizer.encode(text).ids, bundle.manifest.source_ids.eos] == ids
    for text in TARGET_TEXT:
        ids = bundle.target_tokenizer.encode_ids([text])[0]
        assert [*ids, 0] == theirs(text_target=text)["input_ids"]
        assert bundle.target_tokenizer.decode(ids).text == text == theirs.decode(ids)


def test_bundle_holds_the_vocabulary_and_says_what_it_is(checkpoint: Path, bundle: Bundle) -> None:
    manifest = bundle.manifest
    is_separate = (checkpoint / "target_vocab.json").exists()
    expected = ("source.vocab.json", "target.vocab.json") if is_separate else ("vocab.json", "vocab.json")
    assert (manifest.source_pieces, manifest.target_pieces) == expected
    assert set(expected) < set(manifest.files)
    assert (bundle.path / expected[0]).read_bytes() == (checkpoint / "vocab.json").read_bytes()
    assert (manifest.source_language, manifest.target_language) == ("de", "en")
    assert manifest.licence == "cc-by-4.0"
    assert manifest.target_ids.bos == manifest.target_ids.pad < manifest.target_vocabulary
    assert block_size(manifest.target_vocabulary) is not None
    assert manifest.decoding.beam_size == 4
    assert (manifest.decoding.max_source_tokens, manifest.decoding.max_output_tokens) == (64, 47)
    card = (bundle.path / "README.md").read_text()
    assert "dragoman get opus-mt-de-en \\\n  --out" in card
    assert "here by ((5 + length) / 6)^a" in card
    assert not (bundle.path / "recipe.toml").exists()


def test_spans_of_source_tokens_cut_the_text(bundle: Bundle) -> None:
    text = ">>fra<< der mann ruft"
    tokenized = bundle.source_tokenizer.encode(text)
    assert tokenized.spans[0] == (0, 7)
    # The space behind it belongs to no token.
    assert "".join(text[start:end] for start, end in tokenized.spans) == ">>fra<<der mann ruft"
    assert bundle.source_tokenizer.piece(tokenized.ids[-1]).endswith("t")


def test_a_bundle_of_one_target_language_begins_every_sentence_with_its_token(
    checkpoint: Path, bundle: Bundle, tmp_path: Path
) -> None:
    folder = tmp_path / "de-fr" / "1"
    options = ["--target-language", "fr", "--language-token", ">>fra<<", "--precisions", "fp32"]
    french = got(checkpoint, folder, *options)
    assert (french.manifest.target_language, french.manifest.language_token) == ("fr", ">>fra<<")
    asked = TranslationOptions(beam_size=1, length_penalty=1.0, protection=Protection(is_automatic=False))
    document = prepare("Der Hund ruft. Der Mann sieht.\nDer alte Vogel.", french, asked, deadline=None)
    expected = [
        bundle.source_tokenizer.encode_ids([f">>fra<< {text}"])[0]
        for text in ("Der Hund ruft.", "Der Mann sieht.", "Der alte Vogel.")
    ]
    eos = french.manifest.source_ids.eos
    assert [list(sentence.source) for sentence in document.sentences] == [[*ids, eos] for ids in expected]
    card = (folder / "README.md").read_text()
    assert "dragoman get opus-mt-de-en --target-language fr --language-token '>>fra<<' \\\n  --out" in card
    with pytest.raises(FormatError, match="has no language token '>>spa<<'; it has >>fra<<"):
        load_checkpoint(checkpoint, Reading(language_token=">>spa<<"))


@pytest.mark.parametrize("way", ["added_tokens.json", "tokenizer_config.json"])
def test_a_language_token_that_was_added_to_the_tokenizer_is_read(tmp_path: Path, way: str) -> None:
    folder = tmp_path / "m"
    # As after `resize_token_embeddings`: more ids than the vocabulary has.
    write_marian(folder, vocab_size=64, decoder_vocab_size=64)
    free = len(json.loads((folder / "vocab.json").read_text()))
    their = their_tokenizer(folder)
    their.add_special_tokens({"extra_special_tokens": [">>spa<<"]})
    their.save_pretrained(tmp_path / "saved")
    if way == "added_tokens.json":
        (folder / way).write_text(json.dumps({">>spa<<": free}))
    else:
        shutil.copy(tmp_path / "saved" / way, folder)
    text = ">>spa<< der mann ruft"
    expected = their_tokenizer(folder)(text)["input_ids"]
    assert expected[0] == free
    source = load_checkpoint(folder).source_tokenizer
    assert [*source.encode_ids([text])[0], 0] == expected
    assert source.piece(free) == ">>spa<<"
    preset = load_checkpoint(folder, Reading(language_token=">>spa<<")).source_tokenizer
    assert [*preset.encode_ids(["der mann ruft"])[0], 0] == expected


SEPARATOR = {"content": "<sep>", "special": True}


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("added_tokens.json", {"<sep>": 40, "[URL]": 41, ">>spa<<": 42}, r"know: '<sep>', '\[URL\]'\. Of"),
        ("tokenizer_config.json", {"added_tokens_decoder": {"40": SEPARATOR}}, "not know: '<sep>'"),
        ("tokenizer_config.json", {"additional_special_tokens": ["<sep>"]}, "not know: '<sep>'"),
        ("special_tokens_map.json", {"additional_special_tokens": [{"content": "<sep>"}]}, "know: '<sep>'"),
        ("tokenizer_config.json", {"extra_special_tokens": [">>spa<<"]}, "not know: '>>spa<<'"),
        # In the vocabulary, but sentencepiece would cut it.
        ("added_tokens.json", {"hund": 40}, "not know: 'hund'"),
        ("added_tokens.json", {">>fra<<": 40}, "'>>fra<<' has the id 40, and [0-9]+ in the vocabulary"),
        ("added_tokens.json", {">>spa<<": 999}, "'>>spa<<' has the id 999; there are 64"),
        ("added_tokens.json", {">>spa<<": "x"}, "can't be read: ValueError"),
        ("tokenizer_config.json", {"added_tokens_decoder": {"40": {}}}, "can't be read: KeyError"),
    ],
)
def test_tokens_that_were_added_and_would_be_lost_are_refused_by_name(
    tmp_path: Path, file: str, change: dict[str, Any], message: str
) -> None:
    folder = tmp_path / "m"
    write_marian(folder, vocab_size=64, decoder_vocab_size=64)
    path = folder / file
    path.write_text(json.dumps((json.loads(path.read_text()) if path.exists() else {}) | change))
    with pytest.raises(FormatError, match=message):
        load_checkpoint(folder)


def test_older_files_of_weights_are_read_as_well(tmp_path: Path) -> None:
    model = write_marian(tmp_path / "m")
    (tmp_path / "m" / "model.safetensors").unlink()
    for format_of_2020 in (False, True):
        path = tmp_path / "m" / "pytorch_model.bin"
        torch.save(model.state_dict(), path, _use_new_zipfile_serialization=not format_of_2020)
        loaded = imported(load_checkpoint(tmp_path / "m"))
        assert np.array_equal(loaded.weights["output.bias"], model.final_logits_bias[0].numpy())
        shared = model.model.shared.weight.detach().numpy()
        assert np.array_equal(loaded.weights["source_embedding.weight"], shared)


class Harm:
    """What runs something where a pickle of it is loaded."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (os.system, ("touch harmed",))


def test_a_file_of_weights_that_would_run_something_is_refused(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = shutil.copytree(checkpoint, tmp_path / "m")
    (folder / "model.safetensors").unlink()
    for is_zip in (True, False):
        torch.save({"x": Harm()}, folder / "pytorch_model.bin", _use_new_zipfile_serialization=is_zip)
        with pytest.raises(FormatError, match=r"names posix\.system, which no weights need"):
            load_checkpoint(folder)
    assert not (tmp_path / "harmed").exists()


def test_weights_that_are_not_those_of_the_configuration_are_refused(tmp_path: Path) -> None:
    model = write_marian(tmp_path / "m")
    (tmp_path / "m" / "model.safetensors").unlink()
    whole = model.state_dict()
    lost = {key: value for key, value in whole.items() if "decoder.layers.1.fc1" not in key}
    torch.save(lost, tmp_path / "m" / "pytorch_model.bin")
    with pytest.raises(FormatError, match=r"decoder\.layers\.1\.fc1\.bias is only in one of them"):
        load_checkpoint(tmp_path / "m")
    more = whole | {"model.encoder.layers.9.fc1.bias": torch.zeros(3)}
    torch.save(more, tmp_path / "m" / "pytorch_model.bin")
    with pytest.raises(FormatError, match=r"encoder\.layers\.9\.fc1\.bias is only in one of them"):
        load_checkpoint(tmp_path / "m")


@pytest.mark.parametrize("file", ["model.safetensors", "pytorch_model.bin"])
def test_damaged_weights_are_refused(checkpoint: Path, tmp_path: Path, file: str) -> None:
    folder = shutil.copytree(checkpoint, tmp_path / "m")
    weights = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").unlink()
    (folder / file).write_bytes(weights[:5000])
    with pytest.raises(FormatError, match="is damaged, or no file of weights"):
        load_checkpoint(folder)


@pytest.mark.parametrize("missing", ["config.json", "model.safetensors", "source.spm", "vocab.json"])
def test_file_that_is_missing_is_named(checkpoint: Path, tmp_path: Path, missing: str) -> None:
    folder = shutil.copytree(checkpoint, tmp_path / "m")
    (folder / missing).unlink()
    assert missing.split(".")[0] in refusal(folder, tmp_path / "o" / "1")


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("config.json", {"model_type": "bart"}, "of type 'bart'; known are marian, m2m_100"),
        ("config.json", {"decoder_ffn_dim": 48, "encoder_attention_heads": 2}, "decoder_attention_heads 4"),
        ("config.json", {"activation_function": "tanh"}, "activation_function is 'tanh'; known are swish"),
        ("generation_config.json", {"bad_words_ids": [[3, 4]]}, r"keeps out the sequence \[3, 4\]"),
        ("tokenizer_config.json", {"source_lang": None}, "names one source language; give it with --source-"),
        ("vocab.json", {"<unk>": "one"}, "whole number for each piece"),
        ("vocab.json", {"x": 9999}, "piece 'x' has the id 9999; there are"),
        ("config.json", {"decoder_start_token_id": None}, r"config\.json is none of a model: decoder_start"),
        ("generation_config.json", {"min_length": 8}, "min_length = 8, which no search of ours knows"),
        ("generation_config.json", {"no_repeat_ngram_size": 2}, "no_repeat_ngram_size = 2"),
        ("generation_config.json", {"guidance_scale": 1.5}, "guidance_scale = 1.5"),
        ("generation_config.json", {"forced_bos_token_id": 5}, "forced_bos_token_id = 5"),
        ("generation_config.json", {"repetition_penalty": 1.5}, "repetition_penalty = 1.5"),
        ("generation_config.json", {"eos_token_id": [0, 5]}, r"eos_token_id is \[0, 5\] in generation_con"),
        ("generation_config.json", {"bad_words_ids": [[99999]]}, "keeps out token 99999, and there are"),
    ],
)
def test_what_cannot_be_exported_is_refused_with_the_reason(
    checkpoint: Path, tmp_path: Path, file: str, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(FormatError, match=message):
        load_checkpoint(changed(checkpoint, tmp_path, file, change))


def test_the_end_is_never_kept_out_and_most_new_tokens_go_before_the_greatest_length(
    checkpoint: Path, tmp_path: Path
) -> None:
    file = "generation_config.json"
    barred = json.loads((checkpoint / file).read_text())["bad_words_ids"]
    changes = {"bad_words_ids": [*barred, [0]], "max_new_tokens": 30}
    subject = load_checkpoint(changed(checkpoint, tmp_path, file, changes))
    assert 0 not in imported(subject).architecture.never_produced
    assert imported(subject).architecture == imported(load_checkpoint(checkpoint)).architecture
    assert subject.decoding.max_output_tokens == 30


@pytest.mark.parametrize(("text", "message"), [("[]", "is no JSON object"), ("{", "is not JSON")])
@pytest.mark.parametrize("file", ["tokenizer_config.json", "metadata.json"])
def test_a_file_that_is_no_table_is_refused(
    checkpoint: Path, tmp_path: Path, file: str, text: str, message: str
) -> None:
    folder = shutil.copytree(checkpoint, tmp_path / "m")
    (folder / file).write_text(text)
    with pytest.raises(FormatError, match=f"{file} {message}"):
        load_checkpoint(folder)


def test_what_is_no_language_or_no_folder_here_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"^there is no folder .*opus"):
        load_checkpoint(tmp_path / "opus")
    said = refusal(checkpoint, tmp_path / "o" / "1", "--source-language", "../x")
    assert "the source language is '../x', which is no code of a language" in said


def test_an_output_layer_of_its_own_decodes_as_generate_does(tmp_path: Path) -> None:
    checkpoint = tmp_path / "opus-mt-de-en"
    model = write_marian(checkpoint, separate=True, tie_word_embeddings=False)
    assert not torch.equal(model.lm_head.weight, model.model.decoder.embed_tokens.weight)
    # In int8 a model of CTranslate2 has such a layer.
    bundle = got(checkpoint, tmp_path / "untied" / "1", "--precisions", "fp32")
    for source, found in zip(sources(bundle), decode(bundle, "fp32", 4), strict=True):
        ids, log_probability = generate(checkpoint, source, 4)
        assert list(found.hypotheses[0].tokens) == ids
        assert found.hypotheses[0].log_probability == pytest.approx(log_probability, abs=1e-4)
