"""Questions about whole manuals: the files, variants of pages, and what values mean."""

import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from benchmarks.pages.asked import (
    CHOSE,
    CHOSE_NOTHING,
    QUESTIONS,
    Asked,
    Found,
    Question,
    best_pages,
    cell,
    measure,
    measure_scores,
    precision,
    value_facts,
)
from benchmarks.pages.ranking import Table, Way, part
from benchmarks.pages.variants import write_variants
from benchmarks.pages.whole import find_manuals
from helpers.files import write
from metasearch.search.index.base import PageScores


@pytest.mark.parametrize("name", [*CHOSE, *CHOSE_NOTHING])
def test_there_are_ten_different_questions_in_each_of_four_languages(name):
    rows = [json.loads(line) for line in (QUESTIONS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]
    assert sorted(Counter(row["language"] for row in rows).values()) == [10] * 4
    assert {tuple(row) for row in rows} == {("query", "language", "pages")}
    assert len({row["query"] for row in rows}) == 40
    assert all(row["pages"] and all(isinstance(page, str) for page in row["pages"]) for row in rows)


def test_chapters_of_a_manual_are_pages_by_the_name_that_translations_share(tmp_path):
    share = tmp_path / "usr/share"
    for path in (
        "doc/debian/FAQ/choosing.en.html", "doc/debian/FAQ/index.en.html", "doc/debian/FAQ/de/choosing.de.html",
        "debian-reference/ch01.es.html", "developers-reference/ja/pkgs.html", "developers-reference/search.html",
        "doc/maint-guide-it/html/build.it.html",
    ):  # fmt: skip
        write(share / path, "<p>Text</p>")
    write(tmp_path / "gnome60/ru/files.html", "<p>Text</p>")
    found = find_manuals(share.parent.parent, tmp_path)
    there = {(name, tag, page) for name, own in found.items() for tag, files in own.items() for page in files}
    assert there == {
        ("debian-faq", "en", "choosing"), ("debian-faq", "de", "choosing"), ("debian-reference", "es", "ch01"),
        ("developers-reference", "ja", "pkgs"), ("maint-guide", "it", "build"), ("gnome-help", "ru", "files"),
    }  # fmt: skip


def test_variants_have_no_titles_and_a_query_asks_for_the_file_that_has_its_page(tmp_path):
    """Nine pages are two files of four pages and one of one; every second file stays four pages in `half`."""
    lines = []
    for page in "abcdefghi":
        for tag in ("de", "en"):
            source = f"<title>T{page}</title><body><h1>T{page}</h1><p>{tag} {page}</p><h2>more</h2></body>"
            write(tmp_path / "set" / tag / f"{page}.html", source)
            lines.append(f'{{"page": "{page}", "language": "{tag}", "query": "T{page}"}}\n')
    write(tmp_path / "queries/set.jsonl", "".join(lines))
    write_variants(tmp_path, "set", 60)
    expected = {"no-titles": [1] * 9, "joined": [4, 4, 1], "half": [4, 1, 1, 1, 1, 1]}
    for variant, sizes in expected.items():
        texts = {path.stem: path.read_text() for path in sorted((tmp_path / f"set-{variant}/de").glob("*.html"))}
        assert sorted(text.count("<p>") for text in texts.values()) == sorted(sizes)
        assert not any(re.search("T[a-i]|<title>|<h1>", text) for text in texts.values())
        rows = [json.loads(line) for line in (tmp_path / f"queries/set-{variant}.jsonl").read_text().splitlines()]
        assert len(rows) == 9 * 2
        assert all(f"<p>de {row['query'][1:]}</p>" in texts[row["page"]] for row in rows)


def two_pages(tmp_path):
    """Return two questions about pages a and b in German and English; the pages are de/a, de/b, en/a, en/b."""
    files = [tmp_path / tag / f"{name}.html" for tag in ("de", "en") for name in "ab"]
    asked = [Question("first", "de", frozenset("a")), Question("second", "en", frozenset("ab"))]
    return Asked("questions", "set", asked, files)


def test_values_are_of_the_first_ten_hits_and_of_a_pool_without_other_versions(tmp_path):
    asked = two_pages(tmp_path)
    assert asked.others == ["en", "de"]
    assert asked.kept(0).tolist() == [False, True, True, True]
    hits = [Found([3, 2, 0], [3, 2, 0, 1]), Found([1, 0], [1, 0, 3])]
    values = measure(asked, hits, [Found([1, 3, 2], []), None])
    assert values["own"] == pytest.approx([1 / 3, 0])
    assert values["any"] == pytest.approx([1 / 2, 1 / 1])
    assert values["other"] == pytest.approx([1 / 3, np.nan], nan_ok=True)
    assert values["first"] == pytest.approx([0, 0])
    # de/a and en/a are right at ranks 2 and 3; all of four are right, and three of them are found.
    assert values["map@20"] == pytest.approx([(1 / 2 + 2 / 3) / 2, (1 + 1 + 1) / 4])
    assert precision([5] * 20 + [0], np.array([True] + [False] * 5)) == 0


def test_a_system_with_one_score_for_each_page_is_measured_in_both_pools(tmp_path):
    scores = np.array([[0.9, 0.8, 0.7, 0.6], [0.9, 0.8, 0.7, 0.6]])
    values = measure_scores(two_pages(tmp_path), scores)
    assert values["own"] == pytest.approx([1 / 1, 1 / 3])
    # Without de/a the pool is de/b, en/a, en/b. Without en/a and en/b the first one is right.
    assert values["other"] == pytest.approx([1 / 2, 1 / 1])
    assert best_pages(np.array([0.1, -np.inf, 0.3])).shown == [2, 0]


def test_values_of_sets_are_pooled_by_question(tmp_path):
    """Two sets of two questions: (0.5 + 0 + 1 + 0.5) / 4 = 50.0, and each is 0.25 above the baseline."""
    asked = two_pages(tmp_path)
    rows, baseline = ([{"set": name, **value_facts({"own": np.array(values)}, asked)} for name, values in own.items()]
        for own in ({"s": [0.5, 0.0], "t": [1.0, 0.5]}, {"s": [0.25, -0.25], "t": [0.75, 0.25]}))  # fmt: skip
    assert cell(rows, [], "own") == "50.0"
    assert cell(rows, baseline, "own") == "50.0 +25.0 [+25.0, +25.0]"


def test_pages_that_leave_the_pool_take_their_passages_and_groups_with_them():
    """Pages of 2, 1 and 2 passages; a and its translation are a group, and without it b is the first of two groups."""
    pages = PageScores(np.arange(5), np.arange(5, dtype=np.float32), np.array([0, 2, 3]), ["de", "en", "en"],
        np.array([0, 0, 1]))  # fmt: skip
    left = part(pages, np.array([False, True, True]))
    assert (left.rows.tolist(), left.starts.tolist(), left.languages) == ([2, 3, 4], [0, 1], ["en", "en"])
    assert left.groups.tolist() == [0, 1]
    # Rows 7, 8 and 7 of the index: pages share row 7.
    table = Table(PageScores(np.arange(3), np.zeros(3, np.float32), np.arange(3), ["de", "en", "en"],
        np.array([0, 0, 1])), np.array([1, 0, 1]), np.array([2, 0, 1]))  # fmt: skip
    scores = np.array([0.2, 0.6], np.float32)
    assert table.rank(scores, Way(None, balance=False, grouped=False), ["en"]).shown == [2, 1, 0]
    assert table.rank(scores, Way(1.0, balance=False, grouped=True), ["en"]).listed == [1, 0, 2]
    inside = np.array([True, True, False])
    assert table.rank(scores, Way(None, balance=False, grouped=False), [], inside).shown == [1, 0]


@pytest.mark.slow
def test_systems_are_scored_on_a_small_manual(tmp_path, monkeypatch):
    """Three pages in two languages, too few for a projection: ours are the vectors of the encoder."""
    from benchmarks.pages import questions
    from benchmarks.pages.asked import read_asked
    from benchmarks.pages.ranking import own_tags, search

    texts = {
        "room": ("The key of the room is under the mat.", "Der Schlüssel des Zimmers liegt unter der Matte."),
        "train": ("The train to the city leaves at nine.", "Der Zug in die Stadt fährt um neun Uhr ab."),
        "soup": ("Cook the soup for an hour with salt.", "Kochen Sie die Suppe eine Stunde mit Salz."),
    }
    for name, own in texts.items():
        for tag, text in zip(("en", "de"), own, strict=True):
            page = f'<html lang="{tag}"><body><p>{text}</p></body></html>'
            write(tmp_path / "whole/manual" / tag / f"{name}.html", page)
    lines = [("Where is the key?", "en", "room"), ("Wann fährt der Zug?", "de", "train"), ("How long?", "en", "soup")]
    rows = [{"query": query, "language": tag, "pages": [page]} for query, tag, page in lines]
    (tmp_path / "manual.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    monkeypatch.setattr("benchmarks.pages.asked.QUESTIONS", Path(tmp_path))
    [asked] = read_asked(tmp_path, "manual", "")
    found = {row["system"]: row for row in questions.make_rows(asked, "tiny", tmp_path / "runs")}
    assert set(found) == set(questions.SYSTEMS)
    assert found[questions.ONE]["gains"]["own"] == [0, 0, 0]
    assert all(len(row["each"]["other"]) == 3 for row in found.values())
    # Scores of the table rank pages as the search does.
    searcher = questions.open_index(asked, "tiny", tmp_path / "runs")
    table, plan = Table.read(searcher, asked), searcher.store.plan
    scores = searcher.encode_queries(asked.texts) @ searcher.store.quantised.take(slice(None)).T
    way = Way(plan.sharpness, bool(searcher.ranking.balance), grouped=True)
    ranked = [table.rank(*each) for each in zip(scores, [way] * 3, own_tags(searcher, asked.texts), strict=True)]
    assert ranked == search(searcher, asked)
