"""What most pages of a folder share is no content; it is left out, counted and named."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.common.documents import read
from helpers import files
from metasearch.search.documents import pages
from metasearch.search.documents.chunking import Settings
from metasearch.search.documents.read import add_page, sources

PAGE = """<html lang=en><head><title>Page {n} - Acme Help</title></head><body>
<div>Acme Help</div>
<div>Search</div>
<h1 id=top>Page {n}</h1>
<p>Text {n}.
<h2>Note</h2>
<p>Unplug the machine first.
<p>More {n}.
<h3>Help content debug info</h3>
<div>Contact</div>
</body>"""
TEXT = "Acme Help\n\nPage {n}\n\nText {n}.\n\nNote\n\nUnplug the machine first.\n\nMore {n}.\n\nContact\n"
MARKDOWN = "# Acme Help\n\nPage {n}\n\n```\nmake\n```\n\nText {n}.\n\n| a | b |\n|---|---|\n| {n} | 1 |\n\n> Contact\n"


def folder_of(folder, page, count=10, suffix="html", first=0):
    folder.mkdir(parents=True, exist_ok=True)
    for n in range(first, first + count):
        (folder / f"{n:02}.{suffix}").write_text(page.format(n=n), encoding="utf-8")
    return folder


def texts(folder, **settings):
    found = {}
    for passage in read([folder], Settings(**settings)):
        found.setdefault(passage.file.rpartition("/")[2].partition(".")[0], []).append(passage.text)
    return {name: "\n\n".join(parts) for name, parts in found.items()}


def test_menus_footers_and_the_name_of_the_site_are_left_out_and_named_in_one_line(tmp_path, caplog):
    folder_of(tmp_path / "site", PAGE)
    content = "Page 7\n\nText 7.\n\nNote\n\nUnplug the machine first.\n\nMore 7."
    assert texts(tmp_path / "site")["07"] == content
    shown = "'Acme Help', 'Contact', 'Help content debug info', 'Search'"
    assert caplog.messages == [
        f"not indexed, as most pages of a folder have them: 4 blocks, {4 * 10} times, such as {shown}; --keep-repeated "
        "keeps them"
    ]


def test_who_wants_them_keeps_them(tmp_path, caplog):
    folder_of(tmp_path / "site", PAGE)
    kept = texts(tmp_path / "site", keep_repeated=True)["07"]
    assert kept.startswith("Page 7 - Acme Help\nAcme Help\n\nSearch\n\nPage 7")
    assert kept.endswith("Help content debug info\n\nContact")
    assert caplog.messages == []


def test_text_files_and_markdown_are_pages_too_and_code_and_tables_stay_whole(tmp_path):
    folder_of(tmp_path / "text", TEXT, suffix="txt")
    assert texts(tmp_path / "text")["07"] == "Page 7\n\nText 7.\n\nNote\n\nUnplug the machine first.\n\nMore 7."
    folder_of(tmp_path / "markdown", MARKDOWN, suffix="md")
    table = "| a | b |\n|---|---|\n| 7 | 1 |"
    assert texts(tmp_path / "markdown")["07"] == f"Page 7\n\n```\nmake\n```\n\nText 7.\n\n{table}"


def test_a_passage_keeps_its_line_and_no_heading_that_all_pages_have(tmp_path):
    page = "<body>\n<h1>Acme</h1>\n<p>Menu\n<h2 id=a>Page {n}</h2>\n<p>Text\n<b>{n}</b>.\n<p>Contact"
    folder_of(tmp_path, page)
    (passage,) = [each for each in read([tmp_path], Settings()) if each.file.endswith("07.html")]
    assert (passage.line, passage.text) == (4, "Page 7\n\nText 7.")
    assert (passage.heading, passage.anchor) == ("Page 7", "a")
    parts = [each for each in read([tmp_path], Settings(limit=9)) if each.file.endswith("07.html")]
    assert [(each.line, each.text) for each in parts] == [(4, "Page 7"), (5, "Text 7.")]


@pytest.mark.parametrize(("count", "others", "left"), [(10, 2, True), (10, 3, False), (9, 0, False)])
def test_ten_pages_and_four_in_five_tell_what_is_shared(count, others, left, tmp_path):
    folder_of(tmp_path, "<p>Menu<p>Text {n}.", count)
    folder_of(tmp_path, "<p>Other {n}.", others, first=count)
    assert (texts(tmp_path)["07"] == "Text 7.") == left == (count >= pages.LEAST and count >= 0.8 * (count + others))


def test_copies_of_a_page_are_one_page(tmp_path):
    folder_of(tmp_path, "<p>All pages are equal.", 20)
    assert set(texts(tmp_path).values()) == {"All pages are equal."}


def test_sites_in_a_folder_and_translations_have_menus_of_their_own(tmp_path):
    folder_of(tmp_path / "a", "<p>Menu of A<p>Text {n}.")
    folder_of(tmp_path / "b", "<p>Menu of B<p>Text {n}.", 30, first=10)
    for language, menu in {"de": "Menü", "en": "Menu"}.items():
        folder_of(tmp_path / "c", f"<p lang={language}>{menu}<p lang={language}>Text {{n}}.", suffix=f"{language}.html")
    assert {text for name, text in texts(tmp_path).items() if name > "09"} == {f"Text {n}." for n in range(10, 40)}
    assert "Men" not in "".join(texts(tmp_path).values())


@given(st.permutations(range(12)), st.sampled_from(["", "<p>Menu<p>Contact"]), st.booleans())
def test_a_page_with_the_text_of_the_others_is_named(order, menu, whole):
    bodies = [f"<h1>Part {n}</h1>" + "".join(f"<p>Step {m} of {n}." for m in range(6)) for n in range(12)]
    joined = "".join(bodies[n] if whole else bodies[n].replace("Step", "Note") for n in order)
    with TemporaryDirectory() as place:
        for name, body in {**{f"{n}.html": body for n, body in enumerate(bodies)}, "all.html": joined}.items():
            files.write(Path(place) / name, menu + body)
        found = pages.Pages()
        for source in sources([place]):
            add_page(found, source, Settings())
        found.decide()
        says = f"'{place}/all.html' has the text of 12 pages beside it, which is found twice: index one of both"
        assert list(found.describe_whole()) == [says] * whole


def test_pages_without_content_are_named(tmp_path, caplog):
    folder_of(tmp_path, "<p>Menu<p>Contact<p>Text {n}.", 12)
    (tmp_path / "empty.html").write_text("<p>Menu<p>Contact", encoding="utf-8")
    assert "empty" not in texts(tmp_path)
    assert f"{tmp_path}/empty.html: pages without content, whose whole text most pages share: 1" in caplog.messages
