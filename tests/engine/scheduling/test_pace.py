"""When an answer in time is given up."""

import pytest

from dragoman_server.engine.request import Priority, SearchOptions, Sentence
from dragoman_server.engine.scheduling.pace import Pace, TurnCost


def test_each_token_takes_a_turn_of_every_lane() -> None:
    cost = TurnCost()
    pace = Pace(cost)
    options = SearchOptions(beam_size=1, num_hypotheses=1, length_penalty=1.0, max_output_tokens=99)
    sentence = Sentence(source=(3,) * 8, options=options, priority=Priority.INTERACTIVE)
    assert pace.least_seconds(sentence, [1, 2]) == 0
    cost.observe(10, 0.1)
    pace.on_encode(0.5)
    pace.on_finish(source_tokens=10, steps=20)
    # 16 tokens; turns of one and of two rows take 10 and 20 ms. An answer in half of 0.98 s would be lucky.
    assert pace.least_seconds(sentence, [1, 2]) == pytest.approx(0.49)
