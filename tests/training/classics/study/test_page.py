"""The page as a whole."""

import pytest
from tests.training.classics.study.made_findings import made_findings, made_set
from tests.training.toy_pairs import SOURCES, TARGETS

from dragoman_training.classics.study.buckets import cut_buckets
from dragoman_training.classics.study.page import FigureLinks, study_page


@pytest.mark.parametrize(
    ("other", "comparable"), [((b"other", b"target"), True), ((b"source", b"other"), False)]
)
def test_perplexities_are_comparable_where_the_targets_pieces_are_the_same(
    other: tuple[bytes, bytes], comparable: bool
) -> None:
    progress = {"validations": [], "step": 1, "seconds": 1}
    findings = [
        made_findings("one", TARGETS, TARGETS, progress=progress),
        made_findings("other", TARGETS, TARGETS, progress=progress, vocabularies=other),
    ]
    page = study_page(
        "dragoman study",
        findings,
        cut_buckets(SOURCES, words=5, min_sentences=5),
        made_set(SOURCES, TARGETS),
        FigureLinks(lengths="a.svg", training="b.svg", heat_maps=(), centres=None),
        beam_size=5,
        length_penalty=1,
    )
    assert ("so their perplexities are comparable" in page) == comparable
