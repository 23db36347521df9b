"""What no batch could ever hold or decode is refused."""

import pytest
from tests.engine.house import VOCABULARY, sentence

from dragoman_server.engine.errors import SentenceError
from dragoman_server.engine.limits import Admission, EngineLimits
from dragoman_server.engine.request import Sentence


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (sentence(5, 1000), r"source holds token 1000; the vocabulary has 1000 tokens"),
        (sentence(-1), r"source holds token -1"),
        (sentence(5, target_prefix=(2, 6)), r"target_prefix holds token 6; the vocabulary has 6 tokens"),
        (
            sentence(*[5] * 17),
            r"17 tokens, padded to 24, .* max_source_tokens is 16; .* --max-source-tokens",
        ),
        (
            sentence(5, beam_size=5),
            r"beam_size is 5, and the engine's max_beam_size 4; .* --max-beam-size",
        ),
    ],
)
def test_a_sentence_that_can_never_be_decoded_does_not_pass(wrong: Sentence, message: str) -> None:
    limits = EngineLimits(max_source_tokens=16, max_beam_size=4)
    admission = Admission(limits=limits, source_vocabulary=1000, target_vocabulary=VOCABULARY)
    admission.check(sentence(*[999] * 16, beam_size=4, target_prefix=(5,)))
    with pytest.raises(SentenceError, match=message):
        admission.check(wrong)
