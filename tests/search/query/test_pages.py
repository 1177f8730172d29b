"""A page has one hit as long as there are other pages, and a language range finds its regions."""

import json

import numpy as np
import pytest

import metasearch as ms
from helpers.files import write_all
from metasearch.encoders.builtin import tiny
from metasearch.errors import ConfigError
from metasearch.search.documents.passage import Passage
from metasearch.search.documents.read import page_of
from metasearch.search.index.local import LocalStore
from metasearch.search.index.page_scores import page_scores
from metasearch.search.query.searcher import Searcher
from metasearch.search.query.update import update
from metasearch.search.settings import IndexSettings

THINGS = ("key", "cat", "bread", "lamp", "door", "boat", "tree")


@pytest.fixture(scope="module")
def searcher(tmp_path_factory):
    """Return a search over seven pages of six passages each, of 30 tokens at most."""
    folder = tmp_path_factory.mktemp("pages")
    for thing in THINGS:
        lines = (f"The {thing} is in room number {room}, next to the old {thing}.\n\n" for room in range(6))
        (folder / f"{thing}.txt").write_text("".join(lines), encoding="utf-8")
    encoder = tiny.build()
    update(folder / "index", sorted(folder.glob("*.txt")), encoder, IndexSettings(length=30))
    return Searcher(LocalStore.open(folder / "index"), encoder)


def files(hits):
    return [hit.passage.file.rpartition("/")[2].removesuffix(".txt") for hit in hits]


class TestPages:
    def test_each_page_has_one_hit_its_best_passage_with_the_score_of_all(self, searcher):
        (every,) = searcher.search(["The key"], top_k=42, by="passage")
        own = {name: [hit for hit in every if files([hit]) == [name]] for name in THINGS}
        assert {len(hits) for hits in own.values()} == {6}
        in_order = [sorted(own[name], key=lambda hit: hit.passage.line) for name in THINGS]
        scores = np.array([[hit.score for hits in in_order for hit in hits]])
        # A page without translations is a group of its own.
        pages = page_scores(scores, 6 * np.arange(7), searcher.store.plan.sharpness)[0]
        best = sorted(zip(pages, THINGS, strict=True), reverse=True)
        for top_k in (1, 3, 7):
            (found,) = searcher.search(["The key"], top_k=top_k)
            assert [hit.passage for hit in found] == [own[name][0].passage for _, name in best[:top_k]]
            assert [hit.score for hit in found] == pytest.approx([score for score, _ in best[:top_k]], abs=1e-5)

    def test_fewer_pages_than_hits_have_further_hits_in_order(self, searcher):
        (found,) = searcher.search(["The key"], top_k=10)
        assert {*files(found[:7])} == {*THINGS}
        assert len({hit.passage for hit in found}) == 10
        for part in (found[:7], found[7:]):
            assert [hit.score for hit in part] == sorted((hit.score for hit in part), reverse=True)

    @pytest.mark.parametrize("ranking", ["balance", "hybrid"])
    def test_one_hit_a_page_however_passages_are_ranked(self, searcher, ranking):
        if ranking == "hybrid":
            pytest.importorskip("bm25s")
        (found,) = searcher.search(["Where is the boat?"], top_k=7, **{ranking: True})
        assert sorted(files(found)) == sorted(THINGS)

    def test_unknown_choice_names_both(self, searcher):
        with pytest.raises(ConfigError, match=r"by: .*'page' or 'passage'"):
            searcher.search(["key"], by="pages")


@pytest.mark.parametrize(
    ("file", "page"),
    [
        ("a/b.md", ("a/b.md", 0)),
        ("b.html.gz", ("b.html.gz", 0)),
        ("b.txt", ("b.txt", 0)),
        ("b.docx", ("b.docx", 0)),
        ("b.pdf", ("b.pdf", 3)),
        ("b.csv", ("b.csv", 3)),
        ("b.jsonl.gz", ("b.jsonl.gz", 3)),
    ],
)
def test_a_page_is_a_file_or_a_page_or_row_of_it(file, page):
    assert page_of(Passage("text", file, 3)) == page


def test_a_language_finds_its_regions(tmp_path):
    tags = ("en", "en-US", "zh-Hant-HK", "enm", "de")
    rows = [{"text": f"The key in {tag}.", "language": tag} for tag in tags]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    ms.index_documents([tmp_path / "rows.jsonl"], tmp_path / "index", encoder="tiny")
    searcher = ms.open_searcher(tmp_path / "index")
    for asked, found in {("en",): {"en", "en-US"}, ("EN-us",): {"en-US"}, ("zh", "de"): {"zh-Hant-HK", "de"}}.items():
        (hits,) = searcher.search(["key"], languages=asked)
        assert {hit.passage.language for hit in hits} == found
    with pytest.raises(ConfigError, match="no passage is in language 'en-AU'"):
        searcher.search(["key"], languages=["en-AU"])


def test_a_page_is_shown_in_the_language_of_the_query_then_in_english(tmp_path):
    """The page on keys is not in German, and the one on doors is in German alone."""
    texts = {
        "en/key": "Where the key of the house is.", "fr/key": "Où est la clé de la maison.",
        "el/key": "Πού είναι το κλειδί του σπιτιού.", "de/door": "Die Tür des Hauses ist aus Holz.",
    }  # fmt: skip
    write_all(tmp_path / "docs", {f"{name}.txt": text for name, text in texts.items()})
    ms.index_documents([tmp_path / "docs"], tmp_path / "index", encoder="tiny")
    searcher = ms.open_searcher(tmp_path / "index")
    # A query without letters has no language: the version with the best score is shown.
    asked = {
        "Wo ist der Schlüssel für das Haus?": "en",
        "Où est la clé ?": "fr",
        "Πού είναι το κλειδί;": "el",
        "?": "el",
    }
    for query, language in asked.items():
        (hit,) = (each for each in searcher.search([query])[0] if each.translations)
        assert hit.passage.language == language
        assert {each.passage.language for each in hit.translations} == {"en", "fr", "el"} - {language}


def test_a_path_is_a_file_or_a_folder_of_documents(tmp_path):
    names = ("a/b/one.txt", "a/two.txt", "three.txt")
    write_all(tmp_path / "docs", {name: f"The key of {name}.\n\nEqual in all." for name in names})
    ms.index_documents([tmp_path / "docs"], tmp_path / "index", encoder="tiny", asked={"length": 20})
    searcher = ms.open_searcher(tmp_path / "index")
    inside = {"a": {"one", "two"}, "a/b": {"one"}, "a/two.txt": {"two"}}
    for path, names in inside.items():
        (hits,) = searcher.search(["key"], where={"path": path}, by="passage")
        # What all documents have is one row, shown at the first of its places.
        assert {name for hit in hits for name in ("one", "two", "three") if name in hit.passage.text} == names
    assert searcher.search(["key"], where=["path=b"]) == [[]]
    with pytest.raises(ConfigError, match="no passage has the field 'paths'"):
        searcher.search(["key"], where=["paths=a"])


def test_a_title_is_the_outermost_heading_of_a_page(tmp_path):
    for name, title in (("a.html", "Page styles"), ("b.html", "Printing")):
        text = f"<h1>{title}</h1><p>On {title}.<h2>Margins</h2><p>Margins of {title}."
        (tmp_path / name).write_text(text, encoding="utf-8")
    ms.index_documents([tmp_path / "a.html", tmp_path / "b.html"], tmp_path / "index", "tiny", {"length": 12})
    searcher = ms.open_searcher(tmp_path / "index")
    (hits,) = searcher.search(["margins"], where={"title": "Page styles"}, by="passage")
    assert {hit.passage.file for hit in hits} == {"a.html"}
    assert {hit.passage.heading for hit in hits} == {"Page styles", "Page styles › Margins"}
    assert searcher.search(["margins"], where={"title": "Margins"}) == [[]]


def test_a_field_of_documents_goes_before_the_path(tmp_path):
    rows = [{"text": "The key.", "path": "own", "n": 1}, {"text": "The door.", "path": "other"}]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    ms.index_documents([tmp_path / "rows.jsonl"], tmp_path / "index", encoder="tiny")
    searcher = ms.open_searcher(tmp_path / "index")
    for where in ("n=1", "path=own"):
        assert [hit.passage.text for hit in searcher.search(["key"], where=[where])[0]] == ["The key."]
    assert searcher.search(["key"], where=["path=rows.jsonl"]) == [[]]
