"""What a caller asks to be kept, over the wire."""

from pathlib import Path

from tests.server.api.test_service import violated_fields
from tests.server.calls import GERMAN, translate
from tests.server.conftest import RunningServer, StartServer

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.config import RequestLimits


def one_range(start: int, end: int) -> pb.TextRanges:
    return pb.TextRanges(ranges=[pb.TextRange(start=start, end=end)])


async def test_terms_patterns_and_ranges_are_kept(running: RunningServer) -> None:
    protection = pb.Protection(
        do_not_translate=["Frau"],
        patterns=["a+b", "[0-9]{3}-[a-z]+"],
        terms=[pb.Term(source="wort", target="word"), pb.Term(source="wort ende", target="last word")],
    )
    ranges = [pb.TextRanges(ranges=[pb.TextRange(start=0, end=3)]), pb.TextRanges()]
    texts = ["Ein wort aab.", "Frau Wort ende 123-x"]
    found = await translate(running, *texts, protection=protection, protected_ranges=ranges)
    assert "Ein" in found[0].text
    assert "word" in found[0].text
    assert "aab" in found[0].text
    assert "Frau" in found[1].text
    assert "Last word" in found[1].text
    assert "123-x" in found[1].text


async def test_a_stream_keeps_them_too(running: RunningServer) -> None:
    config = pb.TranslateStreamConfig(
        **GERMAN,
        protection=pb.Protection(terms=[pb.Term(source="wort", target="word")]),
        text_format=pb.TEXT_FORMAT_HTML,
    )
    item = pb.TranslateStreamItem(
        id="a", text="Ein <b>wort</b> ist da.", protected_ranges=[pb.TextRange(start=0, end=3)]
    )
    call = running.stub.TranslateStream(
        iter([pb.TranslateStreamRequest(config=config), pb.TranslateStreamRequest(item=item)])
    )
    (response,) = [response async for response in call]
    text = response.translation.text
    assert (text.count("<b>"), text.count("</b>"), text.count("Ein")) == (1, 1, 1)
    assert "word" in text


async def test_references_by_numbers_of_any_length_are_read(start_server: StartServer) -> None:
    running = await start_server(limits=RequestLimits(max_text_characters=20_000))
    reference = f"&#{'1' * 5_000};"
    text = f'Ein <b title="{reference}">Wort</b> {reference} ist da.'
    (found,) = await translate(running, text, text_format=pb.TEXT_FORMAT_HTML)
    assert found.text.count(f'<b title="{reference}">') == 1


async def test_nonsense_is_told(start_server: StartServer) -> None:
    running = await start_server(limits=RequestLimits(max_terms=5, max_patterns=2))
    term, spans = pb.Term, [pb.TextRange(start=2, end=5), pb.TextRange(start=0, end=3)]
    protections: list[tuple[dict[str, object], str]] = [
        ({"do_not_translate": [" "]}, "do_not_translate[0]"),
        ({"terms": [term(source="", target="x")]}, "terms[0]"),
        ({"terms": [term(source="x", target="")]}, "terms[0]"),
        ({"do_not_translate": ["x"], "terms": [term(source="X", target="y")]}, "terms[0]"),
        ({"terms": [term(source=str(number), target="y") for number in range(6)]}, "terms"),
        ({"do_not_translate": ["x" * 600_000, "y" * 400_001]}, "terms"),
        ({"patterns": ["("]}, "patterns[0]"),
        ({"patterns": ["((a{100}){100}){100}"]}, "patterns[0]"),
        ({"patterns": ["a"] * 3}, "patterns"),
        ({"glossaries": ["none"]}, "glossaries[0]"),
    ]
    fields = [({"protection": pb.Protection(**given)}, f"protection.{field}") for given, field in protections]
    for asked, violated in (
        *fields,
        ({"protected_ranges": [pb.TextRanges()] * 2}, "protected_ranges"),
        ({"protected_ranges": [one_range(1, 99)]}, "protected_ranges[0]"),
        ({"protected_ranges": [one_range(1, 1)]}, "protected_ranges[0]"),
        ({"protected_ranges": [pb.TextRanges(ranges=spans)]}, "protected_ranges[0]"),
        ({"text_format": 7}, "text_format"),
    ):
        request = pb.TranslateRequest(texts=["Ein Wort."], **GERMAN, **asked)  # type: ignore[arg-type]
        assert await violated_fields(running, request) == [violated], str(asked)[:200]


async def test_patterns_are_quick_warnings_say_where_and_terms_make_no_book(running: RunningServer) -> None:
    (found,) = await translate(running, "a" * 400 + "!", protection=pb.Protection(patterns=["(a+)+$"]))
    assert found.text
    (found,) = await translate(running, "ja. 北京 hier")
    unknown = [warning for warning in found.warnings if warning.kind == pb.WARNING_KIND_UNKNOWN_TOKENS]
    assert [(warning.start, warning.end) for warning in unknown] == [(4, 6)]
    protection = pb.Protection(terms=[pb.Term(source="a", target="x" * 10_000)])
    request = pb.TranslateRequest(texts=["Ein Wort.", "a b " * 1_000], protection=protection, **GERMAN)
    assert await violated_fields(running, request) == ["texts[1]"]


async def test_glossaries_are_listed_used_and_read_again(start_server: StartServer, tmp_path: Path) -> None:
    (tmp_path / "house.tsv").write_text("de\ten\tfr\nwort\tword\tmot\nja\tyes\t\n")
    running = await start_server(glossaries=tmp_path)
    (listed,) = (await running.stub.ListGlossaries(pb.ListGlossariesRequest())).glossaries
    assert (listed.name, list(listed.languages), listed.entries) == ("house", ["de", "en", "fr"], 2)
    protection = pb.Protection(glossaries=["house"])
    (found,) = await translate(running, "ein wort ist da", protection=protection)
    assert "word" in found.text.split()
    (tmp_path / "house.tsv").write_text("de\ten\nwort\tterm\n")
    await running.server.reload()
    (found,) = await translate(running, "ein wort ist da", protection=protection)
    assert "term" in found.text.split()
    (tmp_path / "house.tsv").write_text("de\ten\nwort\tterm\nWort\tother\n")
    await running.server.reload()
    assert running.metric("dragoman_last_reload_successful") == 0
    (found,) = await translate(running, "ein wort ist da", protection=protection)
    assert "term" in found.text.split()


async def test_a_callers_own_terms_come_before_a_glossary(start_server: StartServer, tmp_path: Path) -> None:
    (tmp_path / "house.tsv").write_text("de\ten\nwort\tword\n")
    running = await start_server(glossaries=tmp_path)
    protection = pb.Protection(glossaries=["house"], terms=[pb.Term(source="wort", target="mine")])
    (found,) = await translate(running, "ein wort ist da", protection=protection)
    assert "mine" in found.text.split()
