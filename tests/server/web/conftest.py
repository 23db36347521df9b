"""A real server with the shipped model and a door over HTTP, one for each module, and its page."""

import asyncio
import json
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from tests.server.conftest import CPU

from dragoman_server.config import ServerConfig
from dragoman_server.server import Server

MODELS = Path(__file__).parents[3] / "models"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Web:
    url: str
    grpc_address: str

    def get(self, path: str, **headers: str) -> Answer:
        return ask(self.url + path, headers=headers)

    def post(self, path: str, value: object, **headers: str) -> Answer:
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        return ask(self.url + path, body, {"Content-Type": "application/json", **headers})

    def upload(self, path: str, name: str, content: bytes, **fields: str) -> Answer:
        return ask(self.url + path, *multipart(name, content, **fields))


def multipart(name: str, content: bytes, **fields: str) -> tuple[bytes, dict[str, str]]:
    """A form with a file of that name, and its header."""
    body = b"".join(
        b'--x\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' % (key.encode(), value.encode())
        for key, value in fields.items()
    )
    body += (
        b'--x\r\nContent-Disposition: form-data; name="file"; filename="%s"\r\n'
        b"Content-Type: application/octet-stream\r\n\r\n%s\r\n--x--\r\n" % (name.encode(), content)
    )
    return body, {"Content-Type": "multipart/form-data; boundary=x"}


def ask(url: str, body: bytes | None = None, headers: Mapping[str, str] | None = None) -> Answer:
    try:
        with urlopen(Request(url, body, dict(headers or {})), timeout=60) as response:
            return Answer(response.status, response.headers, response.read())
    except HTTPError as error:
        with error:
            return Answer(error.code, error.headers, error.read())


@pytest.fixture(scope="module")
def glossaries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("glossaries")
    (folder / "house.tsv").write_text("de\ten\nHund\thound\n")
    return folder


@contextmanager
def serving(**config: Any) -> Iterator[Web]:
    """A server as the fields of ServerConfig say."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def start() -> Server:
        server = Server(ServerConfig(port=0, metrics_port=0, http_port=0, **config))
        await server.start()
        return server

    server = asyncio.run_coroutine_threadsafe(start(), loop).result()
    try:
        yield Web(f"http://127.0.0.1:{server.http_port}", f"localhost:{server.port}")
    finally:
        asyncio.run_coroutine_threadsafe(server.drain(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@pytest.fixture(scope="module")
def web(glossaries: Path) -> Iterator[Web]:
    with serving(models=MODELS, glossaries=glossaries, engine=CPU) as web:
        yield web


CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")


class Page:
    """The page in a browser, as somebody sees it."""

    def __init__(self, browser, url: str) -> None:
        self.browser = browser
        self._url = url

    @property
    def keys(self):
        """Those of a keyboard, by name."""
        from selenium.webdriver.common.keys import Keys

        return Keys

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
        self.one("#text").send_keys(self.keys.CONTROL, "a")
        self.one("#text").send_keys(text or self.keys.DELETE)

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

    def value(self, selector: str) -> str:
        return self.one(selector).get_attribute("value")

    def run(self, script: str, *arguments: object):
        return self.browser.execute_script(script, *arguments)

    def is_wide(self, width: int, *, is_touched: bool = False) -> None:
        size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": is_touched}
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.browser.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": is_touched})

    def system_is(self, scheme: str) -> None:
        """The system's colours: light or dark."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def focused(self) -> tuple[str, str]:
        """Role and name of what has the focus, as the accessibility tree has them."""
        element = self.browser.switch_to.active_element
        return element.aria_role, element.accessible_name

    def tab_to(self, role: str, name: str) -> None:
        """Presses Tab until that has the focus."""
        seen = []
        while (self.focused()) != (role, name):
            assert len(seen) < 60, f"Tab comes to none of {role} {name!r}, but to {seen}"
            self.press(self.keys.TAB)
            seen.append(self.focused())

    def said(self) -> str:
        """All text of the accessibility tree."""
        nodes = self.browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
        return "\n".join(
            node["name"]["value"]
            for node in nodes
            if not node["ignored"] and node["role"]["value"] == "StaticText"
        )


@contextmanager
def open_browser() -> Iterator[object]:
    """Chromium, or the test is skipped."""
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
    try:
        yield driver
    finally:
        driver.quit()


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    with open_browser() as browser:
        yield browser


@pytest.fixture
def page(web: Web, browser) -> Page:
    """The page as it is for somebody who was never there, and reads English."""
    page = Page(browser, web.url)
    page.prefers("en-US", "en")
    page.is_wide(1100)
    page.system_is("light")
    page.open()
    page.run("localStorage.clear(); sessionStorage.clear()")
    page.open()
    return page
