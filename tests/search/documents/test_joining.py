"""Labels are joined to the pages that they mean."""

import pytest

from metasearch.search.documents.joining import describe, join
from metasearch.search.documents.passage import Passage

RETURNS = "Print the label, put it on the parcel, and drop the parcel off at any post office within thirty days."
REFUND = "We refund the money two days after the parcel has arrived."
PASSAGES = [
    Passage(f"Returns\n{RETURNS}", "/www/site/en/returns.html", 1),
    Passage(f"Returns\n{REFUND}", "/www/site/en/returns.html", 9),
    Passage("Drucken Sie das Etikett.", "/www/site/de/returns.html", 1),
    Passage("Open at nine.", "/www/site/en/hours/index.html", 1),
    Passage("Our opening hours", "/www/site/help?page=hours.html", 1),
    Passage("The key is under the mat.", "/www/faq.jsonl", 1, fields={"id": 7}),
    Passage("Bread is baked in an oven.", "/www/faq.jsonl", 2, fields={"id": "bread"}),
]
FOLDERS = ["/www/site", "/www/faq.jsonl"]
ENGLISH, GERMAN, HOURS, ASKED = (0, 1), (2,), (3,), (4,)


def one(named):
    (found,) = join([("labels.csv:2", named)], PASSAGES, FOLDERS)
    return found


@pytest.mark.parametrize(
    ("named", "passages"),
    [
        ("en/returns.html", ENGLISH),
        ("./en/returns.html", ENGLISH),
        ("en\\returns.html#refund", ENGLISH),
        ("de/returns", GERMAN),  # without the suffix
        ("site/de/returns.html", GERMAN),  # with the folder's own name
        ("/www/site/de/returns.html", GERMAN),
        ("hours/index.html", HOURS),  # only one path ends so
        ("en/hours", HOURS),  # a server sends the index for a folder
    ],
)
def test_a_path_means_all_passages_of_a_file(named, passages):
    assert (one(named).passages, one(named).how) == (passages, "path")
    assert one(named).files == (PASSAGES[passages[0]].file,)


@pytest.mark.parametrize(
    ("named", "passages"),
    [
        ("https://example.org/en/returns.html", ENGLISH),
        ("https://example.org/help/de/returns?utm_source=mail#top", GERMAN),  # the longest tail that is a page
        ("//example.org/site/en/hours/", HOURS),
        ("https://example.org/hours/", HOURS),  # the folder has more levels than the address
        ("https://example.org/help?page=hours", ASKED),
        ("https://example.org/en/h%6Furs", HOURS),
    ],
)
def test_an_address_means_the_file_at_its_path(named, passages):
    assert (one(named).passages, one(named).how) == (passages, "address")


@pytest.mark.parametrize(("named", "passages"), [("7", (5,)), ("bread", (6,))])
def test_an_id_means_the_row_with_it(named, passages):
    assert (one(named).passages, one(named).how) == (passages, "id")


@pytest.mark.parametrize(
    ("named", "passages", "how"),
    [
        (RETURNS.upper().replace(",", ""), (0,), "text"),  # without the title, case and punctuation
        ("drop the parcel off at any post office", (0,), "text"),
        (f"office within thirty days. {REFUND}", (0, 1), "text"),  # across two passages
        (f"Returns\n{RETURNS}\n{REFUND}\nAnd more of it, which is not in the documents.", (0, 1), "text"),
        ("open at nine", (3,), "text"),  # a short text is a whole passage
        ("open at", (), ""),
        ("The money: we refund two days after the parcel has arrived.", (1,), "words"),
        ("We arrived after the days.", (), ""),  # some words of a longer passage
    ],
)
def test_a_text_means_the_passages_that_hold_it_or_that_it_holds(named, passages, how):
    assert (one(named).passages, one(named).how) == (passages, how)


@pytest.mark.parametrize(
    ("named", "nearest"),
    [
        ("returns.html", "en/returns.html"),  # two paths end so: it means neither
        ("https://example.org/en/retuns.html", "en/returns.html"),
        ("The mat is grey.", "/www/faq.jsonl:1"),
        ("nothing", ""),
    ],
)
def test_what_means_no_page_has_the_nearest_one(named, nearest):
    assert (one(named).files, one(named).passages, one(named).how) == ((), (), "")
    assert one(named).nearest == nearest


def test_a_text_in_several_files_means_all_of_them():
    copies = [Passage(REFUND, "a.md", 1), Passage(REFUND, "b.md", 1)]
    assert join([("row 1", REFUND)], copies)[0].files == ("a.md", "b.md")


def test_a_line_counts_what_was_joined_and_names_the_first_others():
    named = ["en/returns.html", "de/returns", "7", *(f"lost/{i}.html" for i in range(4))]
    labels = [(f"labels.csv:{line}", each) for line, each in enumerate(named, 2)]
    assert describe(join(labels[:3], PASSAGES, FOLDERS)) == "joined to pages: 3 of 3 labels (path 2, id 1)"
    assert describe(join(labels, PASSAGES, FOLDERS)) == (
        "joined to pages: 3 of 7 labels (path 2, id 1); not joined: 4: labels.csv:5 'lost/0.html' (no such page), "
        "labels.csv:6 'lost/1.html' (no such page), labels.csv:7 'lost/2.html' (no such page), ..."
    )
