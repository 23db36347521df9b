"""Real graphs on real onnxruntime."""

import gc
import itertools
import random
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from dragoman_bundle.bundle import Bundle, open_bundle
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from tests.engine.tiny_graphs import EOS, VOCABULARY, tiny_bundle
from tests.shipped import shipped_bundle

from dragoman_server.engine.errors import (
    DecoderError,
    DeviceUnavailableError,
    PrecisionUnavailableError,
)
from dragoman_server.engine.limits import EngineLimits
from dragoman_server.engine.loop import Engine
from dragoman_server.engine.onnx.decoder import OnnxDecoder
from dragoman_server.engine.onnx.opening import open_decoder
from dragoman_server.engine.onnx.session import DecoderOptions
from dragoman_server.engine.request import SearchOptions, Sentence, SentenceResult


@pytest.fixture(scope="session", params=["fp32", "fp16"])
def decoder(bundle: Bundle, request: pytest.FixtureRequest) -> OnnxDecoder:
    return open_decoder(bundle, DecoderOptions(device="cpu", precision=request.param))


def random_sentences(count: int, beam_sizes: Sequence[int], seed: int) -> list[Sentence]:
    generator = random.Random(seed)
    sentences = []
    for _ in range(count):
        beam_size = generator.choice(beam_sizes)
        length = generator.choice([1, 2, 3, 5, 8, 9, 13, 17, 30])
        options = SearchOptions(
            beam_size=beam_size,
            num_hypotheses=beam_size,
            length_penalty=generator.choice([0.0, 1.0]),
            max_output_tokens=generator.randint(4, 20),
        )
        sentences.append(
            Sentence(
                source=(*generator.choices(range(4, VOCABULARY), k=length - 1), EOS),
                options=options,
                target_prefix=tuple(generator.choices(range(4, VOCABULARY), k=generator.choice([0, 0, 2]))),
                return_attention=generator.random() < 0.5,
            )
        )
    return sentences


def translate(
    decoder: OnnxDecoder, arrivals: Sequence[Sequence[Sentence]], max_rows: int
) -> list[SentenceResult]:
    """Results in order of arrival; the engine runs while later ones arrive."""
    engine = Engine(decoder, limits=EngineLimits(max_rows=max_rows, max_source_tokens=40 * max_rows))
    engine.start()
    futures = [future for sentences in arrivals for future in engine.submit(sentences)]
    results = [future.result(timeout=60) for future in futures]
    engine.close()
    return results


@pytest.mark.parametrize("beam_sizes", [[1], [4], [1, 3, 8]])
def test_batched_equals_alone(decoder: OnnxDecoder, beam_sizes: list[int]) -> None:
    sentences = random_sentences(60, beam_sizes, seed=len(beam_sizes))
    alone = [translate(decoder, [[sentence]], max_rows=16)[0] for sentence in sentences]
    tolerance = 1e-5 if decoder.precision == "fp32" else 1e-2
    for seed in range(3):
        generator = random.Random(seed)
        order = generator.sample(range(len(sentences)), k=len(sentences))
        cuts = [0, *sorted(generator.sample(range(1, len(order)), k=6)), len(order)]
        arrivals = [[sentences[i] for i in order[a:b]] for a, b in itertools.pairwise(cuts)]
        results = translate(decoder, arrivals, max_rows=generator.choice([17, 40, 320]))
        for i, result in zip(order, results, strict=True):
            for found, expected in zip(result.hypotheses, alone[i].hypotheses, strict=True):
                if decoder.precision == "fp32":
                    assert found.tokens == expected.tokens
                    assert found.finish_reason == expected.finish_reason
                    if sentences[i].return_attention:
                        np.testing.assert_allclose(found.attention, expected.attention, atol=1e-5)
                assert found.score == pytest.approx(expected.score, abs=tolerance)


def test_attention_sums_to_one_over_the_source(decoder: OnnxDecoder) -> None:
    sentences = [s for s in random_sentences(30, [3], seed=9) if s.return_attention]
    for sentence, result in zip(sentences, translate(decoder, [sentences], max_rows=64), strict=True):
        for hypothesis in result.hypotheses:
            assert hypothesis.attention is not None
            assert hypothesis.attention.shape[1] == len(sentence.source)
            np.testing.assert_allclose(hypothesis.attention.sum(axis=1), 1, atol=1e-5)


def test_the_decoder_tells_where_it_runs(bundle: Bundle) -> None:
    decoder = open_decoder(bundle, DecoderOptions(device="cpu", precision="fp32", num_threads=1))
    assert decoder.providers == {"encoder": "CPUExecutionProvider", "decoder_step": "CPUExecutionProvider"}
    assert decoder.precision == "fp32"


def test_auto_falls_to_the_cpu_and_its_precision(bundle: Bundle) -> None:
    decoder = open_decoder(bundle, DecoderOptions())
    assert decoder.providers["encoder"] in ("CPUExecutionProvider", "CUDAExecutionProvider")
    assert decoder.precision == ("fp32" if decoder.providers["encoder"].startswith("CPU") else "fp16")


def test_auto_runs_a_bundle_that_has_only_int8_on_the_cpu(
    tmp_path: Path, tokenizer: Tokenizer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    decoder = open_decoder(tiny_bundle(tmp_path, tokenizer, ("int8",)), DecoderOptions())
    assert decoder.precision == "int8"
    assert set(decoder.providers.values()) == {"CPUExecutionProvider"}
    assert caplog.messages == ["tiny/1 runs on the CPU: int8 graphs are for CPUs, and it has no others"]


def test_int8_is_what_a_cpu_prefers(tmp_path: Path, tokenizer: Tokenizer) -> None:
    bundle = tiny_bundle(tmp_path, tokenizer, ("fp32", "int8"))
    assert open_decoder(bundle, DecoderOptions(device="cpu")).precision == "int8"


def test_a_precision_the_bundle_lacks_is_refused_and_those_present_are_named(bundle: Bundle) -> None:
    with pytest.raises(PrecisionUnavailableError, match=r"no int8 graphs.*it has fp32, fp16"):
        open_decoder(bundle, DecoderOptions(device="cpu", precision="int8"))


def test_cuda_that_is_not_there_is_refused_with_the_reason(bundle: Bundle) -> None:
    if open_decoder(bundle, DecoderOptions()).providers["encoder"] == "CUDAExecutionProvider":
        pytest.skip("there is a GPU")
    with pytest.raises(DeviceUnavailableError, match="cuda cannot"):
        open_decoder(bundle, DecoderOptions(device="cuda"))


def test_a_graph_that_does_not_fit_the_contract_is_refused_at_opening(
    tmp_path: Path, tokenizer: Tokenizer
) -> None:
    bundle = tiny_bundle(tmp_path, tokenizer)
    encoder = tmp_path / "fp32" / "encoder.onnx"
    (tmp_path / "fp32" / "decoder_step.onnx").write_bytes(encoder.read_bytes())
    with pytest.raises(DecoderError, match="cannot be run in fp32 on cpu"):
        open_decoder(bundle, DecoderOptions(device="cpu"))


def resident_kib() -> int:
    gc.collect()
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["VmRSS"].split()[0])


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_what_a_large_batch_took_is_given_back_and_decoding_stays_the_same() -> None:
    decoder = open_decoder(open_bundle(shipped_bundle("de-en")), DecoderOptions(device="cpu"))
    options = SearchOptions(beam_size=5, num_hypotheses=1, length_penalty=1.0, max_output_tokens=3)
    many = [Sentence(source=(7,) * 99, options=options)] * 64
    one = [Sentence(source=(5, 6, 7), options=options)]
    before, [result] = resident_kib(), translate(decoder, [one], max_rows=320)
    translate(decoder, [many], max_rows=320)
    grown = resident_kib()
    decoder.release_memory()
    released = resident_kib()
    assert grown - before > 50_000
    assert released - before < (grown - before) / 2
    [again] = translate(decoder, [one], max_rows=320)
    assert [h.tokens for h in again.hypotheses] == [h.tokens for h in result.hypotheses]
    assert [h.score for h in again.hypotheses] == [h.score for h in result.hypotheses]
