"""Opens reports in headless Chromium, and notes everything that a page must not do."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Tests may run as root in a container, without a display, and must not reach for the network.
FLAGS = (
    "--no-sandbox", "--no-first-run", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-quic",
)  # fmt: skip

# Returns texts whose contrast with the nearest background that is not transparent is below 4.5 (3 for large text).
CONTRAST = """() => {
  const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = (colour) => {
    const [r, g, b] = numbers(colour).map((v) => ((v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (it) => {
    for (; it; it = it.parentElement) {
      const colour = getComputedStyle(it).backgroundColor;
      if ((numbers(colour)[3] ?? 1) > 0) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const found = [];
  for (const it of document.body.querySelectorAll("*:not(svg, svg *, script, noscript, style)")) {
    if (![...it.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) || !it.checkVisibility()) continue;
    const style = getComputedStyle(it);
    const [a, b] = [light(style.color), light(behind(it))].sort((x, y) => y - x);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && style.fontWeight >= 700);
    if ((a + 0.05) / (b + 0.05) < (large ? 3 : 4.5)) found.push(`${it.tagName} ${it.className}: ${it.textContent}`);
  }
  return found;
}"""


@dataclass
class Opened:
    """A page in a browser.

    Attributes:
        page: of playwright.
        said: errors and warnings of its console, and exceptions of its scripts.
        asked: addresses that it tried to load, but for its own.
    """

    page: Any
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def reload(self) -> None:
        """Start again, which is quicker than another page."""
        self.page.reload()

    def focused(self, what: str) -> Any:
        """Evaluate JavaScript on the element that has the focus, called `it`."""
        return self.page.evaluate(f"(it => {what})(document.activeElement)")

    def press(self, *keys: str) -> None:
        """Press keys, one after the other."""
        for key in keys:
            self.page.keyboard.press(key)

    def text(self, selector: str) -> str:
        """Return the text of an element, as the DOM has it."""
        return str(self.page.locator(selector).text_content())


def executable() -> str | None:
    """Return where Chromium is: `METASEARCH_CHROMIUM`, or the first one on the path."""
    return os.environ.get("METASEARCH_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def chromium() -> Iterator[Any]:
    """Give a browser; the test is skipped where there is none, with a message on how to get one."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is missing: pip install playwright")
    path = executable()
    if path is None:
        pytest.skip("Chromium is missing: apt-get install chromium, or set METASEARCH_CHROMIUM to its path")
    with api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened(browser: Any, path: Path, width: int, scheme: str = "light") -> Iterator[Opened]:
    """Open a file at a width, light or dark, offline."""
    settings = {"color_scheme": scheme, "offline": True}
    address = path.as_uri()
    with _watched(browser, width, lambda url: url.split("#")[0] == address, **settings) as found:
        found.page.goto(address)
        yield found


@contextmanager
def visited(
    browser: Any, origin: str, path: str, width: int, scheme: str = "light", scripts: bool = True
) -> Iterator[Opened]:
    """Open a page of a server at a width, light or dark; addresses of other origins count as asked for."""
    settings = {"color_scheme": scheme, "java_script_enabled": scripts}
    with _watched(browser, width, lambda url: url.startswith(f"{origin}/"), **settings) as found:
        found.page.goto(f"{origin}{path}")
        yield found


@contextmanager
def _watched(browser: Any, width: int, is_own: Callable[[str], bool], **settings: Any) -> Iterator[Opened]:
    context = browser.new_context(viewport={"width": width, "height": 844}, **settings)
    found = Opened(context.new_page())
    found.page.set_default_timeout(200_000)  # milliseconds: how long a page takes depends on what else the machine does
    found.page.on("console", lambda m: found.said.append(m.text) if m.type in ("error", "warning") else None)
    found.page.on("pageerror", lambda error: found.said.append(str(error)))
    found.page.on("request", lambda r: None if is_own(r.url) else found.asked.append(r.url))
    try:
        yield found
    finally:
        context.close()


class EveryScreen:
    """What holds for a page at each width, light and dark: the fixture `screen` of a subclass."""

    def test_nothing_is_complained_about_and_no_other_host_is_asked(self, screen):
        assert screen.said == []
        assert screen.asked == []

    def test_the_page_does_not_scroll_sideways(self, screen):
        assert screen.page.evaluate("document.documentElement.scrollWidth <= innerWidth")

    def test_text_stands_out_from_its_background(self, screen):
        """WCAG AA asks for 4.5 to 1; the check reads what the browser computed."""
        assert screen.page.evaluate(CONTRAST) == []
