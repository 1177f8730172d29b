"""HTML: what a browser shows, in which language, and on which line it stands in the source."""

import logging
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.passages import passages_of, shown
from metasearch.errors import DataError
from metasearch.search.documents.passage import Notes
from metasearch.search.documents.readers import html

PAGE = """<!DOCTYPE html>
<html
  lang="de">
<head>
<title>Über uns</title>
<style>
p > b { color: red }
</style>
</head>
<body>
<h1>Hallo Welt</h1>
<p
  class="x"
  >Ein <b>fetter</b> Text
  in zwei <i lang="en">lines</i> &amp; mehr.<p>Zwei
<script>
if (a > b) document.write("<p>nein</p>");
</script><!-- nichts
--><p lang=en-gb>English here
and here.
<table>
<tr><td>eins</td>
<td>zwei</td></tr>
<tr><td>drei<td>vier
</table>
<pre>
  code
    more
</pre>
<div style="display: none">nein</div><div hidden>nein</div><template><p>nein</p></template>
<ul><li>a<li>b</ul>
</body></html>
"""


def test_a_page_is_read_as_a_browser_shows_it(tmp_path):
    seen = passages_of(tmp_path / "a.html", PAGE, titles=False, limit=45)
    assert [(p.line, p.language, p.text) for p in seen] == [
        (11, "de", "Hallo Welt"),
        (14, "de", "Ein fetter Text in zwei lines & mehr.\n\nZwei"),
        (19, "en-GB", "English here and here."),
        (22, "de", "eins zwei\ndrei vier\n\n  code\n    more\n\na\nb"),
    ]


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("Hello\n\nworld", [(1, "Hello world")]),
        ("\n\n Hello", [(3, "Hello")]),
        ("<!-- a\nb -->\n<!doctype html>\n<html>\nHello", [(5, "Hello")]),
        ("<p\n>a<b\n>b</b>c", [(2, "abc")]),
        ("<table>\n<tr>\n<td>a<td\n>b</table>", [(3, "a b")]),
        ("<div>\na\n<pre hidden>x</pre>\nb  c</div>", [(2, "a b c")]),
        ("<pre>\n\n a\n  b</pre>", [(3, "a\n  b")]),
        ("<p>a<br>b\n<hr>c", [(1, "a\nb\n\nc")]),
        ("<p>a&nbsp;b\f c", [(1, "a\u00a0b c")]),
        ("<select><option>a<option>b</select>", [(1, "a\nb")]),
        ("<svg><title>no</title><text>no</text></svg>yes", [(1, "yes")]),
        ("<ruby>漢<rp>（</rp><rt>かん</rt><rp>）</rp>字<rt>じ</rt></ruby>を学ぶ。", [(1, "漢字を学ぶ。")]),
        ("<ruby><rb>漢</rb><rb>字</rb><rtc><rt>かん</rt><rt>じ</rt></rtc></ruby>", [(1, "漢字")]),
        ("<dialog>no</dialog>yes", [(1, "yes")]),
        ("<math><semantics>x<annotation encoding=TeX>no</annotation></semantics></math>", [(1, "x")]),
        # Elements without an end tag, end tags without an element, and a comment without an end.
        ("<ul><li><p hidden>no<li>yes</ul>", [(1, "yes")]),
        ("<table><thead hidden><tr><th>no<tbody><tr><td>yes</table>", [(1, "yes")]),
        ("<table><caption>a<tr><td>b</table>", [(1, "a\n\nb")]),
        ("a</br>b</p>c<section><p>d</section>e", [(1, "a\nb\n\nc\n\nd\n\ne")]),
        ("yes <!-- no <p>no", [(1, "yes")]),
        ("yes <!-- a --!> yes <!-- no", [(1, "yes yes")]),
        ("<!-->yes <!--->yes", [(1, "yes yes")]),
        ("<script>a = '<!--'</script><p title='<!--'>yes <!-- no", [(1, "yes")]),
        ("<p hidden=until-found>yes<p hidden=''>no<dialog open>yes</dialog>", [(1, "yes\n\nyes")]),
        # A script shows the keys of a platform, which are part of a sentence; alone in its block it may be a menu.
        ("<p>Hold <kbd hidden>Ctrl</kbd> down.<p><kbd hidden>no</kbd> ", [(1, "Hold Ctrl down.")]),
        ("<p>Hold <b><i hidden>⌘</i><i hidden>Ctrl<u>!</u></i></b>", [(1, "Hold ⌘ Ctrl!")]),
        ("<ul><li hidden>no<li><a hidden>no<p>no</p></a><li>yes</ul>", [(1, "yes")]),
        ("<p>yes <b hidden style='display:none'>no</b><button hidden>no</button>", [(1, "yes")]),
        ("<a-b><template shadowrootmode=open><p>yes</template></a-b><template>no</template>", [(1, "yes")]),
        ("<div>Menu</div><main>Long text</main>", [(1, "Long text")]),
        ("<div>Menu</div><div role=main>Long text</div>", [(1, "Long text")]),
        ("<div>Long text</div><main>Find</main>", [(1, "Long text\n\nFind")]),  # most of the page is outside
        ("<p>yes <i aria-hidden=true>arrow</i> <span>y</span><span aria-hidden=true>no</span>", [(1, "yes y")]),
        ("<table><tr style='visibility: Collapse'><td>no<tr><td>yes</table>", [(1, "yes")]),
    ],
)
def test_text_is_found_wherever_it_stands(page, expected, tmp_path):
    assert shown(tmp_path / "a.htm", page) == expected


@pytest.mark.parametrize("tag", ["nav", "div hidden", "footer"])
def test_what_an_element_without_an_end_drops_is_noted(tag, tmp_path):
    notes = Notes()
    (found,) = html.html_sections(f"<p>yes</p><{tag}><p>No <b>more of it.", tmp_path, notes, False)
    assert found.text == "yes"
    assert [each.text.split() for each in notes.dropped] == [["No", "more", "of", "it."]]


SITE = """<body>
<nav>Home</nav><header role=banner>Acme</header>before<div role=search>Find</div>after
<aside>Related</aside>
<article><header>Kept</header><aside>Warning</aside><p>Text<footer>Source</footer></article>
<div class="x navfooter">Next page</div>
<footer>Imprint</footer>
"""


def test_navigation_search_and_footers_of_a_site_are_no_content(tmp_path):
    kept = "before\n\nafter\n\nKept\n\nWarning\n\nText\n\nSource"
    assert shown(tmp_path / "a.html", SITE, limit=200) == [(2, kept)]
    ((_, everything),) = shown(tmp_path / "a.html", SITE, limit=200, keep_repeated=True)
    assert everything == "Home\n\nAcme\n\nbefore\n\nFind\n\nafter\n\nRelated\n\n" + "\n\n".join(
        ("Kept", "Warning", "Text", "Source", "Next page", "Imprint")
    )


def test_a_passage_has_the_headings_above_it_and_the_id_of_the_nearest_element(tmp_path):
    page = """<body><p>Begin.
<section id=writer><h1>Writer<a class=headerlink href=#writer>¶</a></h1>
<p>One.<h2 id=styles>Page<br>styles</h2>
<p id=p>Two.<h4><a name=margins></a>Margins</h4>
<p>Three.</section><h2>Next</h2>
<p>Four."""
    seen = passages_of(tmp_path / "a.html", page, limit=13)
    assert [(each.text, each.heading, each.anchor) for each in seen] == [
        ("Begin.", "", ""),
        ("Writer\n\nOne.", "Writer", "writer"),
        ("Page\nstyles", "Writer › Page", "styles"),
        ("Two.\n\nMargins", "Writer › Page styles", "p"),
        ("Three.", "Writer › Page styles › Margins", "margins"),
        ("Next\n\nFour.", "Writer › Next", "margins"),
    ]


def test_most_letters_of_a_paragraph_tell_its_language(tmp_path):
    page = "<body lang=de><p>Das Wort <i lang=fr>mot</i> ist kurz.<p><span lang=fr>Tout en français</span>.<p>***<p>Ja."
    seen = passages_of(tmp_path / "a.html", page)
    assert [(p.language, p.text) for p in seen] == [
        ("de", "Das Wort mot ist kurz."),
        ("fr", "Tout en français.\n\n***"),
        ("de", "Ja."),
    ]


def test_a_page_that_is_too_large_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(html, "_MOST", 9)
    with pytest.raises(DataError, match=r"a\.html: the file has more than 9 characters"):
        shown(tmp_path / "a.html", "<p>0123456789")


def test_a_page_of_tags_without_an_end_is_refused_before_it_takes_minutes(tmp_path):
    with pytest.raises(DataError, match=r"a\.html:2: more than 20 tags have no end; a quote may be missing"):
        shown(tmp_path / "a.html", "yes\n" + "<p title='x\" " * 5000)


TEXT = ["\n", "\n\n", " ", "<", ">", "&#10;"]
OPEN = ["<p>", "<b>", "<div\n>", "<br>", "<table>", "<tr>", "<td>", "<pre>", "<select>", "<title>", "<template>"]
WITH_MORE = ["<li\n class='a\nb'>", "<!-- \n> -->", "<script>\n>", "<p hidden>", "<a href='>'>", "<a href='\n>'>"]
CLOSE = ["</p>", "</b>", "</div>", "</table>", "</script>", "</pre>", "</title>"]
TOKENS = st.sampled_from([*TEXT, *OPEN, *WITH_MORE, *CLOSE])


@given(tokens=st.lists(TOKENS, max_size=25))
def test_a_word_is_on_its_line_whatever_stands_around_it(tokens, tmp_path, caplog):
    """Each word stands once in the source, and alone in a passage."""
    page = "begin " + "".join(f"{token}word{number}x." for number, token in enumerate(tokens))
    caplog.set_level(logging.CRITICAL)
    for passage in passages_of(tmp_path / "a.html", page, limit=8, titles=False):
        if re.fullmatch(r"word\d+x\.?", passage.text):
            assert passage.line == 1 + page.count("\n", 0, page.index(passage.text)), page


QUOTED = [
    '<p ID="x" lang="de">',
    '<div\n hidden="">',
    '<a href="a&amp;b" id="1" id="2">',
    '<b a="<">',
    "<nav>",
    "</P >",
]


@given(st.lists(TOKENS | st.sampled_from(["word", "&amp;", "&", "</", "<!--", *QUOTED])).map("".join), st.booleans())
def test_plain_tags_are_read_as_the_parser_reads_them(source, whole):
    def read():
        notes = Notes()
        return [*html.html_sections(source, Path("a.html"), notes, whole)], notes

    found = read()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(html.Page, "_read_tokens", lambda page, start: start)
        assert read() == found


@pytest.mark.parametrize(("name", "line"), [("a.html", 3), ("a.md", 4)])
def test_a_comment_without_an_end_is_named(name, line, tmp_path, caplog):
    text = (
        "<p>Text</p>\n<!-- a -->\n\n<!-- no\n\nend <!-- no" if name == "a.md" else "a\n<!-- a -->\nb <!-- no\n<!-- end"
    )
    shown(tmp_path / name, text)
    expected = "a comment has no end, which hides the rest of the page"
    assert caplog.messages == [f"not shown: {tmp_path / name}:{line}: {expected}"]


def test_a_lang_that_is_no_tag_is_named_with_its_first_line(tmp_path, caplog):
    page = "<html>\n<p\nlang = 'german'>Eins<p lang=german>Zwei\n<p xml:lang=x-default>Drei"
    (passage,) = passages_of(tmp_path / "a.html", page)
    assert passage.language == "und"
    assert caplog.messages == [
        f"language ignored: {tmp_path}/a.html:{line}: lang: '{text}' is not a language tag such as de, fil or zh-CN"
        for line, text in ((2, "german"), (4, "x-default"))
    ]
