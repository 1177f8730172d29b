"""The contract of all stores: each copy of an index answers as the folder does, or refuses in one line."""

import importlib.util
import re
from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from helpers import indexes
from helpers.documents import DOCUMENTS
from helpers.indexes import Given, Made, key_of, made, write_index
from helpers.indexes import cut_words as words
from metasearch.config import registry
from metasearch.encoders.maps import Projection
from metasearch.errors import ConfigError, EncoderError
from metasearch.search.documents.languages import path_without_language
from metasearch.search.documents.passage import Passage
from metasearch.search.documents.read import page_of
from metasearch.search.index.base import Scope, SearchError, passage_keys
from metasearch.search.index.labelled_queries import LabelledQueries
from metasearch.search.index.local import LocalStore
from metasearch.search.index.plan import Adapter, Learned, SearchPlan
from metasearch.search.index.postgresql import PostgresStore
from metasearch.search.index.postgresql_copy import row_numbers, vectors_mark
from metasearch.search.index.stores import database, is_address, open_store
from metasearch.search.index.writer import writing
from metasearch.search.query.searcher import Searcher
from metasearch.search.settings import parse_conditions

_FILE = r"^`metasearch/search/index/memory.py`:\n\n```python\n(.*?)^```$"
(EXAMPLE,) = re.findall(_FILE, DOCUMENTS["CONTRIBUTING.md"], flags=re.S | re.M)
PRICES = (5, 20, None)
ROUNDED = 3e-4
"""Vectors in float16, or queries in 15 bits. Closer scores may change places."""


def queries(count=4):
    """Return vectors of length 1, as an encoder does."""
    found = indexes.queries(count)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    """Sixty passages in three languages, a third of each without a price."""
    content = made(60)
    fields = [{} if price is None else {"price": price} for price in (PRICES[i // 3 % 3] for i in range(60))]
    passages = [
        Passage(each.text, each.file, each.line, each.language, own)
        for each, own in zip(content.passages, fields, strict=True)
    ]
    content = Made(content.vectors, passages, np.array([key_of(passage) for passage in passages]))
    return LocalStore.open(write_index(tmp_path_factory.mktemp("stores") / "index", content))


def memory(folder, patch, request, name):
    (folder / "memory.py").write_text(EXAMPLE, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("memory", folder / "memory.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.STORE, f"memory://{name}"


def postgresql(folder, patch, request, name):
    server = request.getfixturevalue("postgres_server")
    with server.connect() as connection:  # not `clear`: two copies are there at a time
        connection.execute(f"DROP TABLE IF EXISTS {name}, {name}_state")
    return PostgresStore, server.address(name)


def offered(store):
    """Return what makes the place of a copy in a store that needs no server of its own."""
    return lambda folder, patch, request, name: (registry.load("stores", store).STORE, f"{store}://{name}")


REGISTERED = {name: registry.load("stores", name).STORE for name in registry.names("stores")}
STORES = {"memory": memory, "postgresql": postgresql}
STORES |= {name: offered(name) for name, store in REGISTERED.items() if store is not PostgresStore}


def copy_index(index, request, folder, name):
    with pytest.MonkeyPatch.context() as patch:
        plug_in, address = STORES[request.param](folder, patch, request, name)
        plug_in.check(address)
        told = []
        result = plug_in.copy(index, address, words, lambda done, total: told.append((done, total)))
        assert (result.passages, result.sent, result.deleted) == (len(index), len(index), 0)
        assert told[-1] == (len(index), len(index))
        return plug_in.open(address)


@pytest.fixture(scope="module", params=STORES)
def copied(request, local, tmp_path_factory):
    return copy_index(local, request, tmp_path_factory.mktemp("copied"), "help")


def found(store, **asked):
    """Return for each group and query the passages with their places, and the scores."""
    return [([store.passages(row) for row in rows], scores) for rows, scores in store.search(queries(), **asked)]


def test_it_has_the_passages_of_the_index(local, copied):
    assert (copied.kind, len(copied), dict(copied.languages)) == (local.kind, len(local), local.languages)
    assert list(copied.languages.values()) == sorted(copied.languages.values(), reverse=True)
    assert not copied.changed()
    assert dict(copied.reopen().languages) == local.languages


@pytest.mark.parametrize(
    ("groups", "where"),
    [*product([[()], [["de"], ["el", "tr"]]], [[], ["price<10"], ["price!=20"], ["price>=5", "price<=20"]])],
)
def test_it_finds_what_the_index_finds(local, copied, groups, where):
    asked = {"top_k": 7, "groups": groups, "where": parse_conditions(where)}
    ((every, of_every),) = found(local, top_k=60)
    exact = [dict(zip(map(repr, own), scores, strict=True)) for own, scores in zip(every, of_every, strict=True)]
    for (passages, scores), (_, expected) in zip(found(copied, **asked), found(local, **asked), strict=True):
        np.testing.assert_allclose(scores, expected, atol=ROUNDED)
        own = [[known[repr(each)] for each in ranked] for known, ranked in zip(exact, passages, strict=True)]
        np.testing.assert_allclose(own, expected, atol=ROUNDED)


def test_more_hits_than_passages_are_all_of_them(copied):
    ((rows, scores),) = copied.search(queries(1), top_k=100, groups=[["de"]], where=parse_conditions(["price=5"]))
    assert rows.shape == scores.shape == (1, sum(i % 3 == 0 and i // 3 % 3 == 0 for i in range(60)))
    assert (np.diff(scores) <= 0).all()


@pytest.mark.parametrize(
    ("asked", "param"),
    [
        ({"groups": [["dd"]]}, "languages"),
        ({"where": parse_conditions(["prize<3"])}, "where"),
    ],
)
def test_what_no_passage_has_is_refused_with_the_nearest(local, copied, asked, param):
    with pytest.raises(SearchError) as exact:
        local.search(queries(), **asked)
    with pytest.raises(SearchError) as error:
        copied.search(queries(), **asked)
    assert (error.value.param, error.value.code, str(error.value)) == (param, exact.value.code, str(exact.value))


def test_a_searcher_searches_it_and_expansion_without_vectors_is_refused(local, copied):
    vectors = queries()
    hits = [Searcher(store, Given(vectors)).search(["2", "3"], top_k=5, balance=True) for store in (local, copied)]
    assert [[hit.passage for hit in own] for own in hits[0]] == [[hit.passage for hit in own] for own in hits[1]]
    with pytest.raises(SearchError, match="has no expanded vectors"):
        Searcher(copied, Given(vectors)).search(["0"], expand=True)


# Updates of a copy.


@pytest.fixture(params=[name for name in STORES if name != "memory"])
def place(request, tmp_path, monkeypatch):
    return STORES[request.param](tmp_path, monkeypatch, request, "help")


def send(place, folder, content=None):
    """Copy an index in a folder, or a new one of some content; return what was sent and deleted."""
    plug_in, address = place
    index = LocalStore.open(write_index(folder, content) if content else folder)
    result = plug_in.copy(index, address, words, lambda done, total: None)
    assert result.passages == len(index)
    return result.sent, result.deleted


def test_an_update_sends_what_changed_and_a_copy_that_is_equal_nothing(place, tmp_path):
    content = made(40)
    assert send(place, tmp_path / "a", content) == (40, 0)
    # The first ten of a page leave, so that its other twenty have other places in it.
    assert send(place, tmp_path / "b", content.part(range(10, 40))) == (20, 10)
    opened = place[0].open(place[1])
    assert send(place, tmp_path / "c", content.part(range(10, 40))) == (0, 0)
    assert not opened.changed()
    assert send(place, tmp_path / "d", content) == (30, 0)
    assert opened.changed()
    ((rows, _),) = opened.reopen().search(queries(1), 99)
    found = {passage.text for passage, _ in opened.reopen().passages(rows[0])}
    assert found == {passage.text for passage in content.passages}


def test_how_queries_are_searched_is_sent_without_passages(place, tmp_path):
    send(place, tmp_path / "a", made(6))
    store = place[0].open(place[1])
    with writing(tmp_path / "a", indexes.kind()) as writer:
        writer.write_plan(SearchPlan(sharpness=3.0))
    assert send(place, tmp_path / "a") == (0, 0)
    assert store.changed()
    assert (store.plan.sharpness, store.reopen().plan.sharpness) == (None, 3.0)


def test_words_are_ranked_by_bm25(place, tmp_path):
    """Texts are `passage SEED.NUMBER`: the second word is in one text of three, the first in all."""
    send(place, tmp_path / "a", made(9))
    send(place, tmp_path / "b", made(3))
    store = place[0].open(place[1])
    for languages in ((), ("el", "de", "tr")):
        ((rows, scores),) = store.search_words(words, ["0.1 missing"], 5, Scope(languages))
        assert [passage.text for passage, _ in store.passages(rows)] == ["passage 0.1"]
        # f / (f + k1 (1 - b + b · 2 / 2)) · ln(1 + (3 - 1 + 0.5) / (1 + 0.5)), with f = 1 and k1 = 1.5
        assert scores.tolist() == pytest.approx([1 / 2.5 * np.log(1 + 2.5 / 1.5)], rel=1e-5)
    ((_, scores),) = store.search_words(words, ["passage"], 2, Scope(["de", "tr"]))
    assert scores.tolist() == pytest.approx([1 / 2.5 * np.log(1 + 0.5 / 3.5)] * 2, rel=1e-5)
    assert store.search_words(words, ["missing"], 2)[0][0].tolist() == []


def test_a_hit_tells_its_first_place_and_how_many_there_are_and_another_encoder_is_refused(place, tmp_path):
    content = made(6)
    assert send(place, tmp_path / "a", content.part([0, 1, 2, 3, 4, 5, 0])) == (6, 0)
    ((passage, places),) = place[0].open(place[1]).passages(row_numbers(content.keys[:1]))
    assert (passage, places) == (content.passages[0], 2)
    with pytest.raises(EncoderError, match=r"/help: its vectors are of encoder 'mini' \(fingerprint-1, 24 dimensions"):
        send(place, tmp_path / "b", made(6, dimension=16))


# Pages and their translations. A store of the least code, as the example in CONTRIBUTING, has none of them.

PROJECTION = Projection(np.zeros(2), np.eye(2)[:1], ("de", "el"))
NEAR = 2e-3
"""Difference of scores by vectors in float16 and int8."""
PAGES = {"keys": 7, "doors": 3, "lamps": 5, "boats": 1}
"""Passages of each page of the site in German; other languages have one more each."""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Pages in three languages, two apart that are both in German, one of two, and rows with and without a group."""
    found = [
        (f"site/{tag}/{name}.md", line, tag, {})
        for name, size in PAGES.items()
        for more, tag in enumerate(indexes.LANGUAGES)
        for line in range(1, 1 + size + more)
    ]
    found += [(f"site/rooms{end}", 1, "de", {}) for end in (".de.md", "-de.md")]
    found.append(("site/rooms.el.md", 1, "el", {}))
    found += [("site/mixed.md", line, tag, {}) for line, tag in enumerate(("el", "de", "de"), 1)]
    for line, tag in enumerate(indexes.LANGUAGES * 3, 1):
        found += [("site/rows.csv", line, tag, {"group": line // 4} if line < 7 else {})] * 2  # two passages a row
    vectors = made(len(found), seed=3).vectors
    # Translations are near each other, as an encoder puts them.
    names = [path_without_language(file) for file, *_ in found]
    means = dict(zip(dict.fromkeys(names), made(len(names), seed=4).vectors, strict=False))
    vectors = vectors + np.array([means[name] for name in names])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    passages = [
        Passage(f"text {i}", file, line, tag, {**own, "price": i % 4}) for i, (file, line, tag, own) in enumerate(found)
    ]
    content = Made(vectors, passages, passage_keys(passages))
    with writing(tmp_path_factory.mktemp("site") / "index", indexes.kind()) as writer:
        writer.upsert(content.vectors, content.passages, content.keys)
        writer.finish(content.files(), SearchPlan(sharpness=9.0))
    return LocalStore.open(writer.folder)


@pytest.fixture(scope="module", params=[name for name in STORES if name != "memory"])
def site_copy(request, site, tmp_path_factory):
    return copy_index(site, request, tmp_path_factory.mktemp("site"), "site")


def pages_in(store, table):
    """Return each page by its texts: its language, and the pages of its group; and the score of each text."""
    texts = [passage.text for passage, _ in store.passages(table.rows)]
    pages = [tuple(own) for own in np.split(np.array(texts, object), table.starts[1:])]
    groups = {
        number: {page for page, own in zip(pages, table.groups, strict=True) if own == number}
        for number in table.groups
    }
    tagged = zip(pages, table.languages, table.groups, strict=True)
    return {page: (tag, groups[group]) for page, tag, group in tagged}, dict(zip(texts, table.scores, strict=True))


@pytest.mark.parametrize(
    ("asked", "pages", "groups"),
    [
        # Pages: 3 of each name, 3 rooms, 1 of two languages, 9 rows. Rows 1 to 3 are a group, 4 to 6 another.
        ({}, 3 * 4 + 3 + 1 + 9, 4 + 3 + 1 + 5),
        ({"languages": ["de"]}, 4 + 2 + 1 + 3, 4 + 2 + 1 + 3),
        ({"languages": ["el", "tr"], "where": ["price!=1"]}, None, None),
        ({"where": ["group=1"]}, 3, 1),
    ],
)
def test_it_has_all_passages_of_pages_and_their_translations(site, site_copy, asked, pages, groups):
    asked = {**asked, "where": parse_conditions(asked.get("where", []))}
    for query in queries(3):
        tables = []
        for store in (site, site_copy):
            inside = [asked.get("languages", [])]
            ((rows, _),) = store.search(query[None], 99, inside, asked["where"])
            # What they are ranked by counts for nothing, as that of words in a hybrid search.
            tables.append(store.score_pages(query, (rows[0], np.zeros(rows.shape[1], np.float32)), Scope(**asked)))
            assert pages in (None, len(tables[-1].starts))
            assert groups in (None, len({*tables[-1].groups.tolist()}))
        (exact, expected), (found, scores) = map(pages_in, (site, site_copy), tables)
        assert found == exact
        assert scores == pytest.approx(expected, abs=NEAR)


def test_one_passage_brings_its_page_and_the_translations_alone(site, site_copy):
    """A third of the passages of `doors` is asked for; of a row, a page apart and no passage nothing else comes."""
    numbers = {passage.text: passage for passage, _ in site.passages(range(len(site)))}
    for file, line, sizes in (
        ("site/el/doors.md", 2, [3, 4, 5]), ("site/rows.csv", 5, [2, 2, 2]), ("site/rows.csv", 8, [2]),
        ("site/rooms-de.md", 1, [1]), ("site/rooms.de.md", 1, [1]), ("none", 1, []),
    ):  # fmt: skip
        texts = {text for text, each in numbers.items() if (each.file, each.line) == (file, line)}
        ((rows, scores),) = site_copy.search(queries(1), len(site))
        own = [passage.text in texts for passage, _ in site_copy.passages(rows[0])]
        table = site_copy.score_pages(queries(1)[0], (rows[0][own], scores[0][own]))
        assert sorted(np.diff(table.starts, append=len(table.rows)).tolist()) == sizes
        assert len({*table.groups.tolist()}) == min(len(sizes), 1)


class Reads(Given):
    """An encoder that also cuts queries into words."""

    special_ids = ()

    @property
    def reader(self):
        return self

    def tokenise(self, texts, longest):
        return {"input_ids": words(texts)}


@pytest.mark.parametrize("by", ["group", "page", "passage"])
@pytest.mark.parametrize("more", [{}, {"balance": True}, {"hybrid": True}, {"languages": ["de", "tr"]}])
def test_a_searcher_finds_the_same_pages_and_groups(site, site_copy, by, more):
    if "hybrid" in more:
        pytest.importorskip("bm25s")
    asked, found = queries(3), []
    for store in (site, site_copy):
        for own in Searcher(store, Reads(asked)).search(["0", "1", "2"], top_k=6, by=by, **more):
            found.append([(hit.passage, hit.translations, set(hit.languages)) for hit in own])
            found.append([hit.score for hit in own])
    half = len(found) // 2
    assert found[:half:2] == found[half::2]
    for expected, scores in zip(found[1:half:2], found[half + 1 :: 2], strict=True):
        assert scores == pytest.approx(expected, abs=2 * NEAR)  # a page and the mean of its group
    assert any(translations for own in found[::2] for _, translations, _ in own) == (by == "group")


@pytest.fixture(params=[name for name in STORES if name != "memory"])
def labelled_copy(request, site, tmp_path):
    """The site with labelled queries about its worst page for the query 0, and its copy in each store."""
    index, asked = LocalStore.open(site.folder), queries(3)
    (rows, _) = index.search(asked[:1], len(index))[0]
    worst = index.passages(rows[0][-1:])[0][0]
    labelled = LabelledQueries.of(asked, [[0], [1], [1]], index.row_keys()[rows[0][[-1, 0]]])
    labelled = replace(labelled, mean=0.0, spread=0.05)
    index.plan = replace(index.plan, adapter=Adapter("clicks", np.eye(indexes.DIMENSION, dtype=np.float32), labelled))
    return index, copy_index(index, request, tmp_path, "labelled"), worst


def test_a_labelled_query_finds_its_page_in_every_store_and_an_unlike_one_changes_nothing(site, labelled_copy):
    index, copy, worst = labelled_copy
    asked = np.concatenate([queries(1), -queries(1)])
    for store in (index, copy):
        found, unlike = Searcher(store, Given(asked)).search(["0", "1"], top_k=5, by="page")
        assert page_of(found[0].passage) == page_of(worst)
        assert not store.plan.recall(asked)[1].gain
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(store, "plan", replace(store.plan, adapter=None))
            before, same = Searcher(store, Given(asked)).search(["0", "1"], top_k=5, by="page")
        assert page_of(before[0].passage) != page_of(worst)
        assert [(hit.passage, hit.score) for hit in unlike] == [(hit.passage, hit.score) for hit in same]
        assert Searcher(store, Given(asked)).search(["0"], top_k=1, by="page", languages=["de"])


def test_a_store_without_pages_ranks_them_by_their_best_passages(site, tmp_path):
    """The score of a page alone in its group is the score of its best passage: half the page, half the mean."""
    with pytest.MonkeyPatch.context() as patch:
        plug_in, address = memory(tmp_path, patch, None, "site")
    plug_in.copy(site, address, words, lambda done, total: None)
    store, query = plug_in.open(address), queries(1)
    ((rows, scores),) = site.search(query, len(site))
    best = {}
    for (passage, _), score in zip(site.passages(rows[0]), scores[0].tolist(), strict=True):
        best.setdefault(page_of(passage), score)
    (hits,) = Searcher(store, Given(query)).search(["0"], top_k=len(best), by="page")
    assert {page_of(hit.passage) for hit in hits} == best.keys()
    alone = [hit for hit in hits if hit.passage.file in ("site/mixed.md", "site/rooms.de.md", "site/rooms-de.md")]
    assert [hit.score for hit in alone] == pytest.approx([best[page_of(hit.passage)] for hit in alone], abs=NEAR)
    assert len(alone) == 3


@pytest.mark.parametrize(
    ("plan", "same"),
    [
        (SearchPlan(PROJECTION, sharpness=3.0), True),
        (SearchPlan(PROJECTION, learned=Learned(1, np.ones(2))), True),
        (SearchPlan(PROJECTION, translations=np.eye(2, dtype=np.float32)), True),
        (SearchPlan(replace(PROJECTION, centre=np.ones(2))), False),
        (SearchPlan(replace(PROJECTION, directions=np.eye(2)[1:])), False),
        (SearchPlan(), False),
    ],
)
def test_vectors_are_sent_again_where_the_projection_changes_alone(plan, same):
    assert (vectors_mark(SearchPlan(PROJECTION)) == vectors_mark(plan)) == same


def test_a_passage_of_two_pages_is_in_the_first_one_in_a_copy(tmp_path, request):
    """`same.md` and `twin.md` share their first passage; the folder has it in both."""
    passages = [
        Passage(text, f"{name}.md", line, "de")
        for name in ("same", "twin")
        for line, text in enumerate(("shared", f"own {name}"), 1)
    ]
    content = Made(made(4).vectors, passages, passage_keys(passages))
    index = LocalStore.open(write_index(tmp_path / "index", content))
    plug_in, address = postgresql(tmp_path, None, request, "twins")
    plug_in.copy(index, address, words, lambda done, total: None)
    pages = []
    for store in (index, plug_in.open(address)):
        ((rows, scores),) = store.search(queries(1))
        pages.append({*pages_in(store, store.score_pages(queries(1)[0], (rows[0], scores[0])))[0]})
    assert pages == [
        {("shared", "own same"), ("shared", "own twin")},
        {("shared", "own same"), ("own twin",)},
    ]


# Addresses.


def test_an_address_is_told_from_a_folder_and_an_unknown_one_names_the_nearest():
    assert [is_address(text) for text in ("help.index", "a/b", "postgresql:h/db/t", "other://host")] == [
        False, False, True, True,
    ]  # fmt: skip
    with pytest.raises(ConfigError, match=r"unknown store 'postgresq'. Did you mean 'postgresql'"):
        open_store("postgresq://localhost/shop/help")
    with pytest.raises(ConfigError, match=r"^unknown store 'https'\. Known: postgres"):
        open_store("https://help.example.org/")


def test_a_store_of_your_own_may_have_the_name_of_a_former_one(monkeypatch):
    own = SimpleNamespace(STORE=object())
    monkeypatch.setattr(registry, "names", lambda kind: ["postgresql", "qdrant"])
    monkeypatch.setattr(registry, "load", lambda kind, name: own)
    assert database("qdrant://localhost/help") is own.STORE
