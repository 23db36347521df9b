"""Real graphs on real onnxruntime, and where they run."""

import gc
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from dragoman_bundle.bundle import Bundle, open_bundle
from tests.engine.exported import export_family, random_sentences
from tests.engine.house import decode, in_random_order, searched
from tests.shipped import shipped_bundle

from dragoman_server.engine.errors import DecoderError, PrecisionUnavailableError
from dragoman_server.engine.limits import EngineLimits
from dragoman_server.engine.onnx.decoder import OnnxDecoder
from dragoman_server.engine.onnx.opening import open_decoder
from dragoman_server.engine.onnx.session import (
    CPU_PROVIDER,
    CUDA_PROVIDER,
    DecoderOptions,
    find_strays,
    open_session,
)
from dragoman_server.engine.request import Sentence, SentenceResult


@pytest.fixture(scope="session")
def decoder(bundle: Bundle) -> OnnxDecoder:
    """In the precision of GPUs; the others are those of `test_families`."""
    return open_decoder(bundle, DecoderOptions(device="cpu", precision="fp16"))


def translate(
    decoder: OnnxDecoder, arrivals: Sequence[Sequence[Sentence]], max_rows: int
) -> list[SentenceResult]:
    return decode(decoder, arrivals, EngineLimits(max_rows=max_rows, max_source_tokens=40 * max_rows))


@pytest.mark.parametrize("beam_sizes", [[1], [1, 3, 8]])
def test_batched_equals_alone(decoder: OnnxDecoder, beam_sizes: list[int]) -> None:
    sentences = random_sentences(*beam_sizes)
    alone = [translate(decoder, [[sentence]], max_rows=16)[0] for sentence in sentences]
    for seed, max_rows in enumerate((17, 40, 320)):
        order, arrivals = in_random_order(sentences, seed, num_calls=7)
        results = translate(decoder, arrivals, max_rows)
        for i, result in zip(order, results, strict=True):
            for found, expected in zip(result.hypotheses, alone[i].hypotheses, strict=True):
                assert found.score == pytest.approx(expected.score, abs=1e-2)


def test_attention_sums_to_one_over_the_source(decoder: OnnxDecoder) -> None:
    sentences = [s for s in random_sentences(3) if s.return_attention]
    for sentence, result in zip(sentences, translate(decoder, [sentences], max_rows=64), strict=True):
        for hypothesis in result.hypotheses:
            assert hypothesis.attention is not None
            assert hypothesis.attention.shape[1] == len(sentence.source)
            np.testing.assert_allclose(hypothesis.attention.sum(axis=1), 1, atol=1e-5)


def test_the_decoder_tells_where_it_runs_and_auto_falls_to_the_cpu_and_its_precision(bundle: Bundle) -> None:
    decoder = open_decoder(bundle, DecoderOptions(device="cpu", precision="fp32", num_threads=1))
    assert decoder.providers == {"encoder": "CPUExecutionProvider", "decoder_step": "CPUExecutionProvider"}
    assert decoder.precision == "fp32"
    decoder = open_decoder(bundle, DecoderOptions())
    assert decoder.providers["encoder"] in ("CPUExecutionProvider", "CUDAExecutionProvider")
    assert decoder.precision == ("fp32" if decoder.providers["encoder"].startswith("CPU") else "fp16")


def test_auto_runs_a_bundle_that_has_only_int8_on_the_cpu_which_prefers_it(
    tmp_path_factory: pytest.TempPathFactory, caplog: pytest.LogCaptureFixture
) -> None:
    both = export_family("transformer", tmp_path_factory)
    assert open_decoder(both, DecoderOptions(device="cpu")).precision == "int8"
    caplog.set_level("INFO")
    int8 = replace(both, manifest=replace(both.manifest, precisions=("int8",)))
    decoder = open_decoder(int8, DecoderOptions())
    assert decoder.precision == "int8"
    assert set(decoder.providers.values()) == {"CPUExecutionProvider"}
    told = "transformer/1 runs on the CPU: int8 graphs are for CPUs, and it has no others"
    assert caplog.messages == [told]


def test_a_precision_the_bundle_lacks_is_refused_and_those_present_are_named(bundle: Bundle) -> None:
    with pytest.raises(PrecisionUnavailableError, match=r"no int8 graphs.*it has fp32, fp16"):
        open_decoder(bundle, DecoderOptions(device="cpu", precision="int8"))


def test_a_graph_that_does_not_fit_the_contract_is_refused_at_opening(tmp_path: Path, bundle: Bundle) -> None:
    folder = shutil.copytree(bundle.path / "fp32", tmp_path / "fp32")
    shutil.copy(folder / "encoder.onnx", folder / "decoder_step.onnx")
    with pytest.raises(DecoderError, match="cannot be run in fp32 on cpu"):
        open_decoder(replace(bundle, path=tmp_path), DecoderOptions(device="cpu"))


def resident_kib() -> int:
    gc.collect()
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["VmRSS"].split()[0])


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_what_a_large_batch_took_is_given_back_and_decoding_stays_the_same() -> None:
    decoder = open_decoder(open_bundle(shipped_bundle("de-en")), DecoderOptions(device="cpu"))
    options = searched(5, 3, num_hypotheses=1)
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


def test_importing_the_engine_does_not_import_onnxruntime() -> None:
    script = "import sys, dragoman_server.engine; sys.exit('onnxruntime' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_a_session_takes_its_threads_and_does_not_spin(bundle: Bundle) -> None:
    step = bundle.graph_path("fp32", "decoder_step")
    session = open_session(step, DecoderOptions(device="cpu", num_threads=2))
    options = session.get_session_options()
    assert (options.intra_op_num_threads, options.inter_op_num_threads) == (2, 1)
    assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"
    assert session.get_providers() == [CPU_PROVIDER]


def test_nothing_is_reported_home(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    make = onnxruntime.InferenceSession

    def make_session(*arguments: Any, **options: Any) -> onnxruntime.InferenceSession:
        calls.append("session")
        return make(*arguments, **options)

    monkeypatch.setattr(onnxruntime, "disable_telemetry_events", lambda: calls.append("telemetry off"))
    monkeypatch.setattr(onnxruntime, "InferenceSession", make_session)
    open_session(bundle.graph_path("fp32", "encoder"), DecoderOptions(device="cpu", num_threads=1))
    assert calls == ["telemetry off", "session"]


def test_arithmetic_elsewhere_than_wanted_is_found_and_shapes_are_not(bundle: Bundle) -> None:
    step = bundle.graph_path("fp32", "decoder_step")
    session = open_session(step, DecoderOptions(device="cpu", num_threads=1))
    assert find_strays(session, CPU_PROVIDER) == []
    operators = {stray.rpartition("(")[2].rstrip(")") for stray in find_strays(session, CUDA_PROVIDER)}
    assert {"MatMul", "Gemm", "LogSoftmax", "TopK", "LayerNormalization"} <= operators
    assert "Shape" not in operators
