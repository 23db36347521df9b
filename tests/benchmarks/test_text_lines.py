"""The texts scenario's lines come through whatever a model answers."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from dragoman_bundle import Bundle
from tests.server.text.answering import ANSWERS, Answer, shipped, translated

from benchmarks.scenarios.text.lines import KINDS, NUM_LINES, Line, lines
from dragoman_server.text.options import TextFormat, TranslationOptions

pytestmark = pytest.mark.long

BY_THE_MODEL = ("markup", "quantity", "reference", "sign")
"""Kinds of which lines come through by what a model answers, and not whatever it answers."""
KEPT = [kind for kind in KINDS if kind not in BY_THE_MODEL]


@pytest.mark.parametrize("kind", KEPT)
@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: answer.__name__)
def test_lines_of_all_kinds_come_through_whatever_a_model_answers(kind: str, answer: Answer) -> None:
    chosen = list(lines(kind, ("de", "en")))
    assert len({line.text for line in chosen}) == NUM_LINES
    assert lost_of(chosen, shipped(), answer) == []


@pytest.mark.parametrize("languages", [("en", "de"), ("en", "fr"), ("en", "es"), ("en", "nl"), ("fr", "de")])
@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: answer.__name__)
def test_lines_come_through_between_other_languages(languages: tuple[str, str], answer: Answer) -> None:
    source, target = languages
    bundle = shipped()
    manifest = replace(bundle.manifest, source_language=source, target_language=target)
    chosen = [line for kind in KEPT for line in list(lines(kind, languages))[::14]]
    assert lost_of(chosen, replace(bundle, manifest=manifest), answer) == []


def lost_of(chosen: Sequence[Line], bundle: Bundle, answer: Answer) -> list[tuple[str, str]]:
    """The lines that do not come through, with what came of them."""
    lost = []
    for line in chosen:
        options = TranslationOptions(
            beam_size=1,
            length_penalty=1.0,
            text_format=TextFormat.HTML if line.is_html else TextFormat.PLAIN,
        )
        found = translated(line.text, bundle, options, answer).text
        other = translated(line.same_as, bundle, options, answer).text if line.same_as else None
        if not line.passes(found, other):
            lost.append((line.text, found))
    return lost
