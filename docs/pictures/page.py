"""Takes the pictures of the page that the documents show, in headless Chromium.

dragoman serve --models models --http-port 8080
python docs/pictures/page.py http://localhost:8080 [--out FOLDER]
"""

import argparse
import base64
import shutil
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

TEXT = "Der Zug nach Hamburg fährt um 17:45 Uhr ab. Meine Freundin Мария wohnt dort."
POINTED = "leaves"


def main() -> None:
    """Takes all of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    arguments = parser.parse_args()
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(argument)
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    browser = webdriver.Chrome(options=options, service=service)
    try:
        url, out = arguments.url, arguments.out
        # A server's first answer takes longer than those that follow.
        translate(browser, url)
        take(browser, url, out / "page-phone.png", width=390)
        take(browser, url, out / "page.png", width=1100)
        take(browser, url, out / "page-dark.png", width=1100, is_dark=True, opens="attention")
    finally:
        browser.quit()


def take(
    browser: webdriver.Chrome, url: str, path: Path, *, width: int, is_dark: bool = False, opens: str = ""
) -> None:
    """One picture, of the whole page with a translation and a word pointed at; `opens`: a part by its id."""
    scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    resize(browser, width, 600)
    translate(browser, url)
    if opens:
        browser.find_element(By.CSS_SELECTOR, f"#{opens} > summary").click()
    # All of it, before a word is pointed at: another size moves the words from under the pointer.
    box = browser.execute_script("return document.documentElement.getBoundingClientRect()")
    resize(browser, width, round(box["height"]))
    word = next(
        each for each in browser.find_elements(By.CSS_SELECTOR, "#translation .word") if each.text == POINTED
    )
    browser.execute_script("document.activeElement.blur()")
    webdriver.ActionChains(browser).move_to_element(word).perform()
    WebDriverWait(browser, 30).until(lambda _: browser.find_elements(By.CSS_SELECTOR, ".is-lit"))
    path.write_bytes(base64.b64decode(browser.get_screenshot_as_base64()))


def translate(browser: webdriver.Chrome, url: str) -> None:
    """Opens the page anew and types the text."""
    browser.get(url)
    wait = WebDriverWait(browser, 30)
    wait.until(lambda _: browser.find_elements(By.CSS_SELECTOR, "#target option"))
    browser.find_element(By.ID, "text").send_keys(TEXT)
    wait.until(lambda _: POINTED in browser.find_element(By.ID, "translation").text)


def resize(browser: webdriver.Chrome, width: int, height: int) -> None:
    """The page's size; a narrow one is a phone's."""
    is_phone = width < 600
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": 1 + is_phone, "mobile": is_phone},
    )


if __name__ == "__main__":
    main()
