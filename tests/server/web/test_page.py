"""The page: what it is served with, and what people do with it in a browser, where there is one."""

import gzip
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.server.conftest import ADA, CPU
from tests.server.copying_bundle import write_bundle
from tests.server.web.conftest import MODELS, Page, Web, serving

from dragoman_server.config import RequestLimits
from dragoman_server.web.apis.page import FILES

DOG = "Der Hund schläft im Garten."
WHO = ("Er", "Sie", "Anna", "Tom", "Maria")
DOES = ("geht", "kommt", "isst", "ruft", "singt", "lacht")


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory, glossaries: Path) -> Iterator[Web]:
    """The shipped model and one that copies, to French; limits that are soon met."""
    models = tmp_path_factory.mktemp("models")
    (models / "de-en").symlink_to(MODELS / "de-en")
    write_bundle(models, "en-fr/1", "en-fr")
    limits = RequestLimits(max_text_characters=400, max_http_body_bytes=200_000)
    engine = replace(CPU, max_queue=20)
    with serving(models=models, glossaries=glossaries, engine=engine, limits=limits) as web:
        yield web


def test_nothing_comes_from_elsewhere(web: Web) -> None:
    page = web.get("/")
    policy = page.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert {"/", "/page/main.js", "/page/page.css"} <= set(FILES)
    for path in FILES:
        content = web.get(path).body.decode().replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?://", content)
        assert not re.search(r"\s(style|on\w+)=[\"']", content)
    assert web.get("/", **{"If-None-Match": page.headers["ETag"]}).status == 304


def test_it_translates_as_one_types_and_shows_what_comes_from_what(page: Page) -> None:
    page.type(f"{DOG} Мария wohnt dort.")
    page.wait(lambda: page.text("#translation") == "The dog is sleeping in the garden. Мария lives there.")
    assert page.text("#detected").startswith("German")
    assert "de-en/" in page.text("#model")
    assert page.text("#timing").endswith(" ms")

    # Warnings stand where the text does, on both sides.
    assert "Мария" in page.text("#warning-list")
    assert page.one("#marks .is-warned").get_attribute("textContent") == "Мария"
    assert page.text("#translation .is-warned") == "Мария"

    # By keyboard: Tab to the translation, an arrow to its second word. By the caret: the other way.
    page.browser.execute_script("arguments[0].focus()", page.one("#translation .word[tabindex='0']"))
    page.press(page.keys.ARROW_RIGHT)
    lit = [each.get_attribute("textContent") for each in page.all("#marks .is-lit")]
    assert "Hund" in lit
    assert page.text("#origin").startswith("dog ← Hund")
    page.one("#text").send_keys(page.keys.CONTROL, page.keys.HOME)
    page.wait(lambda: page.texts("#translation .is-lit") == ["The"])

    # The attention: a table of each sentence, with labels and figures.
    page.one("#attention summary").click()
    assert page.text("#sentence") == "Sentence 1 of 2"
    assert page.texts("#heat th[scope=row]")[:2] == ["The", "dog"]
    assert "Hund" in page.texts("#heat th[scope=col]")
    assert int(page.text("#heat tbody tr:nth-child(2) td:nth-of-type(2)")) > 50
    page.one("#sentence-after").click()
    assert page.texts("#heat th[scope=row]")[:2] == ["Мария", "lives"]

    page.type("Je voudrais un café, s'il vous plaît.")
    page.wait(lambda: "French" in page.text("#detected"))
    page.type("")
    page.wait(lambda: page.text("#translation") == "")
    assert page.text("#warnings") == ""
    assert page.complaints() == []


def test_the_target_is_the_browsers_language_and_turns_with_the_text(page: Page) -> None:
    for languages, expected in ((("fr-CH", "de"), "fr"), (("pl", "en-GB"), "en"), (("pl",), "en")):
        page.prefers(*languages)
        page.open()
        assert page.one("#target").get_attribute("value") == expected
    # A text that is in the target language already is translated to another, and back again.
    page.type("The dog is sleeping in the garden.")
    page.wait(lambda: page.one("#target").get_attribute("value") == "fr")
    page.wait(lambda: "en-fr/1" in page.text("#model"))
    page.prefers("fr", "en")
    page.choose("#target", "en")
    page.wait(lambda: page.text("#detected") == "English already")


def test_a_word_is_taken_for_what_can_be_translated(page: Page) -> None:
    page.choose("#target", "en")
    taken = r"Taken for German, \d+%: too short to be sure"
    for word in ("Hallo", "ok", "Brot"):
        page.type("")
        page.wait(lambda: page.text("#detected") == page.text("#translation") == "")
        page.type(word)
        page.wait(lambda: re.fullmatch(taken, page.text("#detected")) and page.text("#translation"))
    page.type("1234")
    page.wait(lambda: page.text("#translation") == "1234")


def test_a_translation_is_copied_without_tls_too(page: Page, web: Web) -> None:
    plain = Page(page.browser, web.url.replace("127.0.0.1", "dragoman.test"))
    plain.open()
    assert plain.browser.execute_script("return isSecureContext") is False
    plain.type(DOG)
    plain.wait(lambda: plain.text("#translation") == "The dog is sleeping in the garden.")
    plain.one("#copy").click()
    plain.wait(lambda: plain.text("#copy") == "Copied")
    plain.type("")
    plain.one("#text").send_keys(page.keys.CONTROL, "v")
    assert plain.one("#text").get_attribute("value") == "The dog is sleeping in the garden."
    # Where nothing helps, it says so.
    plain.type(DOG)
    plain.wait(lambda: plain.one("#copy").is_displayed() and plain.text("#translation"))
    plain.browser.execute_script("document.execCommand = () => false")
    plain.one("#copy").click()
    plain.wait(lambda: plain.text("#copy").startswith("Select it"))


def test_a_glossary_holds_for_one_model_and_two_are_named(page: Page) -> None:
    page.type(DOG)
    page.one("#glossary summary").click()
    page.one("#named input[value=house]").click()
    page.wait(lambda: "hound" in page.text("#translation"))
    page.one("#add-entry").click()
    word, translation = page.all("#entries input")
    word.send_keys("Garten")
    translation.send_keys("yard")
    page.wait(lambda: "yard" in page.text("#translation"))
    assert page.text("#glossary-count") == "(2)"

    # English is between German and French.
    page.choose("#source", "de")
    assert page.one("#target optgroup").get_attribute("textContent") == "French"
    page.choose("#target", "fr")
    page.wait(lambda: "en-fr/1" in page.text("#model"))
    assert page.text("#model").startswith("Model de-en/")
    assert "goes through English" in page.text("#glossary-note")
    assert "yard" not in page.text("#translation")

    # What is typed stays in this tab.
    page.open()
    assert page.one("#entries input").get_attribute("value") == "Garten"
    assert page.complaints() == []


def test_a_file_is_translated_with_progress_and_fetched(page: Page, web: Web, tmp_path: Path) -> None:
    page.drop("page.html", "<p>Der <b>Hund</b> schläft.</p>")
    assert page.downloaded().decode() == "<p>The <b>dog</b> is sleeping.</p>"
    assert page.one("#download").get_attribute("download") == "page.en.html"
    assert "German" in page.text("#file-state")

    packed = tmp_path / "lines.txt.gz"
    packed.write_bytes(gzip.compress(f"{DOG}\n".encode() * 3))
    page.one("#chosen").send_keys(str(packed))
    page.wait(lambda: "lines.en.txt.gz" in page.text("#download"))
    unpacked = gzip.decompress(page.downloaded()).decode()
    assert unpacked.splitlines() == ["The dog is sleeping in the garden."] * 3

    page.drop(
        "app.po", f'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8"\n\nmsgid "{DOG}"\nmsgstr ""\n'
    )
    page.wait(lambda: "app.en.po" in page.text("#download"))
    assert b'msgstr "The dog is sleeping in the garden."' in page.downloaded()

    # What is refused says why; what is cancelled is work that nobody does.
    page.drop("big.txt", "x" * 200_000)
    page.wait(lambda: "this server takes 0.1 MiB. Cut it up" in page.text("#file-state"))
    page.drop("book.pdf", "%PDF-1.4")
    page.wait(lambda: page.text("#file-state").startswith("book.pdf is by its name a document"))
    page.drop("long.txt", "".join(f"{number} Hunde schlafen im Garten.\n" for number in range(3000)))
    page.wait(lambda: re.match(r"[1-9]\d* of 3,000", page.text("#file-state")))
    assert 0 < float(page.one("#file-progress").get_attribute("value")) < 1
    page.one("#file-close").click()
    cancelled = 'dragoman_http_requests_total{route="v1.translateFile",status="499"} 1.0'
    page.wait(lambda: cancelled in web.get("/metrics").body.decode())
    assert [each for each in page.complaints() if "400" not in each] == []


def test_the_columns_of_a_table_are_chosen_by_its_first_row(page: Page, tmp_path: Path) -> None:
    assert {".csv", ".docx", ".xlf"} <= set(page.text("#formats").replace(",", "").split())
    page.drop("pets.csv", f'Nr;"Satz; lang";"2"""\n1;{DOG};x\n')
    page.wait(lambda: page.texts("#columns label") == ["Nr", "Satz; lang", '2"'])
    page.one("#table button").click()
    page.wait(lambda: page.text("#file-state") == "Choose at least one column.")
    page.all("#columns input")[1].click()
    page.one("#table button").click()
    expected = 'Nr;"Satz; lang";"2"""\n1;The dog is sleeping in the garden.;x\n'
    assert page.downloaded().decode() == expected
    # Names that are numbers, or stand twice, do not tell columns apart.
    packed = tmp_path / "pets.tsv.gz"
    packed.write_bytes(gzip.compress(f"2\t2\t\n{DOG}\t{DOG}\t{DOG}\n".encode()))
    page.one("#chosen").send_keys(str(packed))
    page.wait(lambda: page.texts("#columns label") == ["2", "2", "Column 3"])
    for box in page.all("#columns input")[1:]:
        box.click()
    page.one("#table button").click()
    translated = "The dog is sleeping in the garden."
    page.wait(lambda: "pets.en.tsv.gz" in page.text("#download"))
    assert gzip.decompress(page.downloaded()).decode() == f"2\t2\t\n{DOG}\t{translated}\t{translated}\n"


def test_what_is_typed_is_there_again_until_it_is_cleared(page: Page) -> None:
    page.choose("#source", "en")
    page.choose("#target", "fr")
    page.type("The dog sleeps.")
    page.wait(lambda: page.text("#translation"))
    page.open()
    page.wait(lambda: page.text("#translation"))
    assert [page.value(f"#{name}") for name in ("source", "target", "text")] == [
        "en",
        "fr",
        "The dog sleeps.",
    ]
    page.one("#clear").click()
    for _ in range(2):
        page.wait(lambda: page.text("#translation") == "")
        assert [page.value(f"#{name}") for name in ("source", "target", "text")] == ["", "en", ""]
        assert page.run("return localStorage.length") == 0
        page.open()


def test_a_link_carries_the_languages_and_the_text(page: Page, web: Web) -> None:
    page.type(f"{DOG} 100 % & mehr.")
    page.wait(lambda: page.text("#translation"))
    translated = page.text("#translation")
    page.one("#share").click()
    page.wait(lambda: page.text("#share") == "Copied")
    page.type("")
    page.one("#text").send_keys(page.keys.CONTROL, "v")
    link = page.value("#text")
    # Behind a #, which a browser keeps to itself.
    assert link.startswith(f"{web.url}/#source=auto&target=en&q=Der+Hund")
    page.one("#clear").click()
    page.browser.get("about:blank")
    page.browser.get(link)
    page.wait(lambda: page.text("#translation") == translated)
    assert page.browser.current_url == f"{web.url}/"
    # As links to LibreTranslate's page are; and one that is opened where the page is.
    page.browser.get(f"{web.url}/?source=en&target=fr&q=Hello%20you.")
    page.wait(lambda: page.text("#translation"))
    assert [page.value(f"#{name}") for name in ("source", "target", "text")] == ["en", "fr", "Hello you."]
    page.run("location.hash = arguments[0]", link.partition("#")[2])
    page.wait(lambda: page.text("#translation") == translated)
    assert page.complaints() == []


def test_another_translation_is_taken_by_pointer_or_key(page: Page) -> None:
    page.type("Wo ist der Bahnhof?\n\nKönnen Sie mir helfen?")
    page.wait(lambda: page.all("#alternative-list button"))
    first, others = page.text("#translation"), page.texts("#alternative-list button")
    assert all("\n\n" in text for text in (first, *others))
    page.all("#alternative-list button")[1].click()
    assert page.text("#translation") == others[1]
    assert page.texts("#alternative-list button") == [others[0], first, *others[2:]]
    # What is taken has its own links. The focus stays where it was, on what stood there before.
    page.browser.execute_script("arguments[0].focus()", page.one("#translation .word[tabindex='0']"))
    page.wait(lambda: "Wo" in page.text("#origin"))
    page.run("arguments[0].focus()", page.all("#alternative-list button")[1])
    page.press(page.keys.ENTER)
    assert page.text("#translation") == first
    assert page.focused() == ("button", " ".join(others[1].split()))


def test_sentences_that_the_model_is_unsure_of_are_underlined_and_told_with_the_reason(page: Page) -> None:
    page.type("Guten Morgen. Verfahrensrechtliche Quasinormen bedingen Abschreibungsdifferenzen!")
    page.wait(lambda: page.text("#translation").startswith("Good morning. "))
    unsure = "".join(each.get_attribute("textContent") for each in page.all("#translation .is-unsure"))
    assert page.text("#translation") == f"Good morning. {unsure}"
    (told,) = [item for item in page.texts("#warning-list li") if "likely to be translated well" in item]
    assert re.search(r"^Verfahrensrechtliche .*! Only [1-4]?[0-9]% likely", told)
    # It is told of the best translation alone.
    page.all("#alternative-list button")[0].click()
    assert not page.all("#translation .is-unsure")
    page.type("Guten Morgen.")
    page.wait(lambda: page.text("#translation") == "Good morning.")
    assert not page.all(".is-unsure")
    assert page.complaints() == []


def test_a_number_is_no_end_of_a_sentence(page: Page) -> None:
    page.type(
        "Ich habe am 3. März 2024 genau 1.234,56 € bezahlt. Die Rechnung Nr. 4711 ist da.\n\nWo ist er?"
    )
    page.wait(lambda: page.text("#translation"))
    page.one("#attention summary").click()
    assert page.text("#sentence") == "Sentence 1 of 3"
    page.one("#sentence-after").click()
    page.one("#sentence-after").click()
    assert "Wo" in page.texts("#heat th[scope=col]")


def test_a_wrong_token_is_told_as_such(page: Page, tokens: Path) -> None:
    with serving(models=MODELS, tokens=tokens, engine=CPU) as web:
        page = Page(page.browser, web.url)
        page.browser.get(web.url)
        page.wait(lambda: "asks for a token" in page.text("#problem"))
        assert page.browser.switch_to.active_element == page.one("#token")
        page.press("wrong")
        page.press(page.keys.ENTER)
        page.wait(lambda: "does not know the token" in page.text("#problem"))
        # It is selected, so that another takes its place.
        page.wait(lambda: page.browser.switch_to.active_element == page.one("#token"))
        page.press(ADA)
        page.press(page.keys.ENTER)
        page.wait(lambda: page.all("#target option"))
        assert not page.one("#problem").is_displayed()
    page.complaints()


def test_colours_are_the_systems_or_chosen(page: Page) -> None:
    def background() -> str:
        return page.one("body").value_of_css_property("background-color")

    def bar() -> list[str]:
        script = "return [...document.querySelectorAll('meta[name=theme-color]')].filter("
        return page.run(script + "each => matchMedia(each.media).matches).map(each => each.content)")

    light, dark = ("rgba(246, 245, 241, 1)", ["#f6f5f1"]), ("rgba(20, 24, 26, 1)", ["#14181a"])
    assert (background(), bar()) == light
    page.system_is("dark")
    assert (background(), bar()) == dark
    page.choose("#theme", "light")
    assert (background(), bar()) == light
    page.open()
    assert (background(), bar()) == light
    page.system_is("light")
    page.choose("#theme", "dark")
    assert (background(), bar()) == dark
    page.choose("#theme", "")
    assert (background(), bar()) == light


REFUSED = {
    "book.pdf": b"%PDF-1.4",
    "text.foo": b"x",
    "wide.txt": "Grüße\n".encode("utf-16"),
    "other.txt": "Grüße\n".encode("cp1252"),
    "other.csv": "a,b\nGrüße,c\n".encode("cp1252"),
    "other--encoding.md": "Grüße\n".encode("cp1252"),
    "zeros.txt": b"a\x00b",
    "packed.txt": b"PK\x03\x04",
    "lines.json": b'{"a": 1}\n{"b": 2}\n',
    "subtitles.vtt": b"1\n",
    "broken.docx": b"PK",
    "empty.po": b"hello",
    "broken.txt.gz": b"no",
    "archive.tar": b"",
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_is_refused_in_words_of_people_without_a_command_line(web: Web, name: str) -> None:
    config = '{"sourceLanguage": "de", "targetLanguage": "en"}'
    columns = {"columns": "a"} if name.endswith(".csv") else {}
    answer = web.upload("/v1/translateFile", name, REFUSED[name], config=config, **columns)
    message = re.search(r'"message": ?"((?:[^"\\]|\\.)*)"', answer.body.decode())
    assert message is not None
    assert name in message[1]
    assert not re.search(r"`|--\w|\bpip\b|iconv", message[1].replace(name, ""))


def test_a_problem_is_told_and_what_helps_is_done(page: Page) -> None:
    page.type("x" * 401)
    page.wait(lambda: "401 characters, and the server takes 400" in page.text("#problem"))
    # More sentences than the queue takes; it counts those that are different.
    page.type(" ".join(f"{who} {does}." for who in WHO for does in DOES))
    page.wait(lambda: "send fewer at a time" in page.text("#problem"))
    assert not page.one("#problem-again").is_displayed()
    page.is_offline(True)
    page.type(DOG)
    page.wait(lambda: "does not answer" in page.text("#problem"))
    assert page.text("#problem-wait").startswith("Trying again in")
    page.is_offline(False)
    # By itself, after some seconds.
    page.wait(lambda: page.text("#translation") == "The dog is sleeping in the garden.")
    assert not page.one("#problem").is_displayed()
    page.complaints()
