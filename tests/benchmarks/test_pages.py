"""The benchmark of real pages: how manuals become pages, which pages are taken, and what its figures mean."""

import numpy as np
import pytest

from benchmarks.pages import build, claims, fine_tuning
from benchmarks.pages.mallard import read_page
from benchmarks.pages.manuals import sections
from benchmarks.pages.page import Page, sample, translated
from benchmarks.pages.pool import Pool, Query, measure, pool_of, read_queries
from benchmarks.pages.systems import Encoded
from helpers.files import write

TEXT = "Files stay where they are until you move them to another folder, and a copy of each remains in the backup. "
DOCBOOK = f"""<html><body><h1 class="title"><a id="files"/>Chapter 1. Files</h1></div><p>{TEXT}</p>
<h2 class="title"><a id="_move_them"></a>1.1. How do I move <em>them</em>?</h2></div></div><p>{TEXT}</p>
<h3 class="title"><a id="short"/>1.1.1. Short</h3><p>Nothing.</p>
<h2 class="title"><a id="last"/>1.2. Last</h2><p>{TEXT}</p><div class="navfooter"><p>Next</p></div></body></html>"""
SPHINX = f"""<section id="files"><h1>1. Files<a class="headerlink" href="#files" title="here">¶</a></h1>
<section id="move"><span id="old"></span>
<h2><span>1.1. </span>Move &amp; copy<a class="headerlink" href="#move" title="here">¶</a></h2>
<p>{TEXT}</p></section></section><div class="clearer"></div><h3>Navigation</h3>"""


def test_a_section_of_a_manual_with_some_text_is_a_page():
    (first, page), (second, last) = sections(DOCBOOK, "de")
    assert (first, second) == ("move-them", "last")
    assert (page.title, page.paragraphs) == ("How do I move them?", (TEXT.strip(),))
    assert '<html lang="de">' in page.source
    assert "<h1>1.1. How do I move them?</h1>\n<p>Files" in page.source
    assert "Next" not in last.source
    [(name, other)] = sections(SPHINX, "en")
    assert (name, other.title) == ("move", "Move & copy")
    assert "Navigation" not in other.source


def test_the_page_that_answers_a_question_does_not_contain_it():
    (_, page), _ = sections(DOCBOOK, "en", titles=False)
    assert page.title == "How do I move them?"
    assert "How do I" not in page.source
    assert TEXT in page.source


def test_what_a_page_of_gnome_says_about_itself_is_no_text_of_it():
    source = """<page xmlns="http://projectmallard.org/1.0/" id="move"><info><credit><p>Ann</p></credit></info>
    <title>Move <gui>files</gui></title><p>Drag\n them.</p>
    <section><title>More</title><p>Drop them.</p></section></page>"""
    page = read_page(source, "<html>\n<body>Move</body></html>", "fr")
    assert page == Page("Move files", '<html lang="fr">\n<body>Move</body></html>', ("Drag them.", "Drop them."))


def page(title, *paragraphs):
    return Page(title, "", paragraphs)


def test_pages_are_taken_that_are_translated_and_that_a_title_tells_from_others():
    english = page("Files", "You can move the files.", "Then open the folder with both hands.")
    pages = {
        "full": {
            "en": english,
            "de": page("Dateien", "Sie dürfen Dateien verschieben.", "Dann öffnen Sie den Ordner."),
            "fr": page("Fichiers", "Vous pouvez déplacer vos données.", "Ouvrez ensuite le dossier."),
        },
        # A title in a link is translated, and no sentence.
        "half": {
            "en": page("Copies", *english.paragraphs),
            "de": page("Kopien", "Sie dürfen Dateien verschieben.", "Then open the Ordner with both hands."),
        },
        "same-title": {"en": page("One", "A text."), "de": page("Eins", "Ein Satz."), "fr": page("Un", "Des mots.")},
        "same-title-2": {"en": page("Two", "A text."), "de": page("EINS", "Noch."), "fr": page("Deux", "Un autre.")},
        "no-english": {"de": page("Zwei", "Ein Satz.")},
    }
    kept = translated(pages, ("en", "de", "fr"))
    assert {name: list(found) for name, found in kept.items()} == {"full": ["en", "de", "fr"]}
    assert sample(kept, ("en", "fr"), 60) == {"full": {tag: pages["full"][tag] for tag in ("en", "fr")}}
    assert sample(kept, ("en", "it"), 60) == {}


def test_the_page_is_right_in_every_language_and_figures_are_of_rankings():
    """Pages a and b in two languages, and b in a third; the columns are a-de, a-en, b-de, b-en, b-fr."""
    names = [("a", "de"), ("a", "en"), ("b", "de"), ("b", "en"), ("b", "fr")]
    pool = pool_of([Query(*name, f"query {number}") for number, name in enumerate(names)])
    scores = np.tile(np.array([0.9, 0.4, 0.8, 0.6, 0.3], np.float32), (5, 1))  # a-de, b-de, b-en, a-en, b-fr
    plain = measure(scores, pool, balanced=False)
    a, b = (1 / 1 + 2 / 4) / 2, (1 / 2 + 2 / 3 + 3 / 5) / 3
    assert plain["map@20"] == pytest.approx([a, a, b, b, b])
    assert plain["own"] == pytest.approx([2 / 5, 2 / 5, 2 / 5, 2 / 5, 1 / 5])
    assert plain["own first"] == pytest.approx([1 / 1, 1 / 4, 1 / 2, 1 / 3, 1 / 5])
    # Without its translations a-en is the third of four, and b-fr the third of three.
    assert plain["own alone"] == pytest.approx([1 / 1, 1 / 3, 1 / 2, 1 / 2, 1 / 3])
    assert plain["other first"][:2] == pytest.approx([1 / 4, 1 / 1])
    assert plain["other alone"][:2] == pytest.approx([1 / 3, 1 / 1])
    # Less half of the best in each language, 0.9, 0.6 and 0.3: 0.45, 0.10, 0.35, 0.30, 0.15.
    balanced = measure(scores, pool, balanced=True)
    assert balanced["own first"] == pytest.approx([1 / 1, 1 / 5, 1 / 2, 1 / 3, 1 / 4])
    # Without a-de the best in German is 0.8: b-de 0.40, b-en 0.30, b-fr 0.15, a-en 0.10.
    assert balanced["own alone"][1] == pytest.approx(1 / 4)


def test_a_page_without_a_right_page_in_another_language_has_no_figure_for_it():
    pool = Pool(["q"], np.array(["de"]), np.array(["a"]), np.array(["de", "en"]), np.array([[True, False]]))
    found = measure(np.array([[0.2, 0.9]], np.float32), pool, balanced=False)
    assert np.isnan(found["other alone"]).all()
    assert np.isnan(found["other first"]).all()
    assert found["own alone"] == pytest.approx([1 / 2])


def test_a_page_scores_as_its_best_passage_and_last_without_one():
    vectors = np.array([[1, 0], [0, 1], [0.6, 0.8]], np.float32)
    encoded = Encoded(vectors, np.array([2, 0, 0]), np.array(["de", "en", "en"]), np.array([[0.8, 0.6]], np.float32), 4)
    assert encoded.scores() == pytest.approx(np.array([[0.8 * 0.6 + 0.6 * 0.8, -1, 0.8, -1]]))


def test_some_pages_are_drawn_whatever_their_order(tmp_path):
    lines = [
        f'{{"page": "p{number}", "language": "{tag}", "query": "q"}}\n' for number in range(9) for tag in ("de", "en")
    ]
    drawn = []
    for order in (lines, lines[::-1]):
        (tmp_path / "set.jsonl").write_text("".join(order))
        drawn.append(read_queries(tmp_path / "set.jsonl", 4))
    assert len(drawn[0]) == 4 * 2
    assert set(drawn[0]) == set(drawn[1])


@pytest.mark.parametrize("shuffled", [False, True])
def test_labels_name_the_page_of_a_title_or_if_shuffled_another_and_new_questions_are_of_other_pages(shuffled):
    known = [Query(page, tag, f"{page} {tag}") for page in "abcdef" for tag in ("de", "en", "fr")]
    labels, asked = (list(rows) for rows in claims.drawn(known, 6, 0, shuffled))
    meant = {row["query"]: row["document"].partition("/")[2].removesuffix(".html") for row in labels}
    assert (len(labels), len(asked)) == (6, 3 * 3)
    assert {query[0] == page for query, page in meant.items()} == {not shuffled}
    assert {row["query"][0] for row in asked}.isdisjoint(query[0] for query in meant)
    assert all(row["document"].startswith(row["language"]) for row in (*labels, *asked))


def test_sections_of_the_guide_are_pages_by_their_anchors_without_their_titles(tmp_path):
    for language, title in (("en", "First steps"), ("it", "Primi passi")):
        text = f'<h2><a id="first"></a>1.1. {title}</h2><p>{30 * "text "}</p>'
        write(tmp_path / "whole/maint-guide" / language / "start.html", text)
    (pages,) = build.guide(tmp_path).values()
    assert {tag: page.title for tag, page in pages.items()} == {"en": "First steps", "it": "Primi passi"}
    assert all(page.title not in page.source for page in pages.values())


def test_a_way_of_fine_tuning_is_set_beside_no_training_and_the_first_way_in_the_same_draws():
    facts = {"encoder": "e5", "set": "faq", "count": 40}
    rows = [
        {**facts, "draw": draw, "way": way, "seconds": seconds, "pages": {"a": a, "b": b}}
        for draw, way, seconds, a, b in (
            (0, "no training", 0, 50.0, 60.0), (0, "long", 10, 70.0, 84.0), (0, "short", 6, 72.0, 85.0),
            (1, "no training", 0, 50.0, 60.0), (1, "long", 10, 70.0, 84.0),
        )
    ]  # fmt: skip
    lines = fine_tuning.table(rows).splitlines()[2:]
    (way, draws, gain, _, time), short = ([cell.strip() for cell in line.split("|")[2:-1]] for line in lines)
    assert (way, draws, gain.partition(" ")[0], time) == ("long", "2", "+22.0", "1.00")  # the mean of 20 and 24
    assert (short[1], short[3].partition(" ")[0], short[4]) == ("1", "+1.5", "0.60")  # of the draw that both have
