"""The page for people of other languages, scripts, screens and ways to use a computer, in a browser."""

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import pytest
from tests.server.conftest import CPU
from tests.server.copying_bundle import write_bundle
from tests.server.web.conftest import MODELS, Page, Web, serving

from dragoman_server.web.apis import page as served

STATIC = Path(served.__file__).with_name("static")
DOG = "Der Hund schläft im Garten."
ARABIC = "ينام الكلب في الحديقة"
TEXT_ATTRIBUTES = {"aria-label", "content", "data-empty", "placeholder", "title"}

BROKEN_WORDS = r"""
const broken = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let node; (node = walker.nextNode()); ) {
  if (!node.parentElement.checkVisibility() || node.parentElement.closest("select, noscript")) continue;
  for (const word of node.data.matchAll(/[\p{L}\p{N}]+/gu)) {
    const range = document.createRange();
    range.setStart(node, word.index);
    range.setEnd(node, word.index + word[0].length);
    const lines = new Set([...range.getClientRects()].map((box) => Math.round(box.top)));
    if (lines.size > 1) broken.push(word[0]);
  }
}
return broken;
"""
SMALL_TARGETS = """
return [...document.querySelectorAll("button, select, summary, input, a, .choices label")]
  .filter((each) => each.checkVisibility() && each.type !== "checkbox")
  .map((each) => [each.id || each.textContent, each.getBoundingClientRect()])
  .filter(([, box]) => box.width < 43.9 || box.height < 43.9)
  .map(([name, box]) => `${name}: ${box.width} x ${box.height}`);
"""


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory, glossaries: Path) -> Iterator[Web]:
    """The shipped model, and two that copy, from Arabic and to it."""
    models = tmp_path_factory.mktemp("models")
    (models / "de-en").symlink_to(MODELS / "de-en")
    for pair in ("ar-en", "en-ar"):
        write_bundle(models, f"{pair}/1", pair)
    with serving(models=models, glossaries=glossaries, engine=CPU) as web:
        yield web


class Words(HTMLParser):
    """The words that people read in a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()
        self._is_of_scriptless = False

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        self._is_of_scriptless = self._is_of_scriptless or tag == "noscript"
        if tag != "meta" or values.get("name") == "description":
            self.found |= {value for name, value in attributes if name in TEXT_ATTRIBUTES and value}

    def handle_endtag(self, tag: str) -> None:
        self._is_of_scriptless = self._is_of_scriptless and tag != "noscript"

    def handle_data(self, data: str) -> None:
        words = " ".join(data.split())
        if re.search("[A-Za-z]", words) and words != "Dragoman" and not self._is_of_scriptless:
            self.found.add(words)


def test_every_word_of_the_page_is_in_each_of_its_languages() -> None:
    words = Words()
    words.feed((STATIC / "index.html").read_text(encoding="utf-8"))
    for path in STATIC.glob("*.js"):
        script = re.sub(r'"\s*\+\s*"', "", path.read_text(encoding="utf-8"))
        words.found |= set(re.findall(r'\b(?:say\(|told =)\s*"((?:[^"\\]|\\.)*)"', script))
    translations = json.loads((STATIC / "strings.json").read_text(encoding="utf-8"))
    assert set(translations) == {"de", "fr", "es"}
    for language, translated in translations.items():
        assert set(translated) == words.found, language
        for english, other in translated.items():
            assert sorted(re.findall(r"\{\w+\}", other)) == sorted(re.findall(r"\{\w+\}", english))


def test_the_page_speaks_the_browsers_language(page: Page) -> None:
    expected = {
        ("fr-CH", "de"): ("fr", "Choisir un fichier", "Allemand", "allemand, 100 %"),
        ("pl", "es-MX"): ("es", "Elegir un archivo", "Alemán", "alemán, 100 %"),
        ("de-AT",): ("de", "Datei wählen", "Deutsch", "Deutsch, 100 %"),
        ("ja",): ("en", "Choose a file", "German", "German, 100%"),
    }
    for languages, (language, choose, german, detected) in expected.items():
        page.prefers(*languages)
        page.open()
        page.type(f"{DOG} Wo ist der Bahnhof? Ich habe Hunger.")
        page.wait(lambda: page.text("#translation"))
        assert page.one("html").get_attribute("lang") == language
        assert page.text("#choose") == choose
        assert page.one("#source option[value=de]").text == german
        # In letters as they are shown, and spaces that break no line.
        assert page.text("#detected").replace("\xa0", " ").replace("\u202f", " ") == detected


def test_a_text_runs_from_the_side_of_its_language(page: Page) -> None:
    def directions(*selectors: str) -> list[str]:
        return [page.one(selector).value_of_css_property("direction") for selector in selectors]

    page.type(ARABIC)
    page.wait(lambda: page.text("#detected").startswith("Arabic") and page.text("#translation"))
    assert directions("#text", "#marks", "#translation") == ["rtl", "rtl", "ltr"]
    # The marks lie under the text's letters, which begin at the right.
    script = "return document.querySelector(arguments[0]).getBoundingClientRect().right"
    assert 0 < page.run(script, "#text") - page.run(script, "#marks span") < 30
    page.type("The dog sleeps in the garden, and the cat, too.")
    page.choose("#target", "ar")
    page.wait(lambda: page.one("#translation").get_attribute("lang") == "ar" and page.text("#translation"))
    assert directions("#text", "#marks", "#translation", "#alternative-list") == ["ltr", "ltr", "rtl", "rtl"]


@pytest.mark.parametrize("language", ["en", "de", "fr", "es"])
def test_it_fits_a_narrow_screen_and_a_finger(page: Page, language: str) -> None:
    page.is_wide(320, is_touched=True)
    page.prefers(language)
    page.open()
    page.type(f"{DOG} Мария wohnt dort. Wo ist der Bahnhof?")
    page.wait(lambda: page.all("#alternative-list button"))
    for part in ("#glossary", "#attention", "#help", "#token-box"):
        page.run("document.querySelector(arguments[0]).open = true", part)
    page.one("#add-entry").click()
    assert page.run(BROKEN_WORDS) == []
    assert page.run(SMALL_TARGETS) == []
    assert page.run("return document.documentElement.scrollWidth") == 320
    if language == "en":
        assert page.text("#origin").startswith("Tap a word")
        page.run(
            "scrollTo(0, 0); const box = document.querySelector('#marks .word').getBoundingClientRect();"
            "window.spot = [box.x + 5, box.y + 10]"
        )
        x, y = page.run("return window.spot")
        for kind, points in (("touchStart", [{"x": x, "y": y}]), ("touchEnd", [])):
            touch = {"type": kind, "touchPoints": points}
            page.browser.execute_cdp_cmd("Input.dispatchTouchEvent", touch)
        page.wait(lambda: page.text("#origin").startswith("Der → The"))


def test_everything_has_its_place(page: Page) -> None:
    box = {name: page.one(f"#{name}").rect for name in ("source", "swap", "target")}
    assert box["source"]["x"] + box["source"]["width"] < box["swap"]["x"]
    assert box["swap"]["x"] + box["swap"]["width"] < box["target"]["x"]
    page.type(DOG)
    page.wait(lambda: page.all("#alternative-list button"))
    parts = ["#sides", "#alternatives", "#glossary", "#attention", "footer"]
    places = [page.one(part).rect["y"] for part in parts]
    assert places == sorted(places)


@pytest.mark.parametrize("width", [390, 1100])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_rules_of_axe_hold(page: Page, width: int, scheme: str) -> None:
    pytest.importorskip("axe_core_python")
    rules = files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    page.is_wide(width)
    page.system_is(scheme)
    page.type(f"{DOG} Мария wohnt dort. Wo ist der Bahnhof?")
    page.wait(lambda: page.all("#alternative-list button"))
    for part in ("#glossary", "#attention", "#help", "#token-box"):
        page.run("document.querySelector(arguments[0]).open = true", part)
    page.one("#add-entry").click()
    page.drop("pets.csv", "Nr,Satz\n1,Hallo.\n")
    page.wait(lambda: page.all("#columns input"))
    page.run(rules)
    run = "axe.run().then(arguments[0])"
    violations = page.browser.execute_async_script(run)["violations"]
    assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in violations] == []


def test_it_is_used_by_keyboard_and_by_what_a_screen_reader_is_told(page: Page) -> None:
    assert page.focused() == ("textbox", "Text to translate")
    page.press(DOG)
    page.wait(lambda: "German" in page.said() and "Point at a word" in page.said())
    # Word by word, each with what it comes from.
    page.tab_to("button", "Clear")
    page.press(page.keys.TAB)
    page.press(page.keys.TAB)
    page.press(page.keys.ARROW_RIGHT)
    page.wait(lambda: "dog\n ← \nHund" in page.said())
    # Another translation.
    page.tab_to("button", "Copy")
    page.press(page.keys.TAB)
    role, other = page.focused()
    assert role == "button"
    page.press(page.keys.ENTER)
    page.wait(lambda: page.text("#translation") == other)
    # An entry of one's own.
    page.tab_to("DisclosureTriangle", "Glossary")
    page.press(page.keys.ENTER)
    page.tab_to("button", "Add an entry")
    page.press(page.keys.ENTER)
    assert page.focused() == ("textbox", "Word of the text")
    page.press("Garten")
    page.tab_to("textbox", "Its translation")
    page.press("yard")
    page.wait(lambda: "yard" in page.text("#translation"))
    # Back to the top by going on; the languages, and an empty page.
    page.tab_to("combobox", "Colours")
    page.press(page.keys.ARROW_DOWN)
    page.tab_to("combobox", "To")
    page.press(page.keys.HOME)
    page.wait(lambda: page.one("#translation").get_attribute("lang") == "ar")
    page.tab_to("button", "Clear")
    page.press(page.keys.ENTER)
    assert page.focused() == ("textbox", "Text to translate")
    page.wait(lambda: "The translation appears here" in page.said() and DOG not in page.said())
    assert page.complaints() == []
