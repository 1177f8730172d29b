"""A title stands before the passages of its page, once each, and is no passage of its own."""

import pytest

from helpers.passages import shown


@pytest.mark.parametrize(
    ("title", "heading"),
    [
        ("Keys", "Keys"),
        ("Page styles", "PAGE  Styles"),
        ("Page styles", "Page\u00a0styles?"),
        ("Keys", "4.2. Keys"),
        ("Keys", "Chapter 1. Keys"),
        ("4.2 Keys", "Keys"),
        ("钥匙", "第1章 钥匙"),
        ("Keys — Acme Help", "Keys"),
        ("Acme: Doors | Keys", "Keys"),
        ("Keys", "Keys and doors"),
    ],
)
def test_a_text_that_begins_with_its_title_does_not_get_it_again(title, heading, tmp_path):
    page = f"<title>{title}</title><h1>{heading}</h1><p>A lamp."
    assert [text for _, text in shown(tmp_path / "a.html", page)] == [f"{heading.replace('  ', ' ')}\n\nA lamp."]


def test_only_the_first_passage_begins_with_the_title_of_the_page(tmp_path):
    page = "<title>Keys — Acme</title><h1>Keys</h1><p>A lamp is on.<h2>Keys</h2><p>A door is open."
    expected = ["Keys\n\nA lamp is on.", "Keys — Acme\nKeys\n\nA door is open."]
    assert [text for _, text in shown(tmp_path / "a.html", page, limit=len(expected[1]))] == expected


@pytest.mark.parametrize(
    ("title", "page"),
    [
        ("Keys", "<p>A lamp."),
        ("Key", "<h1>Keys</h1>"),
        # Not a heading: it may be the name of the site above all pages.
        ("Keys — Acme", "<p>Acme<h1>Keys</h1>"),
        # A heading above the text, which is none.
        ("Keys — Acme", "<div lang=de><h1>Keys</h1></div><p lang=en>Keys and lamps."),
    ],
)
def test_all_others_get_it(title, page, tmp_path):
    assert shown(tmp_path / "a.html", f"<title>{title}</title>{page}")[-1][1].startswith(f"{title}\n")


def test_a_title_is_no_passage_unless_it_is_the_whole_text(tmp_path):
    for page, expected in (
        ("<title>Keys</title><p>A lamp.", ["Keys\nA lamp."]),
        ("<title>Keys</title><h1>Keys</h1>", ["Keys"]),
        ("<title>Keys</title>", []),
    ):
        assert [text for _, text in shown(tmp_path / "a.html", page)] == expected


def test_a_page_no_longer_than_a_passage_is_one_passage_though_the_title_would_not_fit_twice(tmp_path):
    page = "<title>The keys of doors</title><h1>The keys of doors</h1><p>One is here.<p>Two is there."
    whole = "The keys of doors\n\nOne is here.\n\nTwo is there."
    assert [text for _, text in shown(tmp_path / "a.html", page, limit=len(whole))] == [whole]
