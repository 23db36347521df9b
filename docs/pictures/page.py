"""Takes the pictures of the page that the documents show, in headless Chromium.

dragoman serve --models models --http-port 8080
python docs/pictures/page.py http://localhost:8080 [--out FOLDER]

The text from right to left needs a model from Arabic to English; without one its picture stays as it is.
"""

import argparse
import base64
import io
import shutil
from pathlib import Path
from urllib.parse import urlencode

from PIL import Image
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

GERMAN = "Der Zug nach Hamburg fährt um 17:45 Uhr ab. Meine Freundin Мария wohnt dort."
ARABIC = "محمد\nآتشيسون\nآتزمون"
WIDTHS = {"phone": 390, "tablet": 768, "": 1100}
NUM_COLOURS = 128


def main() -> None:
    """Takes all of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    arguments = parser.parse_args()
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--lang=en"):
        options.add_argument(argument)
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    browser = webdriver.Chrome(options=options, service=service)
    try:
        url, out = arguments.url, arguments.out
        # A server's first answer takes longer than those that follow.
        translate(browser, url, GERMAN, "de")
        for name, width in WIDTHS.items():
            for scheme in ("light", "dark"):
                stem = "-".join(filter(None, ("page", name, scheme.replace("light", ""))))
                opened = "attention" if (name, scheme) == ("", "dark") else ""
                take(browser, url, out / f"{stem}.png", width=width, scheme=scheme, opened=opened)
        if browser.find_elements(By.CSS_SELECTOR, "#source option[value=ar]"):
            path = out / "page-right-to-left.png"
            take(browser, url, path, width=WIDTHS["tablet"], text=ARABIC, source="ar")
    finally:
        browser.quit()


def take(
    browser: webdriver.Chrome,
    url: str,
    path: Path,
    *,
    width: int,
    scheme: str = "light",
    opened: str = "",
    text: str = GERMAN,
    source: str = "de",
) -> None:
    """One picture, of the whole page with a translation and a word pointed at; `opened` is a part's id."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    resize(browser, width, 600)
    translate(browser, url, text, source)
    if opened:
        browser.find_element(By.CSS_SELECTOR, f"#{opened} > summary").click()
    # All of it, before a word is pointed at: another size moves the words from under the pointer.
    box = browser.execute_script("return document.documentElement.getBoundingClientRect()")
    resize(browser, width, round(box["height"]))
    words = browser.find_elements(By.CSS_SELECTOR, "#translation .word")
    browser.execute_script("document.activeElement.blur()")
    pointed = next((word for word in words if word.text == "leaves"), words[0])
    webdriver.ActionChains(browser).move_to_element(pointed).perform()
    WebDriverWait(browser, 30).until(lambda _: browser.find_elements(By.CSS_SELECTOR, ".is-lit"))
    shown = Image.open(io.BytesIO(base64.b64decode(browser.get_screenshot_as_base64())))
    shown.convert("RGB").quantize(NUM_COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)


def translate(browser: webdriver.Chrome, url: str, text: str, source: str) -> None:
    """Opens the page anew with a text."""
    browser.get("about:blank")
    # The language is detected, where it is the one that is shipped.
    asked = {"source": "auto" if source == "de" else source, "target": "en", "q": text}
    browser.get(f"{url}#{urlencode(asked)}")
    wait = WebDriverWait(browser, 30)
    wait.until(lambda _: browser.find_elements(By.CSS_SELECTOR, "#alternative-list button"))


def resize(browser: webdriver.Chrome, width: int, height: int) -> None:
    """The page's size; a narrow one is a phone's."""
    is_phone = width < 600
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": is_phone},
    )


if __name__ == "__main__":
    main()
