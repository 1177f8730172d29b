"""No text is lost without a line, and none is a passage that is no content."""

import json
import logging
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.common.documents import read
from metasearch.search.documents.chunking import Settings
from metasearch.search.documents.pages import Pages
from metasearch.search.documents.passage import Notes, Section
from metasearch.search.documents.read import explain

SAID = "Print the label and bring the parcel to a shop."
TEXT = "<p>The first text of the page is a sentence.</p><p>The second text of the page is a longer sentence.</p>"


def read_page(folder, body, name="a.html", **settings):
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"<html lang=en><title>T</title>{body}", encoding="utf-8")
    return "\n\n".join(each.text for each in read([folder], Settings(titles=False, **settings)))


@pytest.mark.parametrize(
    "body",
    [
        f"<main>{TEXT}<button aria-controls=x>Where?</button><div id=x hidden>{SAID}</div></main>",
        f'{TEXT}<div id="x" style="display:none">{SAID}</div><a data-bs-target="#x">Where?</a>',
        f"<header><h1>A</h1><p>{SAID}</header><main><h2>B</h2>{TEXT}</main>",
        f"<div><div><h1>A</h1></div><div>{SAID}</div></div><main>{TEXT}</main>",
        f"<body>{TEXT}<div><p>A</p><footer>{SAID}</footer></div><div><p>B</p><footer>C</footer></div>",
        f"<body>{TEXT}<aside role=note>{SAID}</aside>",
        f"<body>{TEXT}<aside>{SAID}</aside>{TEXT}",
    ],
)
def test_text_that_a_reader_sees_or_opens_is_a_passage(body, tmp_path):
    assert SAID in read_page(tmp_path, body)


@pytest.mark.parametrize(
    ("reason", "body"),
    [
        ("hidden", f"{TEXT}<div hidden>{SAID}</div>"),
        ("hidden", f"{TEXT}<noscript>{SAID}</noscript>"),
        ("hidden", f"{TEXT}<svg><title>Chart</title><text>{SAID}</text></svg>"),
        ("navigation", f"{TEXT}<nav><p>{SAID}</nav>"),
        ("footer", f"{TEXT}<footer>{SAID}</footer>"),
        ("aside", f"<article>{TEXT}</article><aside>{SAID}</aside>"),
        ("outside main", f"<main>{TEXT}</main><p>{SAID}"),
    ],
)
def test_a_sentence_that_is_left_out_is_counted_and_explained(reason, body, tmp_path, caplog):
    with caplog.at_level(logging.INFO):
        assert SAID not in read_page(tmp_path, f"<body>{body}")
    assert f"dropped blocks: {reason} 1 ('{SAID[:40]}'); --explain FILE shows all of a document" in caplog.messages
    lines = list(explain([tmp_path], tmp_path / "a.html"))
    assert f"{tmp_path / 'a.html'}:1: dropped ({reason}): {SAID}" in lines
    assert f"{tmp_path / 'a.html'}:1: kept: The first text of the page is a sentence." in lines
    assert SAID in read_page(tmp_path, f"<body>{body}", keep_repeated=True) or reason == "hidden"


BLOCKS = [
    "<h2 id=a>One thing</h2><p>Text.",
    "<h2 id=b>2. Another</h2><p>More.",
    "<ul><li><a href=#a>One thing</a><li><a href=p#b>Another</a></ul>",
]


@pytest.mark.parametrize("blocks", list(permutations(BLOCKS)))
def test_a_table_of_contents_is_no_text_wherever_it_stands(blocks, tmp_path):
    text = read_page(tmp_path, f"<main>{''.join(f'<div>{each}</div>' for each in blocks)}</main>")
    assert sorted(text.split("\n\n")) == ["2. Another", "More.", "One thing", "Text."]


def test_a_link_to_another_page_or_to_no_heading_is_text(tmp_path):
    assert "More about oil" in read_page(
        tmp_path, f"{TEXT}<ul><li><a href=#oil>More about oil</a><li><a href=#x>Lamps</a></ul>"
    )


def site(folder, page, count=12):
    folder.mkdir(exist_ok=True)
    for n in range(count):
        (folder / f"{n:02}.html").write_text(page.format(n=n, other=(n * 7 + 3) % count), encoding="utf-8")
    return [each.text for each in read([folder], Settings(titles=False))]


def test_links_to_other_articles_and_votes_are_no_text(tmp_path):
    page = (
        "<main><article><h1>Article {n}</h1><p>Story {n}.</p><ul><li><a href=x>Own link {n}</a></ul><p>End {n}.</p>"
        "<footer>{n} of 20 found this helpful</footer></article>"
        "<h2>See also</h2><ul><li><a href=a>Where is part {other}?</a><li><a href=b>What is part {n}?</a></ul></main>"
    )
    assert site(tmp_path, page)[7] == "Article 7\n\nStory 7.\n\nOwn link 7\n\nEnd 7."


def test_footers_of_parts_that_differ_in_a_number_are_text(tmp_path):
    parts = "<div><p>For {n} persons.<footer>Weighs {n} kg</footer></div><div><p>B{n}<footer>{n} €</footer></div>"
    page = f"<h1>Tent {{n}}</h1>{parts}"
    assert site(tmp_path, page)[7].endswith("Weighs 7 kg\n\nB7\n\n7 €")


@given(st.permutations(range(12)))
def test_a_sentence_of_all_pages_is_on_one_of_them(order):
    pages = Pages()
    for n in order:
        text = f"Menu\n\nThing {n}\n\nSending back\n\nYou can send it back within thirty days.\n\nImprint"
        pages.add(f"{n:02}.txt", "", [Section(text)], Notes())
    pages.decide()
    texts = {n: "".join(each.text for each in pages.sections(f"{n:02}.txt", Notes())).split("\n\n") for n in range(12)}
    assert [n for n, text in texts.items() if any("thirty" in each for each in text)] == [0]
    assert not any("Menu" in text or "Imprint" in text for text in texts.values())
    assert [each.strip() for each in texts[5] if each.strip()] == ["Thing 5"]


@pytest.mark.parametrize(
    "head",
    [
        '<meta http-equiv="refresh" content="0; url=https://a.example/">',
        "<META HTTP-EQUIV=Refresh CONTENT='0;URL=b.html'>",
        "<meta http-equiv=refresh content='00.5, b.html'>",
        '<meta name="robots" content="noindex, nofollow">',
        '<meta name="ROBOTS" content="none">',
    ],
)
def test_a_page_that_leads_on_or_is_not_for_searches_is_none(head, tmp_path, caplog):
    (tmp_path / "b.html").write_text("<p>Text", encoding="utf-8")
    assert read_page(tmp_path, f"{head}<p>Redirecting") == "Text"
    assert ["noindex" in line for line in caplog.messages] == [True]
    assert "Redirecting" in read_page(tmp_path, f"{head}<p>Redirecting", keep_repeated=True)
    assert "Redirecting" in read_page(tmp_path, f"<head><noscript>{head}</noscript></head><p>Redirecting")


def test_copies_of_sources_beside_pages_are_no_documents(tmp_path, caplog):
    (tmp_path / "_sources").mkdir()
    (tmp_path / "_sources" / "a.rst.txt").write_text("Source", encoding="utf-8")
    assert read_page(tmp_path, "<p>Text") == "Text"
    assert "Sphinx" in caplog.text
    (tmp_path / "a.html").unlink()
    assert [each.text for each in read([tmp_path])] == ["Source"]


@pytest.mark.parametrize("name", ["SUMMARY.md", "_sidebar.md"])
def test_a_menu_of_links_is_no_document(name, tmp_path, caplog):
    menu = "# Summary\n\n[Start](a.md)\n\n- [One](one.md)\n  * [Two](two.md)\n\n---\n\n1. [Three](b.md)\n"
    (tmp_path / name).write_text(menu, encoding="utf-8")
    assert read_page(tmp_path, "<p>Text") == "Text"
    assert "1 menus of links" in caplog.text
    assert [each.text for each in read([tmp_path / name])]
    (tmp_path / name).write_text(f"{menu}\nA text of its own.\n", encoding="utf-8")
    assert "A text of its own" in "".join(each.text for each in read([tmp_path]))


ENCODINGS = {
    "鍵は下にあります": "shift_jis x-sjis euc-jp x-euc-jp iso-2022-jp",
    "钥匙": "gb2312 x-gbk",
    "鑰匙": "big5 cn-big5",
    "Ключ под ковром.": "koi8-r windows-1251 x-cp1251 x-mac-cyrillic",
    "Το κλειδί.": "iso-8859-7",
    "המפתח": "iso-8859-8-i",
    "กุญแจ": "windows-874 dos-874",
    "열쇠": "ks_c_5601-1987 windows-949",
}
PYTHON = {
    "x-sjis": "cp932",
    "x-mac-cyrillic": "mac_cyrillic",
    "iso-8859-8-i": "iso8859_8",
    "windows-949": "cp949",
    **dict.fromkeys(("windows-874", "dos-874"), "cp874"),
}


@pytest.mark.parametrize(
    ("text", "stated"), [(text, each) for text, names in ENCODINGS.items() for each in names.split()]
)
@pytest.mark.parametrize("head", ['<meta charset="{}">', '<?xml version="1.0" encoding="{}"?>'])
def test_a_page_is_read_in_the_encoding_that_it_states(text, stated, head, tmp_path):
    encoding = PYTHON.get(stated, stated.removeprefix("x-").removeprefix("cn-"))
    page = f"{head.format(stated)}<html><head><title>A</title></head><p>{text}"
    (tmp_path / "a.html").write_bytes(page.encode(encoding))
    assert [each.text for each in read([tmp_path], Settings(titles=False))] == [text]
    (tmp_path / "a.html").write_bytes(page.encode(encoding).replace(b"<p>", b"<p>\x81\xff\xff\xa0\xff"))
    (tmp_path / "b.html").write_text("<p>B", encoding="utf-8")
    found = [each.text for each in read([tmp_path])]
    assert "B" in found


@pytest.mark.parametrize("stated", ["x-unknown", "hex"])
def test_an_unknown_encoding_is_named(stated, tmp_path, caplog):
    (tmp_path / "a.html").write_bytes(f"<meta charset={stated}><p>Grün".encode("latin-1"))
    (tmp_path / "b.html").write_text("<p>B", encoding="utf-8")
    assert [each.text for each in read([tmp_path])] == ["B"]
    assert f"the encoding '{stated}', which is unknown" in caplog.text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<p>Open <b>A</b>&nbsp;&gt; B</p><ul><li>C</li></ul>", "Open A\xa0> B\n\nC"),
        ("One<br>two &amp; three", "One\ntwo & three"),
        ("Is 3 < 4 and 5 > 2? Use <b> for bold.", "Is 3 < 4 and 5 > 2? Use <b> for bold."),
    ],
)
def test_rows_of_html_are_read_as_their_text(text, expected, tmp_path, caplog):
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": text}) + "\n", encoding="utf-8")
    assert [each.text for each in read([tmp_path])] == [expected]
    assert ("rows of HTML" in caplog.text) == (text != expected)


def test_one_wrong_value_of_many_rows_has_two_lines(tmp_path, caplog):
    rows = "".join(f'{{"text": "a {i}", "language": "{("German", "French")[i % 2]}"}}\n' for i in range(300))
    (tmp_path / "a.jsonl").write_text(rows, encoding="utf-8")
    assert len(list(read([tmp_path]))) == 300
    assert len(caplog.messages) == 4
    assert "'German' 149 more times" in caplog.text
