"""Where sentences end in the languages that have rules of our own."""

import random
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

import pytest
from dragoman_bundle.languages import writes_spaces

from dragoman_server.text.cut.rules import read_rules, rules_for
from dragoman_server.text.cut.segment import segment
from dragoman_server.text.options import Segmentation

CORPORA = {
    "de": "tatoeba-de-en/train.de",
    "en": "tatoeba-de-en/train.en",
    "es": "tatoeba-en-es/train.es",
    "fr": "tatoeba-en-fr/train.fr",
    "nl": "more/tatoeba-more/en-nl.nl",
}
"""One sentence a line."""
LANGUAGES = list(CORPORA)
LISTS = Path(__file__).parents[2] / "sentences"
"""Sentences that no dot in them ends."""
ENDS = tuple(".!?…")
CLOSERS = "\"'”“’»«)"
DATA = Path(__file__).parents[5] / "shared" / "data"
NUM_LINES = 8_000


def units(text: str, language: str) -> list[str]:
    spans = segment(text, language=language, mode=Segmentation.SENTENCE)
    return [text[start:end] for start, end in spans]


def starts(text: str, language: str) -> list[int]:
    return [start for start, _ in segment(text, language=language, mode=Segmentation.SENTENCE)]


def read_lines(path: Path) -> list[str]:
    """The lines that hold a letter."""
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if any(map(str.isalpha, line))]


def missed_cuts(sentences: Sequence[str], language: str) -> tuple[int, list[str]]:
    """Sentences with a mark at their end joined with others by chance: how many, and those not cut there."""
    order = list(sentences)
    random.Random(1).shuffle(order)
    num_pairs, missed = 0, []
    for first, second in zip(order[:NUM_LINES:2], order[1:NUM_LINES:2], strict=False):
        if first.rstrip(CLOSERS).endswith(ENDS):
            num_pairs += 1
            if len(first) + 1 not in starts(f"{first} {second}", language):
                missed.append(f"{first}|{second}")
    return num_pairs, missed


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_sentence_of_the_list_is_cut(language: str) -> None:
    sentences = read_lines(LISTS / f"{language}.txt")
    assert len(sentences) >= 100
    assert [sentence for sentence in sentences if len(starts(sentence, language)) != 1] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_sentences_of_the_list_are_cut_from_what_follows(language: str) -> None:
    sentences = read_lines(LISTS / f"{language}.txt")
    assert missed_cuts(sentences, language)[1] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_at_most_one_cut_in_two_thousand_is_missed(language: str) -> None:
    path = DATA / CORPORA[language]
    if not path.exists():
        pytest.skip(f"needs the corpus {CORPORA[language]}")
    num_pairs, missed = missed_cuts(read_lines(path), language)
    assert len(missed) <= num_pairs / 2_000, missed


@pytest.mark.parametrize(
    ("language", "text", "count"),
    [
        ("de", "Er liebt mich. Ich gehe.", 2),
        ("de", "Ich mag. Du magst.", 2),
        ("de", "Ich bin Max. Tom ist da.", 2),
        ("de", "Auf diese Art. Er ging.", 2),
        ("de", "Ich bin's. Tom ist da.", 2),
        ("de", "Bücher usw. Danach ging er.", 2),
        ("de", "Wir kommen am 3. Er weiß es.", 2),
        ("de", "Ludwig XIV. Er war König.", 2),
        ("de", "hallo! wie geht es dir? ich bin da.", 3),
        ("de", "Ich gehe.Du bleibst.", 2),
        ("de", "Das ist System.Console hier.", 1),
        ("de", "Er sagte: „Ja. Ich komme.“ Sie lachte.", 3),
        ("de", "„Halt!“, rief er. „Wer da?“", 2),
        ("de", "Warte... Ich komme … Bald.", 3),
        ("de", "DAS GEHT NICHT. KOMM MIT INKL. ALLEM.", 2),
        ("de", "Im Jahr 2010. Er kam.", 2),
        ("en", "Wait for me. Tom is here.", 2),
        ("en", "It is OK. Tom is here.", 2),
        ("en", "So do I. Tom too.", 2),
        ("en", "No. I don't.", 2),
        ("en", "We live in the U.S. The house is big.", 2),
        ("en", "He came at 5 p.m. Tom left.", 2),
        ("en", "Vitamin C. It works.", 2),
        ("en", '"Can you?" "I can."', 2),
        ("en", '"Where are you?" Tom asked. "Here."', 2),
        ("en", "I have an iPhone. iPhones are good.", 2),
        ("es", "Está bien. Tom llegó.", 2),
        ("es", "Tengo un auto. Tom tiene dos.", 2),
        ("es", "¡Hola! ¿cómo estás?", 2),
        ("es", "Llegó a las 2 p.m. ¡Feliz año!", 2),
        ("fr", "C'est mon vol. Tom part.", 2),
        ("fr", "Bon ? Oui. J'y vais.", 3),
        ("nl", "Dat is van me. Tom komt.", 2),
        ("nl", "Het duurde lang. 's Zondags ga ik.", 2),
        ("nl", "Ik denk aan u. Tom ook.", 2),
    ],
)
def test_sentences_are_cut_behind_common_words(language: str, text: str, count: int) -> None:
    assert len(units(text, language)) == count


@pytest.mark.parametrize("language", LANGUAGES)
def test_two_spaces_between_sentences_are_in_no_unit(language: str) -> None:
    assert units("Tom.  Mary.\t Eva.", language) == ["Tom.", "Mary.", "Eva."]


@pytest.mark.parametrize("language", ["xx", "", "../de", "."])
def test_a_language_without_data_has_the_rules_of_all_others(language: str) -> None:
    assert rules_for(language) == rules_for("other")


@pytest.mark.parametrize("language", ["cs", "de", "en", "es", "fr", "it", "pl", "pt", "ru", "tr", "zh"])
def test_news_is_cut_where_its_sentences_end(language: str) -> None:
    """Every other line of Parallel UD: of the others some words of the rules come, of these none."""
    path = DATA / "tests" / "ud-pud" / f"pud.{language}"
    if not path.exists():
        pytest.skip("needs Parallel UD")
    sentences = read_lines(path)[1::2]
    space = " " if writes_spaces(language) else ""
    starts = {0, *accumulate(len(sentence + space) for sentence in sentences[:-1])}
    found = {
        start for start, _ in segment(space.join(sentences), language=language, mode=Segmentation.SENTENCE)
    }
    assert len(found - starts) < 0.014 * len(sentences)
    assert len(starts - found) < 0.014 * len(sentences)


def test_a_field_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="abbreviation; there are abbreviations, before_numbers"):
        read_rules('abbreviation = "Dr"')


@pytest.mark.parametrize("piece", [".", ". ", "!", "a. ", ". . ", '"', "A.", "1. ", ") ", "。", "a.b. "])
def test_a_long_line_is_read_in_one_go(piece: str) -> None:
    # A rule that looked back or ahead without bound would take hours here.
    rules = rules_for("de")
    text = piece * 40_000
    ends = list(rules.ends(text))
    assert ends == sorted(set(ends))
    assert not ends or 0 < ends[0] <= ends[-1] <= len(text)
