"""The page in a real browser: wide and narrow, light and dark, with a keyboard, by its address, and behind a token."""

import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

import metasearch as ms
from helpers.browser import EveryScreen, chromium, visited
from helpers.files import write_all
from helpers.serving import demo_passages, running, searcher_of
from metasearch.encoders.load import load_encoder
from metasearch.search.documents.passage import Passage

pytestmark = pytest.mark.slow  # a browser is begun

SCREENS = [(1200, "light"), (390, "dark")]
BEES = "/?q=How+do+bees+tell+each+other+where+the+flowers+are%3F"
EVIL = "Where is <img src=x onerror=alert(1)> & why? <script>alert(1)</script>"
TOKEN = "a-token-of-the-tests"


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Return the embedded benchmark in eight languages, with a passage that holds markup."""
    passages = demo_passages("ar", "de", "el", "en", "hi", "ru", "th", "tr")
    passages.append(Passage(EVIL, "<b>evil</b>.txt", 1, "und"))
    folder = tmp_path_factory.mktemp("site") / "index"
    with running(searcher_of(folder, passages, load_encoder("tiny", device="cpu"))) as found:
        yield found


@pytest.fixture(scope="module", params=SCREENS, ids=lambda screen: f"{screen[0]}-{screen[1]}")
def screen(request, browser, site):
    width, scheme = request.param
    with visited(browser, site.address, BEES, width, scheme) as found:
        found.page.locator("#hits li").first.wait_for()
        yield found


@pytest.fixture
def page(browser, site):
    """Return the page as it is when it was just opened, with nothing searched for."""
    with visited(browser, site.address, "/", 1200) as found:
        found.page.locator("#filter").wait_for()
        yield found


@pytest.fixture
def hits(browser, site):
    with visited(browser, site.address, BEES, 1200) as found:
        found.page.locator("#hits li").first.wait_for()
        yield found


def asked(found):
    return parse_qs(urlsplit(found.page.url).query)


def answered(found, do):
    """Do something that searches, and wait for the answer to be shown."""
    with found.page.expect_response("**/search"):
        do()
    # Not by a function to wait for: the page's policy forbids to evaluate any text but its own script.
    found.page.locator("#results:not(.busy)").wait_for()


class TestEveryScreen(EveryScreen):
    def test_every_control_has_a_name(self, screen):
        unnamed = "[...document.querySelectorAll('input, select, button')].filter(it => it.checkVisibility() && "
        unnamed += "!it.labels?.length && !it.getAttribute('aria-label') && !it.textContent.trim()).map(it => it.id)"
        assert screen.page.evaluate(unnamed) == []


class TestSearching:
    def test_hits_are_those_of_the_server_with_their_place_language_and_score(self, hits, site):
        query = "How do bees tell each other where the flowers are?"
        _, answer = site.post("/search", {"query": query})
        expected = answer["results"][0]["hits"]
        assert hits.page.locator("#hits .passage").all_text_contents() == [hit["text"] for hit in expected]
        places = [f"{hit['file']}:{hit['line']}" for hit in expected]
        assert hits.page.locator("#hits .file").all_text_contents() == places
        assert hits.page.locator("#hits .tag").all_text_contents() == [hit["language"] for hit in expected]
        assert hits.page.locator("#hits .score").all_text_contents() == [f"{hit['score']:.3f}" for hit in expected]

    def test_markup_in_documents_stays_text(self, page):
        page.page.locator("#query").fill(EVIL)
        answered(page, lambda: page.press("Enter"))
        assert page.page.locator(".passage").first.text_content() == EVIL
        assert page.page.locator(".file").first.text_content() == "<b>evil</b>.txt:1"
        assert page.page.locator("#hits img, #hits script, #hits b").count() == 0
        assert page.page.locator(".passage").first.get_attribute("lang") is None  # it is not known
        assert page.said == []

    def test_a_filter_searches_at_once_and_leaves_the_other_languages_out(self, hits):
        answered(hits, lambda: hits.page.get_by_role("checkbox", name="Thai").check())
        answered(hits, lambda: hits.page.get_by_role("checkbox", name="German").check())
        assert set(hits.page.locator("#hits .tag").all_text_contents()) == {"de", "th"}
        answered(hits, lambda: hits.page.locator("#top_k").select_option("20"))
        assert hits.page.locator("#hits li").count() == 20
        answered(hits, lambda: hits.page.get_by_label("match words, too").check())
        assert {name: values for name, values in asked(hits).items() if name != "q"} == {
            "language": ["de", "th"], "top_k": ["20"], "hybrid": ["1"],
        }  # fmt: skip


class TestTheAddress:
    def test_is_a_search_that_can_be_linked(self, browser, site):
        with visited(browser, site.address, f"{BEES}&language=ar&language=el&top_k=5", 1200) as found:
            found.page.locator("#hits li").first.wait_for()
            assert found.page.locator("#query").input_value() == "How do bees tell each other where the flowers are?"
            assert found.page.get_by_role("checkbox", name="Greek").is_checked()
            assert found.page.locator("#hits li").count() == 5
            assert set(found.page.locator("#hits .tag").all_text_contents()) <= {"ar", "el"}

    def test_with_a_number_that_the_server_refuses_shows_its_words(self, browser, site):
        with visited(browser, site.address, f"{BEES}&top_k=5000", 1200) as found:
            found.page.locator("#problem").wait_for()
            assert "top_k: 5000; choose a number from 1 to 100" in found.page.get_by_role("alert").text_content()


class TestTheKeyboard:
    def test_enter_searches_and_arrows_go_from_hit_to_hit(self, page):
        assert page.focused("it.id") == "query"
        page.page.keyboard.type("Where do penguins live?")
        answered(page, lambda: page.press("Enter"))
        place = "[...it.parentElement.children].indexOf(it)"
        page.press("ArrowDown")
        assert page.focused(place) == 0
        page.press("ArrowDown", "ArrowDown")
        assert page.focused(place) == 2
        page.press("ArrowUp")
        assert page.focused(place) == 1
        page.press("End", "ArrowDown")
        assert page.focused(place) == 9
        page.press("Home", "ArrowUp")
        assert page.focused("it.id") == "query"


KEYS = (
    '<html lang="{tag}"><head><meta charset="utf-8"><link rel="alternate" hreflang="de" href="https://a.example/1">'
    '<link rel="alternate" hreflang="en" href="https://a.example/2"></head>'
    '<body><h1>{title}</h1><p>{intro}</p><h2 id="under mats">{title} 2</h2><p>{text}</p></body></html>'
)
DE, EN = "Der Schlüssel liegt unter der Matte. ", "The key is under the mat. "


class Site:
    """A tiny site, and a server of its index.

    Attributes:
        root: address of the site.
        served: what searches it.
    """

    def __init__(self, root, served):
        self.root, self.served = root, served

    @contextmanager
    def search(self, browser, query):
        with visited(browser, self.served.address, f"/?q={query}", 1200) as found:
            found.page.locator("#hits li").first.wait_for()
            yield found


@pytest.fixture(scope="module")
def tiny_site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny") / "docs"
    pages = {
        "deutsch/über uns.html": KEYS.format(tag="de", title="Schlüssel", intro="Über Türen.", text=40 * DE),
        "english/about.html": KEYS.format(tag="en", title="&lt;b&gt;Keys", intro="On doors.", text=40 * EN),
        "<img src=x onerror=alert(1)>.txt": "Bees dance.",
        "bad.html": '<link rel="canonical" href="javascript:alert(1)"><p>Whales sing.',
    }
    write_all(folder, pages)
    site = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(folder)))
    threading.Thread(target=site.serve_forever, daemon=True).start()
    root, index = f"http://127.0.0.1:{site.server_port}/", folder.parent / "index"
    ms.index_documents([folder], index, "mini", site=root)
    with running(ms.open_searcher(index)) as served:
        yield Site(root, served)
    site.shutdown()


class TestTitles:
    def test_a_title_leads_to_the_address_of_its_page(self, browser, tiny_site):
        with tiny_site.search(browser, "Der Schlüssel liegt unter der Matte") as found:
            link = found.page.locator("#hits li").first.get_by_role("heading").get_by_role("link")
            assert link.text_content() == "Schlüssel"
            address = f"{tiny_site.root}deutsch/%C3%BCber%20uns.html#under%20mats"
            assert link.get_attribute("href") == address
            link.click()
            found.page.wait_for_url(address)
            assert found.page.evaluate("document.querySelector(':target').textContent") == "Schlüssel 2"

    def test_enter_opens_the_hit_that_has_the_focus(self, browser, tiny_site):
        with tiny_site.search(browser, "bees") as found:
            href = found.page.locator("#hits .title a").first.get_attribute("href")
            found.press("ArrowDown", "Enter")
            found.page.wait_for_url(href)

    def test_a_page_counts_once_with_a_link_to_its_translation(self, browser, tiny_site):
        with tiny_site.search(browser, "Der Schlüssel liegt unter der Matte&top_k=5") as found:
            first = found.page.locator("#hits li").first
            assert first.locator(".tag").all_text_contents() == ["de", "en"]
            version = first.get_by_role("link", name="en", exact=True)
            assert version.get_attribute("hreflang") == "en"
            assert version.get_attribute("href").startswith(f"{tiny_site.root}english/about.html")
            shares = found.page.locator("#legend li").all_text_contents()
            hits = found.page.locator("#hits li").count()
            assert sum(int(share.split(" (")[0].split()[-1]) for share in shares) == hits

    def test_a_long_passage_is_cut_between_sentences_and_has_its_headings_above(self, browser, tiny_site):
        with tiny_site.search(browser, "Der Schlüssel liegt unter der Matte") as found:
            first = found.page.locator("#hits li").first
            assert first.locator(".heading").text_content() == "Schlüssel › Schlüssel 2"
            # Eight sentences of 37 characters, each with a space behind it, are 296.
            assert first.locator(".passage").text_content() == f"{(8 * DE).strip()} …"

    def test_names_and_headings_with_markup_stay_text_and_scripts_are_no_addresses(self, browser, tiny_site):
        for query, title in (("Bees dance.", "<img src=x onerror=alert(1)>.txt"), ("Whales sing.", "bad.html")):
            with tiny_site.search(browser, query) as found:
                link = found.page.locator("#hits .title a").first
                assert link.text_content() == title
                assert link.get_attribute("href").startswith(tiny_site.root)
                assert found.page.locator("#hits img, #hits b").count() == 0
                assert found.said == []
        with tiny_site.search(browser, "The key is under the mat&language=en") as found:
            assert found.page.locator("#hits .title").first.text_content() == "<b>Keys"

    def test_without_a_site_a_title_is_no_link(self, hits):
        assert hits.page.locator("#hits .title").all_text_contents()
        assert hits.page.locator("#hits a").count() == 0


def test_colours_are_those_of_the_system_until_the_reader_chooses_and_stay_chosen(page):
    def paper():
        return page.page.evaluate("getComputedStyle(document.body).backgroundColor")

    light = paper()
    page.page.emulate_media(color_scheme="dark")
    dark = paper()
    assert light != dark
    page.page.get_by_role("button", name="Light colours").click()
    assert paper() == light
    page.reload()
    assert paper() == light
    page.page.get_by_role("button", name="Dark colours").click()
    assert paper() == dark


def test_behind_a_token_the_page_asks_for_it_once(browser, searcher):
    with running(searcher, TOKEN) as locked, visited(browser, locked.address, BEES, 1200) as found:
        found.page.get_by_label("This server asks for a token.").fill("wrong")
        found.press("Enter")
        found.page.locator("#problem").wait_for()
        assert "the token is missing or wrong" in found.text("#problem")
        found.page.get_by_label("This server asks for a token.").fill(TOKEN)
        answered(found, lambda: found.press("Enter"))
        assert found.page.locator("#hits li").count() == 10
        assert not found.page.locator("#unlock").is_visible()
        found.reload()
        found.page.locator("#hits li").first.wait_for()
        assert TOKEN not in found.page.url


def test_a_server_that_is_gone_is_told_of(browser, searcher):
    with running(searcher) as ends, visited(browser, ends.address, "/", 1200) as found:
        found.page.locator("#filter").wait_for()
        ends.server.should_exit = True
        ends.server_thread.join(60)
        found.page.locator("#query").fill("bees")
        found.press("Enter")
        found.page.locator("#problem").wait_for()
        assert found.text("#problem") == "The server does not answer."


def test_without_scripts_the_page_says_what_to_do(browser, site):
    with visited(browser, site.address, "/", 390, scripts=False) as found:
        assert "POST /search" in found.text("noscript")
