"""A page has one hit as long as there are other pages, and a language range finds its regions."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import metasearch as ms
from metasearch.config.index import IndexSettings
from metasearch.data.documents.passage import Passage
from metasearch.data.documents.read import page_of
from metasearch.encoders.builtin import tiny
from metasearch.errors import ConfigError
from metasearch.retrieval.index.base import Hit
from metasearch.retrieval.index.local import LocalStore
from metasearch.retrieval.search.searcher import Searcher, by_page
from metasearch.retrieval.search.update import update

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
    def test_each_page_has_one_hit_the_first_of_its_passages(self, searcher):
        (every,) = searcher.search(["The key"], top_k=42, by="passage")
        assert len(every) == 7 * 6
        first = [every[files(every).index(name)] for name in dict.fromkeys(files(every))]
        for top_k in (1, 3, 7):
            assert searcher.search(["The key"], top_k=top_k)[0] == first[:top_k]

    def test_fewer_pages_than_hits_have_further_hits_in_order(self, searcher):
        (every,), (found,) = (searcher.search(["The key"], top_k=k, by=by) for k, by in ((42, "passage"), (10, "page")))
        assert len(found) == 10
        assert set(files(found)) == set(THINGS)
        assert [every.index(hit) for hit in found] == sorted(every.index(hit) for hit in found)
        others = [hit for i, hit in enumerate(every) if files(every).index(files(every)[i]) < i]
        assert [hit for hit in found if hit in others] == others[:3]

    @pytest.mark.parametrize("ranking", ["balance", "hybrid"])
    def test_one_hit_a_page_however_passages_are_ranked(self, searcher, ranking):
        if ranking == "hybrid":
            pytest.importorskip("bm25s")
        (found,) = searcher.search(["Where is the boat?"], top_k=7, **{ranking: True})
        assert sorted(files(found)) == sorted(THINGS)

    def test_unknown_choice_names_both(self, searcher):
        with pytest.raises(ConfigError, match=r"by: .*'page' or 'passage'"):
            searcher.search(["key"], by="pages")

    @given(st.lists(st.sampled_from("abc"), max_size=12), st.integers(1, 12))
    def test_no_page_has_two_hits_while_another_has_none(self, pages, top_k):
        ranked = [Hit(-i, Passage(str(i), f"{page}.md", i)) for i, page in enumerate(pages)]
        found = by_page(ranked, top_k)
        assert len(found) == min(top_k, len(pages))
        assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)
        assert len(set(files(found))) == min(top_k, len(set(pages)))


@pytest.mark.parametrize(
    ("file", "page"),
    [
        ("a/b.md", ("a/b.md", 0)),
        ("b.html.gz", ("b.html.gz", 0)),
        ("b.txt", ("b.txt", 0)),
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


def test_a_path_is_a_file_or_a_folder_of_documents(tmp_path):
    for name in ("a/b/one.txt", "a/two.txt", "three.txt"):
        (tmp_path / "docs" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "docs" / name).write_text(f"The key of {name}.\n\nEqual in all.", encoding="utf-8")
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
    for where in ("n=1", "path=own", "path=own"):
        assert [hit.passage.text for hit in searcher.search(["key"], where=[where])[0]] == ["The key."]
    assert searcher.search(["key"], where=["path=rows.jsonl"]) == [[]]
