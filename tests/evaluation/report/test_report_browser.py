"""The report in a real browser, wide and narrow, light and dark, and on paper."""

import pytest
from click.testing import CliRunner

from helpers.browser import EveryScreen, chromium, opened
from helpers.studies import write_study
from metasearch.cli import main

pytestmark = pytest.mark.slow  # a browser is begun

LANGUAGES = ("ar", "de", "el", "en")
SCREENS = [(width, scheme) for width in (1280, 390) for scheme in ("light", "dark")]


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Return a report on zero-shot and two learners on two folds, whose texts hold markup and Arabic."""
    folder = tmp_path_factory.mktemp("browser")
    arms = {"zero-shot": 0.5, "maml": 2.0, "fine-tune": 1.0}
    study = write_study(folder / "study", arms, folds=(0, 1), seeds=(1, 2), languages=LANGUAGES)
    done = CliRunner().invoke(main, ["report", str(study), "-o", str(folder / "report")])
    assert done.exit_code == 0, done.output
    return folder / "report" / "report.html"


@pytest.fixture(scope="class", params=SCREENS, ids=lambda screen: f"{screen[0]}-{screen[1]}")
def screen(request, browser, report):
    width, scheme = request.param
    with opened(browser, report, width, scheme) as found:
        yield found


class TestEveryScreen(EveryScreen):
    pass


def test_paper_has_the_tables_and_no_controls(browser, report):
    with opened(browser, report, 1280, "dark") as found:
        found.page.emulate_media(media="print", color_scheme="dark")
        tables = found.page.locator("main section > div > .scroll > table").all()
        assert tables
        assert all(table.is_visible() for table in tables)
        assert not found.page.locator("nav").is_visible()
        ink, paper = found.page.evaluate("(s => [s.color, s.backgroundColor])(getComputedStyle(document.body))")
        assert max(map(int, ink[4:-1].split(", "))) < 64  # dark ink
        assert paper == "rgba(0, 0, 0, 0)"
