"""Subtitles: what cues say is translated; numbers, timings, settings, styles and comments stay."""

from pathlib import Path

import pytest
from tests.files.documents import capitals

from dragoman.jobs import JobError

REAL_FILES = Path(__file__).parents[3] / "shared" / "data" / "formats"


def test_subrip(translate):
    given = (
        "\ufeff1\r\n00:00:01,000 --> 00:00:02,000 X1:1\r\nGuten\r\n<i>Morgen</i>, du\r\n\r\n\r\n"
        "00:00:03,000-->00:00:04,000\r\n{\\an8}- Ja.\r\n- Nein <3\r\n\r\n"
        "7\r\n0:00:05.0 --> 0:00:06.5\r\n12\r\n\r\n8\r\n00:00:07,000 --> 00:00:08,000\r\n"
    )
    expected = capitals(given, "Guten", "Morgen", ", du", "- Ja.", "- Nein").replace("GUTEN\r\n", "GUTEN ")
    assert translate("srt", given.encode()) == expected.encode()


def test_a_blank_line_within_a_cue_does_not_end_its_text(translate):
    given = "1\n00:00:01,000 --> 00:00:02,000\neins\n\nzwei\n\n2\n00:00:03,000 --> 00:00:04,000\ndrei\n"
    assert translate("srt", given) == capitals(given, "eins", "zwei", "drei")


def test_webvtt(translate):
    given = (
        "WEBVTT - titel\nKind: captions\n\nSTYLE\n::cue { color: red }\n\nNOTE nur so\nzwei zeilen\n\n"
        "REGION\nid:a\n\nname\n00:01.000 --> 00:02.000 align:start position:10%\n"
        "<v Roger Bingham>hallo &amp; <b.loud>du</b> <00:00:01.500>da\n\n"
        "01:00:01.000 --> 01:00:02.000\nletzte &lt;3\n"
    )
    assert translate("vtt", given) == capitals(given, "hallo &", ">du<", "da\n", "letzte &")


def test_lines_of_a_cue_are_joined_unless_one_asks_for_them_and_speakers_stay_apart(server, translate):
    given = "1\n00:00:01,000 --> 00:00:02,000\nIch gehe\nnach Hause.\n\n2\n00:00:03,000 --> 00:00:04,000\n"
    given += "- Ja.\n- Nein.\n"
    joined = capitals(given.replace("gehe\nnach", "gehe nach"), "Ich gehe nach Hause.", "- Ja.\n- Nein.")
    assert translate("srt", given) == joined
    assert translate("srt", given, join_lines=True) == joined
    assert "ICH GEHE\nNACH HAUSE." in translate("srt", given, join_lines=False)
    assert server.servicer.messages[0] == ["Ich gehe nach Hause.", '- Ja.<br id="2"/>- Nein.']


def cues(*texts: str) -> str:
    return "".join(
        f"{number}\n00:00:{number:02},000 --> 00:00:{number + 1:02},000\n{text}\n\n"
        for number, text in enumerate(texts, start=1)
    )


@pytest.mark.parametrize("name", ["srt", "vtt"])
def test_tags_within_a_sentence_are_as_those_of_html(server, translate, name):
    given = cues(
        "Der <i>kleine</i> Hund",
        "<v Anna>Wo ist der <c.gelb>Bahnhof</c>?</v>",
        "{\\an8}<i>Guten\nMorgen</i>",
        "<b>Ja, <font color='red'>{\\i1}sehr{\\i0}</font> <00:00:01.500>gut",
        "a <i>b</b> c",
    )
    given = given if name == "srt" else "WEBVTT\n\n" + given.replace(",000", ".000")
    expected = given.replace("Guten\nMorgen", "Guten Morgen").replace("a <i>b</b> c", "A <i>B</b> C")
    words = ("Der <", "kleine", " Hund", "Wo ist der", "Bahnhof", "Guten Morgen", "Ja", "sehr", "gut")
    assert translate(name, given) == capitals(expected, *words)
    texts = server.servicer.texts
    assert texts[:3] == ["Der <g2>kleine</g2> Hund", "Wo ist der <g2>Bahnhof</g2>?", "Guten Morgen"]
    assert any("sehr" in text and "gut" in text for text in texts)


def test_sounds_and_speakers_are_in_no_sentence(server, translate):
    given = cues(
        "[Musik]\n(seufzt) ANNA: Wo bist du?", "- HERR MÜLLER: Ja.\n- (lacht) Nein.", "Er (ja) kam: gut"
    )
    texts = ["Musik", "seufzt", "Wo bist du?", "Ja.", "lacht", "Nein.", "Er (ja) kam: gut"]
    assert translate("srt", given) == capitals(given, *texts)
    assert server.servicer.texts == texts


def test_a_sentence_over_cues_is_one_and_its_words_are_shared_out(server, translate):
    given = cues(
        *("Wenn du kommst,", "<i>bringe ich dir\netwas Kaffee</i>", "<i>mit.</i>"),
        *("Danke schön.", "wirklich?", "Ich <b>habe</b>", "nichts", "Neues"),
    )
    words = ["Wenn du kommst", "bringe ich dir etwas Kaffee", "mit", "Danke schön", "wirklich", "Ich", "habe"]
    expected = capitals(given.replace("dir\netwas", "dir etwas"), *words, "nichts", "Neues")
    assert translate("srt", given) == expected
    sentences = ["Wenn du kommst, bringe ich dir etwas Kaffee mit.", "Danke schön.", "wirklich?"]
    assert server.servicer.texts == [*sentences, "Ich <g2>habe</g2>", "nichts", "Neues"]
    # Not where lines are to stay.
    assert translate("srt", given, join_lines=False) == expected.replace("DIR ETWAS", "DIR\nETWAS")
    assert "mit." in server.servicer.texts


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("in.srt", "Guten Morgen.\n", "line 1 begins no cue: 'Guten Morgen.'"),
        ("in.srt", "1\n00:00:01,000 --> bald\nja\n", "line 2 is no timing .*'00:00:01,000 --> bald'"),
        ("in.vtt", "1\n00:01.000 --> 00:02.000\nja\n", 'begins with a line "WEBVTT"'),
        ("in.vtt", "WEBVTT\n\n00:01 --> 2\nja\n", "line 3 is no timing"),
    ],
    ids=["text", "timing", "header", "vtt timing"],
)
def test_what_is_no_file_of_subtitles_is_refused(refuse, name, content, told):
    refuse(name, content, told)


@pytest.mark.skipif(not REAL_FILES.is_dir(), reason="no real files here")
def test_real_subtitles_in_two_encodings(run, tmp_path):
    ascii_, chinese = REAL_FILES / "srt-ascii.srt", REAL_FILES / "srt-gb2312.srt"
    run(ascii_, tmp_path / "out.srt")
    expected = capitals(ascii_.read_bytes().decode(), "ascii", "oh look", "everywhere")
    assert (tmp_path / "out.srt").read_bytes() == expected.encode()
    with pytest.raises(JobError, match=r"not in UTF-8: byte 0x\w\w of line 3.*`--encoding`"):
        run(chinese, tmp_path / "chinese.srt")
    # Chinese has no capitals: all must come back as it was.
    run(chinese, tmp_path / "chinese.srt", encoding="gb2312")
    assert (tmp_path / "chinese.srt").read_bytes() == chinese.read_bytes()
