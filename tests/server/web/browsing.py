"""The page in a browser, where there is one: what somebody does there, and sees."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from tests.server.web.conftest import Web, ask

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")


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
        from selenium.webdriver.common.keys import Keys

        seen = []
        while (self.focused()) != (role, name):
            assert len(seen) < 60, f"Tab comes to none of {role} {name!r}, but to {seen}"
            self.press(Keys.TAB)
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


def fresh_page(browser, web: Web) -> Page:
    """The page as it is for somebody who was never there, and reads English."""
    page = Page(browser, web.url)
    page.prefers("en-US", "en")
    page.is_wide(1100)
    page.system_is("light")
    page.open()
    page.run("localStorage.clear(); sessionStorage.clear()")
    page.open()
    return page
