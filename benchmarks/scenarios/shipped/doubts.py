"""Whether confidence and warnings are right: of translations that have references, and of people's own."""

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from dragoman_bundle import Bundle
from dragoman_bundle.decoding import GOOD_CHRF, num_repeated, words_of
from sacrebleu.metrics.chrf import CHRF

from benchmarks.corpus import Corpus
from benchmarks.report import Row
from dragoman_server.text.judge.doubts import LIMITS, doubts
from dragoman_server.text.translated import TranslatedText

NUM_BINS = 10
_WORD = re.compile(r"\w+")
_NAME = re.compile(r"(?<=[\w,] )[A-ZÄÖÜ][a-zäöüß]{3,}")

Fault = Callable[[str, str, str], bool]
"""Whether an output, behind its source and a reference, has the fault that a warning tells of."""


def _loses_a_name(source: str, reference: str, output: str) -> bool:
    """Names are words with a capital that people leave as they are."""
    names = set(_NAME.findall(source)) & set(_WORD.findall(reference))
    return any(name not in output for name in names)


def _runs(text: str) -> set[tuple[str, ...]]:
    words = text.split()
    return set(zip(words, words[1:], words[2:], strict=False))


def _brackets(text: str) -> list[int]:
    return [text.count(bracket) for bracket in LIMITS["brackets"]["pairs"]]


FAULTS: Mapping[str, tuple[str, Fault]] = {
    "omission": (
        "under 60% of the reference's words",
        lambda source, reference, output: len(words_of(output)) < 0.6 * len(words_of(reference)),
    ),
    "length": (
        "over twice the reference's characters",
        lambda source, reference, output: len(output) > 2 * len(reference),
    ),
    "repetition": (
        "three words more that came before than the reference has",
        lambda source, reference, output: (
            num_repeated(words_of(output)) >= num_repeated(words_of(reference)) + 3
        ),
    ),
    "brackets": (
        "other brackets than source and reference, which agree",
        lambda source, reference, output: _brackets(source) == _brackets(reference) != _brackets(output),
    ),
    "name_missing": ("lacks a name that source and reference have alike", _loses_a_name),
    "untranslated": (
        "three words in a row of the source, which the reference has not",
        lambda source, reference, output: bool(_runs(source) & _runs(output) - _runs(reference)),
    ),
}
"""The faults that each kind of warning tells of, as a reference shows them."""


def judge_confidence(translated: Sequence[TranslatedText], references: Sequence[str]) -> Row | None:
    """How well confidence tells good translations from others; None where the model has none."""
    chrf = CHRF()
    rated = [
        (one.confidence, chrf.sentence_score(one.text, [reference]).score >= GOOD_CHRF)
        for one, reference in zip(translated, references, strict=True)
        if one.confidence is not None
    ]
    if not rated:
        return None
    confidence_N, is_good_N = map(np.array, zip(*rated, strict=True))
    bin_N = np.minimum((confidence_N * NUM_BINS).astype(int), NUM_BINS - 1)
    gaps = [abs((confidence_N - is_good_N)[bin_N == number].sum()) for number in range(NUM_BINS)]
    good, others = confidence_N[is_good_N], confidence_N[~is_good_N]
    above = (good[:, None] > others).sum() + 0.5 * (good[:, None] == others).sum()
    return {
        "count": len(rated),
        "good": float(is_good_N.mean()),
        "confidence": float(confidence_N.mean()),
        "auc": float(above) / (len(good) * len(others)) if len(good) and len(others) else None,
        "error": float(sum(gaps)) / len(rated),
    }


def judge_warnings(
    translated: Sequence[TranslatedText], news: Corpus, everyday: Corpus, bundle: Bundle
) -> list[Row]:
    """Each kind's alarms at people's translations of everyday sentences, and its hits in outputs of news."""
    assert news.references is not None
    assert everyday.references is not None
    false = [
        _doubts(source, reference, bundle)
        for source, reference in zip(everyday.sources, everyday.references, strict=True)
    ]
    warned = [{warning.kind.value for warning in one.warnings} for one in translated]
    texts = list(zip(news.sources, news.references, [one.text for one in translated], strict=True))
    rows: list[Row] = []
    for kind, (description, has_fault) in FAULTS.items():
        faulty = [has_fault(*each) for each in texts]
        told = [kind in kinds for kinds in warned]
        hits = sum(fault and is_told for fault, is_told in zip(faulty, told, strict=True))
        rows.append(
            {
                "kind": kind,
                "false": sum(kind in kinds for kinds in false) / len(false),
                "fault": description,
                "faulty": sum(faulty),
                "hit": hits / sum(faulty) if any(faulty) else None,
                "told": sum(told),
            }
        )
    return rows


def _doubts(source: str, translation: str, bundle: Bundle) -> set[str]:
    confidence, encode = bundle.manifest.confidence, bundle.source_tokenizer.encode_ids
    found = doubts(
        source,
        translation,
        length_ratio=confidence.length_ratio if confidence else None,
        count_pieces=lambda words: list(map(len, encode(words))),
    )
    return {kind.value for kind, _ in found}
