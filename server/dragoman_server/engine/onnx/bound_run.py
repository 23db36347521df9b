"""Runs a graph with each output left where it is wanted: on the device, or on the host.

Knows onnxruntime and the names of a step's inputs and outputs; knows nothing of what the graphs compute.
"""

from collections.abc import Mapping

import numpy as np
import onnxruntime
from onnxruntime import OrtValue

from dragoman_server.engine.decoder import StepInput, StepOutput
from dragoman_server.engine.onnx.tensors import Array


def run_bound(
    session: onnxruntime.InferenceSession, inputs: Mapping[str, OrtValue | Array], outputs: Mapping[str, str]
) -> dict[str, OrtValue]:
    """The outputs by name, each on the device that `outputs` names for it: "cpu" or "cuda".

    Arrays are taken from the host, and other inputs from where they are. A run ends when the device has ended
    it, so what it gave may go into another session's run at once.
    """
    # A new binding each time: the outputs of one are views into it that its next run would overwrite.
    binding = session.io_binding()
    for name, value in inputs.items():
        if isinstance(value, np.ndarray):
            value = OrtValue.ortvalue_from_numpy(np.ascontiguousarray(value))
        binding.bind_ortvalue_input(name, value)
    for name, device in outputs.items():
        binding.bind_output(name, device)
    session.run_with_iobinding(binding)
    return dict(zip(outputs, binding.get_outputs(), strict=True))


def run_step(
    session: onnxruntime.InferenceSession,
    rows: StepInput,
    memory: Mapping[str, OrtValue],
    state: Mapping[str, OrtValue],
    device: str,
) -> tuple[StepOutput, dict[str, OrtValue]]:
    """One decoder step: what the host is given of it, and the next state, which stays on the device."""
    results = ["top_score", "top_index", "forced_score", *(["attention"] if rows.wants_attention else [])]
    outputs = run_bound(
        session,
        {
            "token": rows.token_SK,
            "parent": rows.parent_SK,
            "score": rows.score_SK,
            "forced": rows.forced_SK,
            **memory,
            **state,
        },
        {**dict.fromkeys(results, "cpu"), **{f"next_{name}": device for name in state}},
    )
    arrays = {name: outputs[name].numpy() for name in results}
    output = StepOutput(
        top_score_SC=arrays["top_score"],
        top_index_SC=arrays["top_index"],
        forced_score_SK=arrays["forced_score"],
        attention_SKT=arrays.get("attention"),
    )
    return output, {name: outputs[f"next_{name}"] for name in state}
