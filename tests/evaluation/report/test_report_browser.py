"""The report in a real browser, wide and narrow, light and dark, with a keyboard, on paper, and without scripts."""

import pytest
from click.testing import CliRunner

from helpers.browser import CONTRAST, chromium, opened
from helpers.studies import write_study
from metasearch.cli import main

pytestmark = pytest.mark.slow  # a browser is begun

LANGUAGES = ("ar", "de", "el", "en")
SCREENS = [(width, scheme) for width in (1280, 390) for scheme in ("light", "dark")]


@pytest.fixture(scope="module")
def browser():
    """Return headless Chromium."""
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Return a report on zero-shot and two learners on two folds, whose texts hold markup and Arabic."""
    folder = tmp_path_factory.mktemp("browser")
    arms = {"zero-shot": 0.5, "maml": 2.0, "fine-tune": 1.0}
    study = write_study(folder / "study", arms, folds=(0, 1), seeds=(1, 2), languages=LANGUAGES)
    done = CliRunner().invoke(main, ["report", str(study), "-o", str(folder / "report"), "--resamples", "200"])
    assert done.exit_code == 0, done.output
    return folder / "report" / "report.html"


@pytest.fixture(scope="class", params=SCREENS, ids=lambda screen: f"{screen[0]}-{screen[1]}")
def screen(request, browser, report):
    """Return the report at each width, light and dark."""
    width, scheme = request.param
    with opened(browser, report, width, scheme) as found:
        yield found


@pytest.fixture(scope="module", params=(1280, 390))
def page(request, browser, report):
    """Return the report at both widths; tests share it, and start it again."""
    with opened(browser, report, request.param) as found:
        yield found


@pytest.fixture
def fresh(page):
    """Return the report as it is when it was just opened."""
    page.reload()
    return page


@pytest.fixture
def explorer(fresh):
    """Return the report with the focus on the first question of the explorer."""
    fresh.page.locator("#explorer-list [tabindex='0']").focus()
    return fresh


class TestEveryScreen:
    @pytest.mark.slow
    def test_nothing_is_complained_about_and_nothing_is_loaded(self, screen):
        assert screen.said == []
        assert screen.asked == []

    def test_the_page_does_not_scroll_sideways(self, screen):
        screen.page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
        assert screen.page.evaluate("document.documentElement.scrollWidth <= innerWidth")

    def test_text_stands_out_from_its_background(self, screen):
        """WCAG AA asks for 4.5 to 1; the check reads what the browser computed."""
        assert screen.page.evaluate(CONTRAST) == []


class TestTheKeyboard:
    def test_an_arrow_shows_the_next_question_and_says_so(self, explorer):
        before = explorer.text("#explorer-facts")
        explorer.press("ArrowDown")
        assert explorer.focused("it.dataset.index") == "1"
        assert "Question 1 of 16" in before
        assert "Question 2 of 16" in explorer.text("#explorer-facts")
        assert "Question 2 of 16" in explorer.text("[role=status]")
        assert explorer.focused("it.getAttribute('aria-selected')") == "true"

    def test_enter_goes_to_the_languages_and_escape_goes_back(self, explorer):
        explorer.press("ArrowDown", "Enter")
        assert explorer.focused("it.getAttribute('role') + it.dataset.language") == "taben"
        explorer.press("Escape")
        assert explorer.focused("it.dataset.index") == "1"

    def test_another_language_shows_the_translation_set_right_to_left(self, explorer):
        explorer.press("Enter", "Home")
        question = explorer.page.locator("#explorer-question > span")
        assert explorer.focused("it.dataset.language") == "ar"
        assert question.get_attribute("lang") == "ar"
        assert question.evaluate("it => getComputedStyle(it).direction") == "rtl"
        assert explorer.text("[role=status]").startswith("Arabic: zero-shot ")
        explorer.press("ArrowRight")
        assert question.get_attribute("lang") == "de"
        assert question.evaluate("it => getComputedStyle(it).direction") == "ltr"

    def test_the_filter_leaves_questions_with_the_text_in_any_language(self, explorer):
        explorer.page.locator("#explorer-find").focus()
        explorer.page.keyboard.type("ΦΆΡΟΣ; test1-article-3")  # Greek, in other case
        assert explorer.text("[role=status]") == "1 of 16 questions."
        assert "test1-article-3." in explorer.text("#explorer-facts")
        explorer.page.keyboard.type("no such text")
        assert explorer.page.locator("#explorer-none").is_visible()
        assert not explorer.page.locator("#explorer-detail").is_visible()
        explorer.page.locator("#explorer-find").fill("")
        assert explorer.page.locator("#explorer-list [role=option]").count() == 16
        assert explorer.said == []


class TestElsewhere:
    def test_paper_has_the_tables_and_one_question_and_no_controls(self, browser, report):
        with opened(browser, report, 1280, "dark") as found:
            found.page.emulate_media(media="print", color_scheme="dark")
            tables = found.page.locator("main section > div > .scroll > table").all()
            assert tables
            assert all(table.is_visible() for table in tables)
            assert found.page.locator(".explorer-ranking").first.is_visible()
            for hidden in ("#explorer-list", "#explorer-find", "#explorer-pair", "nav"):
                assert not found.page.locator(hidden).is_visible()
            ink, paper = found.page.evaluate("(s => [s.color, s.backgroundColor])(getComputedStyle(document.body))")
            assert max(map(int, ink[4:-1].split(", "))) < 64  # dark ink
            assert paper == "rgba(0, 0, 0, 0)"

    def test_without_scripts_the_questions_are_listed(self, browser, report):
        with opened(browser, report, 390, scripts=False) as found:
            assert not found.page.locator("#explorer-view").is_visible()
            assert found.page.locator("noscript li").count() == 2 * 16  # pairs x questions
            assert found.page.locator("noscript li").first.is_visible()
