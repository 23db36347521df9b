"""The page: what it is served with, and what people do with it in a browser, where there is one."""

import gzip
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.server.copying_bundle import MANIFEST, write_bundle
from tests.server.web.conftest import MODELS, Web, ask, serving

from dragoman_server.config import EngineConfig, RequestLimits
from dragoman_server.web.apis.page import FILES

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
DOG = "Der Hund schläft im Garten."
WHO = ("Er", "Sie", "Anna", "Tom", "Maria")
DOES = ("geht", "kommt", "isst", "ruft", "singt", "lacht")


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory, glossaries: Path) -> Iterator[Web]:
    """The shipped model and one that copies, to French; limits that are soon met."""
    models = tmp_path_factory.mktemp("models")
    (models / "de-en").symlink_to(MODELS / "de-en")
    write_bundle(models, manifest=replace(MANIFEST, name="en-fr", source_language="en", target_language="fr"))
    limits = RequestLimits(max_text_characters=400, max_http_body_bytes=200_000)
    engine = EngineConfig(device="cpu", threads=1, max_queue=20)
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


class Page:
    """The page in a browser, as somebody sees it."""

    def __init__(self, browser, url: str) -> None:
        self.browser = browser
        self._url = url

    def open(self) -> None:
        self.browser.get(self._url)
        self.wait(lambda: self.all("#target option"))

    def wait(self, condition: Callable[[], object]) -> None:
        from selenium.common.exceptions import StaleElementReferenceException
        from selenium.webdriver.support.wait import WebDriverWait

        ignored = [StaleElementReferenceException]
        WebDriverWait(self.browser, 30, 0.1, ignored).until(lambda _: condition())

    def all(self, selector: str) -> list:
        return self.browser.find_elements("css selector", selector)

    def one(self, selector: str):
        return self.browser.find_element("css selector", selector)

    def text(self, selector: str) -> str:
        return self.one(selector).text

    def texts(self, selector: str) -> list[str]:
        return [each.text for each in self.all(selector)]

    def type(self, text: str) -> None:
        from selenium.webdriver.common.keys import Keys

        self.one("#text").send_keys(Keys.CONTROL, "a")
        self.one("#text").send_keys(text or Keys.DELETE)

    def press(self, key: str) -> None:
        self.browser.switch_to.active_element.send_keys(key)

    def choose(self, selector: str, value: str) -> None:
        from selenium.webdriver.support.select import Select

        Select(self.one(selector)).select_by_value(value)

    def prefers(self, *languages: str) -> None:
        """The browser's languages."""
        user_agent = self.browser.execute_script("return navigator.userAgent")
        override = {"userAgent": user_agent, "acceptLanguage": ",".join(languages)}
        self.browser.execute_cdp_cmd("Emulation.setUserAgentOverride", override)

    def is_offline(self, offline: bool) -> None:
        self.browser.set_network_conditions(offline=offline, latency=0, throughput=1 << 30)

    def drop(self, name: str, content: str) -> None:
        """As if it were dragged here."""
        self.browser.execute_script(
            """const data = new DataTransfer();
            data.items.add(new File([arguments[1]], arguments[0]));
            const options = { dataTransfer: data, bubbles: true, cancelable: true };
            document.getElementById("text").dispatchEvent(new DragEvent("drop", options));""",
            name,
            content,
        )

    def downloaded(self) -> bytes:
        self.wait(lambda: self.one("#download").is_displayed())
        return ask(self.one("#download").get_attribute("href")).body

    def complaints(self) -> list[str]:
        """What the browser has against the page, such as its policy."""
        return [each["message"] for each in self.browser.get_log("browser")]


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("there is no Chromium with its driver: apt-get install chromium chromium-driver")
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1100,900"):
        options.add_argument(argument)
    # A name as a server has in a network of one's own: without TLS no secure context, as localhost is.
    options.add_argument("--host-resolver-rules=MAP dragoman.test 127.0.0.1")
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def page(web: Web, browser) -> Page:
    page = Page(browser, web.url)
    page.prefers("en-US", "en")
    page.open()
    browser.execute_script("sessionStorage.clear()")
    page.open()
    return page


def test_it_translates_as_one_types_and_shows_what_comes_from_what(page: Page) -> None:
    from selenium.webdriver.common.keys import Keys

    page.type(f"{DOG} Мария wohnt dort.")
    page.wait(lambda: page.text("#translation") == "The dog is sleeping in the garden. Мария lives there.")
    assert page.text("#detected").startswith("German")
    assert page.all("#alternative-list li")
    assert "de-en/1" in page.text("#model")
    assert page.text("#timing").endswith(" ms")

    # Warnings stand where the text does, on both sides.
    assert "Мария" in page.text("#warning-list")
    assert page.one("#marks .is-warned").get_attribute("textContent") == "Мария"
    assert page.text("#translation .is-warned") == "Мария"

    # By keyboard: Tab to the translation, an arrow to its second word. By the caret: the other way.
    page.browser.execute_script("arguments[0].focus()", page.one("#translation .word[tabindex='0']"))
    page.press(Keys.ARROW_RIGHT)
    lit = [each.get_attribute("textContent") for each in page.all("#marks .is-lit")]
    assert "Hund" in lit
    assert page.text("#origin").startswith("dog ← Hund")
    page.one("#text").send_keys(Keys.CONTROL, Keys.HOME)
    assert page.texts("#translation .is-lit") == ["The"]

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
    from selenium.webdriver.common.keys import Keys

    plain = Page(page.browser, web.url.replace("127.0.0.1", "dragoman.test"))
    plain.open()
    assert plain.browser.execute_script("return isSecureContext") is False
    plain.type(DOG)
    plain.wait(lambda: plain.text("#translation") == "The dog is sleeping in the garden.")
    plain.one("#copy").click()
    plain.wait(lambda: plain.text("#copy") == "Copied")
    plain.type("")
    plain.one("#text").send_keys(Keys.CONTROL, "v")
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
    assert page.text("#model").startswith("Model de-en/1")
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

    page.drop("pets.csv", f"Nr;Satz\n1;{DOG}\n".replace(";", ","))
    page.one("#columns").send_keys("Satz")
    page.one("#table button").click()
    assert page.downloaded().decode() == "Nr,Satz\n1,The dog is sleeping in the garden.\n"

    # What is refused says why; what is cancelled is work that nobody does.
    page.drop("big.txt", "x" * 200_000)
    page.wait(lambda: "--max-http-body-bytes" in page.text("#file-state"))
    page.drop("book.pdf", "%PDF-1.4")
    page.wait(lambda: "book.pdf is by its name a document" in page.text("#file-state"))
    page.drop("long.txt", "".join(f"{number} Hunde schlafen im Garten.\n" for number in range(3000)))
    page.wait(lambda: re.match(r"[1-9]\d* of 3000", page.text("#file-state")))
    assert 0 < float(page.one("#file-progress").get_attribute("value")) < 1
    page.one("#file-close").click()
    cancelled = 'dragoman_http_requests_total{route="v1.translateFile",status="499"} 1.0'
    page.wait(lambda: cancelled in web.get("/metrics").body.decode())
    assert [each for each in page.complaints() if "400" not in each] == []


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
