"""Starts on labelled pages: manuals score as their searches do, Y and Z ask for the pages of X, and the table."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import metasearch as ms
from benchmarks.pages import build, memory, start_tables, starts, titles
from benchmarks.paper.adapter_cells import recipe_of
from helpers.files import write
from metasearch.search.index.plan import Adapter
from metasearch.search.tune.steps import ANSWERED, REMEMBERED

WORDS = {
    "de": "Schlüssel Paket Schuhe Rechnung Garantie Gutschein Lampe Garten Fenster Brücke",
    "en": "key parcel shoes invoice warranty voucher lamp garden window bridge",
    "es": "llave paquete zapatos factura garantía vale lámpara jardín ventana puente",
    "it": "chiave pacco scarpe fattura garanzia buono lampada giardino finestra ponte",
}


@pytest.fixture(scope="module")
def manual(tmp_path_factory):
    folder = tmp_path_factory.mktemp("manual")
    rows = []
    for language, words in WORDS.items():
        for page, word in enumerate(words.split()):
            text = f'<html lang="{language}"><body><p>{word} {word[:3]} {page}.</p></body></html>'
            write(folder / "shop" / language / f"page-{page}.html", text)
            rows.append({"page": f"page-{page}", "language": language, "query": f"{word} {language}?"})
    write(folder / "queries/shop.jsonl", "\n".join(map(json.dumps, rows)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(titles, "ENCODER", "tiny")
        return titles.Manual.read(folder, "shop", folder / "out")


def test_titles_score_as_the_search_of_the_index_with_labelled_queries(manual):
    labels = manual.labels(12, 0)
    matrix = starts.closed(manual, labels, np.eye(manual.encoder.encode([], "question").shape[1]))
    store = manual.index.store
    searcher = ms.open_searcher(store.folder)
    labelled = manual.index.labelled(labels)[0]
    searcher.store.plan = replace(store.plan, adapter=Adapter(REMEMBERED, matrix.astype(np.float32), labelled))
    asked = manual.data.questions
    pool = SimpleNamespace(
        rows=[{"query": each.text} for each in asked], asked=np.array([each.id for each in asked]),
        pages=np.array([Path(file).stem for file in dict.fromkeys(each.page for each in manual.index.passages)]),
    )  # fmt: skip
    expected = memory.precisions(searcher, pool, np.arange(len(asked)))
    found = manual.precisions(manual.scores(matrix) + manual.gains(labels))
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert found.mean() > manual.precisions(manual.scores(matrix)).mean()


def test_labels_are_of_some_pages_and_tests_ask_in_other_languages_or_for_other_pages(manual):
    labels = manual.labels(12, 0)
    known = {each.id for each in labels.questions}
    assert len(labels.questions) == 12
    assert {each.language for each in labels.questions} <= {*memory.LABELLED}
    same, other = ([manual.data.questions[i] for i in part] for part in manual.parts(labels))
    assert {each.id for each in same} == known
    assert {each.language for each in same} == {"es", "it"}
    assert not known & {each.id for each in other}
    assert len({each.id for each in other}) == 10 - len(known)


def test_the_sets_of_an_episode_ask_for_the_same_pages_in_three_languages(manual):
    recipe = recipe_of("align", 1e-3, 0.2, 0, *starts.EPISODES, "episodes.k=4", "episodes.q=4")
    for episode in starts.Turns([manual], recipe, 0).batch(0, 3):
        asked = [{each.question.id for each in examples.examples} for examples in episode.sets]
        tags = [examples.variant.query for examples in episode.sets]
        assert tags[0] in memory.LABELLED
        assert {*tags[1:]} == {"es", "it"}
        assert asked[0] == asked[1] >= asked[2]
        assert [len(each.variant.candidates) for each in episode.sets] == [1, 1, 3]


def test_differences_are_from_what_ships_with_each_page_as_one_cluster():
    rows = [
        {"set": name, "labels": 32, "arm": arm, "pages": [{f"p{i}": [2, 1.0 + gain + i / 10] for i in range(4)}, {}]}
        for name in ("a", "b")
        for arm, gain in ((ANSWERED, 0.2), (REMEMBERED, 0.0), ("no labels", -0.4))
    ]
    values, pages = start_tables.differences(rows, ANSWERED, REMEMBERED, start_tables.LABELLED, [32])
    np.testing.assert_allclose(values, 0.1)
    assert pages == [f"{name} p{i}" for name in "ab" for i in range(4) for _ in range(2)]
    assert start_tables.by_manual(rows, "no labels", REMEMBERED, [32]).mean == pytest.approx(-0.2)
    assert start_tables.by_manual(rows, "no labels", REMEMBERED, [32]).n == 2


def test_sections_of_the_guide_are_pages_by_their_anchors_without_their_titles(tmp_path):
    for language, title in (("en", "First steps"), ("it", "Primi passi")):
        text = f'<h2><a id="first"></a>1.1. {title}</h2><p>{30 * "text "}</p>'
        write(tmp_path / "whole/maint-guide" / language / "start.html", text)
    (pages,) = build.guide(tmp_path).values()
    assert {tag: page.title for tag, page in pages.items()} == {"en": "First steps", "it": "Primi passi"}
    assert all(page.title not in page.source for page in pages.values())
