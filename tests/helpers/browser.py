"""Opens reports in headless Chromium, and notes everything that a page must not do."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Tests may run as root in a container, without a display, and must not reach for the network.
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
)


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
def opened(browser: Any, path: Path, width: int, scheme: str = "light", scripts: bool = True) -> Iterator[Opened]:
    """Open a file at a width, light or dark, offline."""
    context = browser.new_context(
        viewport={"width": width, "height": 844}, color_scheme=scheme, java_script_enabled=scripts, offline=True
    )
    found = Opened(context.new_page())
    found.page.set_default_timeout(200_000)  # milliseconds: how long a page takes depends on what else the machine does
    address = path.as_uri()
    found.page.on("console", lambda m: found.said.append(m.text) if m.type in ("error", "warning") else None)
    found.page.on("pageerror", lambda error: found.said.append(str(error)))
    found.page.on("request", lambda r: found.asked.append(r.url) if r.url.split("#")[0] != address else None)
    try:
        found.page.goto(address)
        yield found
    finally:
        context.close()
