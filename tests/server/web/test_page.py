"""The page: what it is served with, and that it works in a browser where there is one."""

import re
import shutil
from collections.abc import Iterator

import pytest
from tests.server.web.conftest import Web

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")


def test_nothing_comes_from_elsewhere(web: Web) -> None:
    page = web.get("/")
    policy = page.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    for path in ("/", "/page.js", "/page.css"):
        content = web.get(path).body.decode()
        assert not re.search(r"https?://", content)
        assert not re.search(r"\sstyle=|\son\w+=", content)
    assert web.get("/", **{"If-None-Match": page.headers["ETag"]}).status == 304


@pytest.fixture
def browser() -> Iterator[object]:
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("there is no Chromium with its driver: apt-get install chromium chromium-driver")
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1100,800"):
        options.add_argument(argument)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


def test_the_page_translates_as_one_types_and_lights_up_words(web: Web, browser: object) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.wait import WebDriverWait

    browser.get(web.url)
    wait = WebDriverWait(browser, 30)
    wait.until(lambda _: browser.find_elements(By.CSS_SELECTOR, "#target option"))

    def text(name: str) -> str:
        return browser.find_element(By.ID, name).text

    browser.find_element(By.ID, "text").send_keys("Der Hund schläft im Garten.")
    wait.until(lambda _: text("translation") == "The dog is sleeping in the garden.")
    assert text("detected").startswith("German")
    assert len(browser.find_elements(By.CSS_SELECTOR, "#alternative-list li")) >= 1
    assert "de-en/1" in text("model")
    # By keyboard: from the text to the first word of the translation, which comes from "Der".
    words = browser.find_elements(By.CSS_SELECTOR, "#translation .word")
    browser.execute_script("arguments[0].focus()", words[1])
    lit = [each.text for each in browser.find_elements(By.CSS_SELECTOR, "#source-words .is-lit")]
    assert "Hund" in lit
    box = browser.find_element(By.ID, "text")
    box.send_keys(Keys.CONTROL, "a")
    box.send_keys("Je voudrais un café, s'il vous plaît.")
    wait.until(lambda _: "French" in text("detected"))
    box.send_keys(Keys.CONTROL, "a")
    box.send_keys(Keys.DELETE)
    wait.until(lambda _: text("translation") == "")
    assert browser.get_log("browser") == []
