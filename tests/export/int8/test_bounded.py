"""What int8 graphs know to lie within -1 and 1, however long a sentence is decoded."""

import pytest
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from tests.export.toy_checkpoint import CONFIGS, make_checkpoint, make_graphs

from dragoman_export.graphs.rewrites import find_output_product
from dragoman_export.int8.quantize import bounded_states
from dragoman_training.decoding.members import as_one


@pytest.mark.parametrize(
    ("family", "expected"),
    [
        ("luong", {"state.feed", "state.hidden0", "state.hidden1"}),
        # Its cell ends in a sum of two products, which counts as free.
        ("bahdanau-gru", set()),
        ("plain", {"state.hidden0"}),
        ("transformer", set()),
        ("lm", {"state.hidden0", "state.past"}),
    ],
)
def test_hidden_states_of_families(family: str, expected: set[str], tokenizer: Tokenizer) -> None:
    model = make_checkpoint(CONFIGS[family], tokenizer, tokenizer).model
    graphs = make_graphs(model, ["fp32"])["fp32"]
    assert bounded_states(graphs.encoder.graph, graphs.decoder_step.graph) == expected


@pytest.mark.parametrize("num_members", [1, pytest.param(3, marks=pytest.mark.long)])
def test_what_an_ensemble_scales_down_is_rounded_by_rows(num_members: int, tokenizer: Tokenizer) -> None:
    members = [make_checkpoint(CONFIGS["luong"], tokenizer, tokenizer) for _ in range(num_members)]
    step = make_graphs(as_one(members), ["int8"])["int8"].decoder_step.graph
    assert (find_output_product(step).row_step is not None) is (num_members > 1)
