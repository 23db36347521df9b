"""A translation depends on no neighbour; with a shortlist a sentence chooses from its own candidates."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from dragoman_bundle import Bundle, Shortlist, open_bundle
from dragoman_bundle.manifest import STEP_GRAPH
from tests.engine.exported import step_input
from tests.engine.house import decode, in_random_order, searched
from tests.shipped import shipped_bundle

from dragoman_server.engine import EngineLimits, Sentence, SentenceResult
from dragoman_server.engine.onnx import opening
from dragoman_server.engine.onnx.decoder import OnnxDecoder
from dragoman_server.engine.onnx.host_decoder import HostDecoder
from dragoman_server.engine.onnx.opening import open_decoder
from dragoman_server.engine.onnx.session import DecoderOptions

TOLERANCE = {"fp32": 1e-5, "int8": 1e-3}


@pytest.fixture(scope="module")
def bundle(toy_checkpoint: Path, toy_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """A trained model with a shortlist so short that sentences differ in it."""
    from dragoman_export.cli import export

    folder = tmp_path_factory.mktemp("models") / "toy" / "1"
    options = ["--shortlist", "--recipe-folder", toy_folder, "--shortlist-targets", 4]
    options += ["--shortlist-frequent", 3, "--shortlist-probability", 0.02]
    result = CliRunner().invoke(export, [str(o) for o in (toy_checkpoint, "--out", folder, *options)])
    assert result.exit_code == 0, result.output
    return open_bundle(folder)


@pytest.fixture(scope="module")
def lines(toy_folder: Path) -> list[str]:
    """Eighty sentences, a fifth of them several in one."""
    short = (toy_folder / "train.de").read_text().splitlines()[:64]
    return short + [" ".join(short[i : i + 2 + i % 5]) for i in range(16)]


def sentences(
    bundle: Bundle, lines: list[str], beam_size: int, prefix: tuple[int, ...] = ()
) -> list[Sentence]:
    options, eos = searched(beam_size, 30), bundle.manifest.source_ids.eos
    return [
        Sentence(source=(*ids, eos), options=options, target_prefix=prefix if place % 3 == 0 else ())
        for place, ids in enumerate(bundle.source_tokenizer.encode_ids(lines))
    ]


def translate(
    decoder: OnnxDecoder, arrivals: list[list[Sentence]], max_rows: int = 320
) -> list[SentenceResult]:
    return decode(decoder, arrivals, EngineLimits(max_rows=max_rows, max_beam_size=min(16, max_rows)))


def assert_equal(found: SentenceResult, expected: SentenceResult, tolerance: float) -> None:
    for mine, theirs in zip(found.hypotheses, expected.hypotheses, strict=True):
        assert mine.tokens == theirs.tokens
        assert mine.score == pytest.approx(theirs.score, rel=0, abs=tolerance)
        assert mine.log_probability == pytest.approx(theirs.log_probability, rel=0, abs=tolerance)


def outside(bundle: Bundle, sentence: Sentence) -> list[int]:
    """Target tokens that are none of the sentence's candidates, and that a model may say."""
    assert bundle.shortlist is not None
    (own,) = bundle.shortlist.candidates([sentence.source])
    return np.setdiff1d(np.arange(4, bundle.manifest.target_vocabulary), own).tolist()


def with_shortlist(bundle: Bundle, always: np.ndarray) -> Bundle:
    """The bundle with these candidates for every sentence."""
    shortlist = Shortlist(
        first_V=np.zeros(bundle.manifest.source_vocabulary + 1, np.uint32),
        target_N=np.empty(0, np.uint16),
        always=always.astype(np.uint16),
        target_vocabulary=bundle.manifest.target_vocabulary,
    )
    return replace(bundle, shortlist=shortlist)


def check_neighbours_do_not_matter(decoder: OnnxDecoder, wanted: list[Sentence], tolerance: float) -> None:
    """Decodes each sentence alone, then all of them in batches of several sizes and orders of arrival."""
    alone = [translate(decoder, [[sentence]])[0] for sentence in wanted]
    for seed, max_sentences in enumerate((64, 20, 3)):
        order, arrivals = in_random_order(wanted, seed, num_calls=10)
        results = translate(decoder, arrivals, max_rows=max_sentences * wanted[0].options.beam_size)
        for i, result in zip(order, results, strict=True):
            assert_equal(result, alone[i], tolerance)


@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize("beam_size", [1, pytest.param(4, marks=pytest.mark.long), 8])
def test_a_translation_does_not_depend_on_its_neighbours(
    toy_models: Path, lines: list[str], precision: str, beam_size: int
) -> None:
    bundle = open_bundle(toy_models / "toy" / "1")
    decoder = open_decoder(bundle, DecoderOptions(device="cpu", precision=precision))
    check_neighbours_do_not_matter(decoder, sentences(bundle, lines, beam_size), TOLERANCE[precision])


@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize("beam_size", [1, pytest.param(4, marks=pytest.mark.long), 8])
@pytest.mark.parametrize("has_prefixes", [False, True])
def test_nor_does_it_with_a_shortlist(
    bundle: Bundle, lines: list[str], precision: str, beam_size: int, has_prefixes: bool
) -> None:
    decoder = open_decoder(bundle, DecoderOptions(device="cpu", precision=precision))
    # As on a GPU, where a greedy search has the shortlist too.
    sessions = {graph: session for graph, session in decoder.sessions.items() if graph != STEP_GRAPH}
    decoder = HostDecoder(bundle, decoder.options, sessions)
    # The prefix is of tokens that are no candidates of the first sentence, and of some that are.
    prefix = tuple(outside(bundle, sentences(bundle, lines, 1)[0])[:2]) if has_prefixes else ()
    check_neighbours_do_not_matter(decoder, sentences(bundle, lines, beam_size, prefix), TOLERANCE[precision])


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_every_continuation_is_a_candidate_of_its_own_sentence(
    bundle: Bundle, lines: list[str], precision: str
) -> None:
    decoder = open_decoder(bundle, DecoderOptions(device="cpu", precision=precision))
    sources = [sentence.source for sentence in sentences(bundle, lines, 1)]
    assert bundle.shortlist is not None
    own = [set(tokens.tolist()) for tokens in bundle.shortlist.candidates(sources)]
    assert all(candidates < set.union(*own) for candidates in own)
    S, K = len(sources), 8
    batch = decoder.open_batch(K)
    batch.regroup(np.arange(S), [decoder.encode(sources[:30], K), decoder.encode(sources[30:], K)], 64)
    token_SK = np.full((S, K), decoder.bos)
    parent_SK = np.repeat(np.arange(S)[:, None], K, axis=1)
    score_SK = np.full((S, K), -np.inf, np.float32)
    score_SK[:, 0] = 0
    for _ in range(4):
        output = batch.step(step_input(token_SK, parent_SK, score_SK))
        row_SC, token_SC = np.divmod(output.top_index_SC, decoder.target_vocabulary)
        for s in range(S):
            is_real = output.top_score_SC[s] > -np.inf
            assert is_real.any()
            assert set(token_SC[s][is_real].tolist()) <= own[s]
        token_SK, score_SK = token_SC[:, :K], output.top_score_SC[:, :K].copy()
        parent_SK = row_SC[:, :K] + np.arange(S)[:, None] * K


@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize(("beam_size", "is_large"), [(1, True), (2, False), (5, False)])
def test_the_whole_vocabulary_as_candidates_is_as_good_as_no_shortlist(
    bundle: Bundle,
    lines: list[str],
    monkeypatch: pytest.MonkeyPatch,
    precision: str,
    beam_size: int,
    is_large: bool,
) -> None:
    """A greedy search on a CPU has one of a large vocabulary alone."""
    vocabulary = bundle.manifest.target_vocabulary
    monkeypatch.setattr(opening, "GREEDY_SHORTLIST_VOCABULARY", vocabulary + (not is_large))
    wanted = sentences(bundle, lines, beam_size, prefix=(5, 6))
    plain = open_decoder(bundle, DecoderOptions(device="cpu", precision=precision, use_shortlist=False))
    assert not plain.has_shortlist(4)
    whole = with_shortlist(bundle, np.arange(vocabulary))
    decoder = open_decoder(whole, DecoderOptions(device="cpu", precision=precision))
    assert (decoder.has_shortlist(4), decoder.has_shortlist(1)) == (True, is_large)
    # The whole layer's step takes memory, and nothing needs it where a greedy search has the shortlist, too.
    graphs = ("encoder", "decoder_step_shortlist", "shortlist", *([] if is_large else ["decoder_step"]))
    assert decoder.providers == dict.fromkeys(graphs, "CPUExecutionProvider")
    assert plain.providers == dict.fromkeys(("encoder", "decoder_step"), "CPUExecutionProvider")
    for found, expected in zip(translate(decoder, [wanted]), translate(plain, [wanted]), strict=True):
        assert_equal(found, expected, TOLERANCE[precision])


def test_candidates_change_what_is_found(bundle: Bundle, lines: list[str]) -> None:
    eos = bundle.manifest.target_ids.eos
    narrow = open_decoder(with_shortlist(bundle, np.array([eos, 7, 8])), DecoderOptions(device="cpu"))
    (result,) = translate(narrow, [sentences(bundle, lines, 4)[:1]])
    assert {token for hypothesis in result.hypotheses for token in hypothesis.tokens} <= {7, 8}


@pytest.mark.parametrize("stays_on_device", [False, True])
def test_a_greedy_search_on_a_cpu_has_no_shortlist_of_a_small_vocabulary(
    bundle: Bundle, lines: list[str], stays_on_device: bool
) -> None:
    eos = bundle.manifest.target_ids.eos
    options = DecoderOptions(device="cpu", stays_on_device=stays_on_device)
    decoder = open_decoder(with_shortlist(bundle, np.array([eos, 7, 8])), options)
    assert decoder.has_shortlist(2)
    assert not decoder.has_shortlist(1)
    plain = open_decoder(bundle, DecoderOptions(device="cpu", use_shortlist=False))
    greedy, beams = sentences(bundle, lines, 1)[:20], sentences(bundle, lines, 2)[:20]
    # Both at the same time, in lanes of their own.
    results = translate(decoder, [[*greedy, *beams]])
    for found, expected in zip(results, translate(plain, [greedy]), strict=False):
        assert_equal(found, expected, TOLERANCE["int8"])
    for result in results[20:]:
        assert {token for hypothesis in result.hypotheses for token in hypothesis.tokens} <= {7, 8}


def test_fewer_candidates_than_the_beam_asks_for_break_nothing(bundle: Bundle, lines: list[str]) -> None:
    only_eos = with_shortlist(bundle, np.array([bundle.manifest.target_ids.eos]))
    decoder = open_decoder(only_eos, DecoderOptions(device="cpu"))
    for result in translate(decoder, [sentences(bundle, lines, 5)[:7]]):
        assert [h.tokens for h in result.hypotheses] == [()]
        assert result.hypotheses[0].log_probability == pytest.approx(0, abs=1e-6)


def test_a_prefix_of_tokens_that_are_no_candidates_is_followed(bundle: Bundle, lines: list[str]) -> None:
    decoder = open_decoder(bundle, DecoderOptions(device="cpu", precision="fp32"))
    (sentence,) = sentences(bundle, lines[:1], 4)
    for prefix in (tuple(outside(bundle, sentence)[:3]), tuple(outside(bundle, sentence)[:1]) * 3):
        (result,) = translate(decoder, [[replace(sentence, target_prefix=prefix)]])
        for hypothesis in result.hypotheses:
            assert hypothesis.tokens[: len(prefix)] == prefix
            assert -np.inf < hypothesis.log_probability < 0


@pytest.mark.parametrize("use_shortlist", [pytest.param(False, marks=pytest.mark.long), True])
def test_nor_does_that_of_the_shipped_model(lines: list[str], use_shortlist: bool) -> None:
    bundle = open_bundle(shipped_bundle("de-en"))
    options = DecoderOptions(device="cpu", precision="int8", use_shortlist=use_shortlist)
    decoder = open_decoder(bundle, options)
    check_neighbours_do_not_matter(decoder, sentences(bundle, lines, 5), TOLERANCE["int8"])
