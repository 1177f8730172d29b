"""In queries of an index of pages in several languages, what distinguishes a page from its translations counts less."""

import logging
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from metasearch.encoders.maps import estimate
from metasearch.search.index.local import LocalStore
from metasearch.search.index.maps import around_mean, translation_map
from metasearch.search.indexes import index_documents, open_searcher
from metasearch.search.query.estimate import FIRST, LEAST_PAGES, own_passages
from tests.helpers import files
from tests.helpers.commands import metasearch

D = 6
RNG = np.random.default_rng(0)


def test_the_map_is_the_formula_written_out():
    """Two pages in three languages, one to three passages each: m = 6 differences, so that β = ½ · 6 / (6 + 6) = ¼."""
    groups = [[RNG.standard_normal((n, D)).astype(np.float32) for n in (1, 2, 3)] for _ in range(2)]
    moment = np.zeros((D, D))
    for pages in groups:
        means = [sum(page.astype(np.float64)) / len(page) for page in pages]
        moment += sum(np.outer(mean - sum(means) / 3, mean - sum(means) / 3) for mean in means)
    inverse = np.eye(D) + 0.25 * moment * D / np.trace(moment)
    np.testing.assert_allclose(translation_map(groups) @ inverse, np.eye(D), rtol=0, atol=1e-5)


@pytest.mark.parametrize("languages", [2, 3, 6, 7, 11])
def test_equal_texts_in_any_number_of_languages_have_no_direction(languages):
    """The float32 mean of equal vectors is off by 7e-9."""
    texts = RNG.standard_normal((125, 64)).astype(np.float32)
    same = {str(i): texts + np.float32(1e-8 * i) for i in range(languages)}
    assert estimate(same).directions.shape == (0, 64)


def test_untranslated_copies_count_neither_as_pages_nor_as_languages():
    pages = (RNG.standard_normal((2, D)).astype(np.float32) for _ in range(2))
    one, other = (page / np.linalg.norm(page, axis=1, keepdims=True) for page in pages)
    rounded = one + np.float32(1e-7)
    assert [each.tolist() for each in own_passages([one, other, rounded])] == [one.tolist(), other.tolist()]
    assert len(own_passages([one, rounded, one])) == 1


def test_a_page_differs_from_the_mean_of_its_translations():
    one, other = np.array([[1, 0], [3, 0]], np.float32), np.array([[0, 4]], np.float32)
    # Means (2, 0) and (0, 4), and their mean (1, 2).
    assert around_mean([one, other]).tolist() == [[1, -2], [-1, 2]]


def write(folder, numbers):
    for language in ("de", "en"):
        for i in numbers:
            more = f"## More\n\nPage {i * 104729} is about other things, in {language}, too.\n"
            text = f"# Number {i}\n\nPage {i * 7919} of the help in {language}.\n\n{more}"
            files.write(folder / language / f"{i}.md", text)
    return folder


def index(paths, folder, **asked):
    index_documents(paths, folder, "tiny", {"length": 64, **asked}, device="cpu")
    return LocalStore.open(folder)


@pytest.fixture(scope="module")
def help_pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    return write(folder / "help", range(LEAST_PAGES)), folder


@pytest.mark.parametrize("first", [FIRST, 1])
def test_queries_go_through_the_map_and_documents_do_not(help_pages, first, monkeypatch):
    pages, folder = help_pages
    monkeypatch.setattr("metasearch.search.query.estimate.FIRST", first)
    store = index([pages], folder / f"i{first}", length=24)
    assert "; translations of 20 pages; paths below" in metasearch("doctor", folder / f"i{first}").stdout
    rows = {}
    for i, (passage, _) in enumerate(store.passages(range(len(store)))):
        language, name = Path(passage.file).parts[-2:]
        rows.setdefault(name, {}).setdefault(language, []).append(i)
    assert {len(own) for page in rows.values() for own in page.values()} != {1}
    pairs = [[own[tag][:first] for tag in ("de", "en")] for own in rows.values()]
    # Projected from vectors in 8 bits, and compared with those that are projected and then stored in 8 bits.
    expected = translation_map([[store.quantised.take(page) for page in pair] for pair in pairs])
    np.testing.assert_allclose(store.plan.translations, expected, rtol=0, atol=0.03)
    searcher = open_searcher(folder / f"i{first}", "cpu")
    (plain,) = searcher.encode_queries(["number 3"])
    documents = searcher.encode_documents(["number 3"])
    searcher.store.plan = replace(searcher.store.plan, translations=None)
    mapped = store.plan.translations.astype(np.float64) @ searcher.encode_queries(["number 3"])[0]
    np.testing.assert_allclose(plain, mapped / np.linalg.norm(mapped), rtol=0, atol=1e-6)
    assert np.array_equal(searcher.encode_documents(["number 3"]), documents)


def test_texts_that_were_not_translated_do_not_count():
    """The first page has two passages of its own and one that its translation has, too; the second only this one."""
    shared, first, second = np.eye(3, dtype=np.float32)
    assert [each.tolist() for each in own_passages([np.stack([first, shared, second]), shared[None]])] == [
        [first.tolist(), second.tolist()]
    ]


def test_the_map_does_not_depend_on_the_order_of_documents(help_pages):
    pages, folder = help_pages
    first = index([pages], folder / "one")
    index([pages / "en"], folder / "other")
    second = index([pages / "en", pages / "de"], folder / "other")
    for name in ("translations", "translated", "directions"):
        assert np.array_equal(first.plan.record[name], second.plan.record[name])


def test_it_needs_enough_pages_and_is_estimated_again_with_twice_as_many(tmp_path, caplog):
    pages, folder = write(tmp_path / "help", range(LEAST_PAGES - 1)), tmp_path / "i"
    assert index([pages], tmp_path / "few").plan.translations is None
    caplog.set_level(logging.INFO)
    counts = []
    for end in (LEAST_PAGES, 2 * LEAST_PAGES - 1, 2 * LEAST_PAGES):
        counts.append(index([write(pages, range(end))], folder).plan.translated)
    assert counts == [LEAST_PAGES, LEAST_PAGES, 2 * LEAST_PAGES]
    assert caplog.text.count("counts less in queries; estimated from 20 pages") == 1
    assert caplog.text.count("counts less in queries; estimated again from 40 pages") == 1
    shutil.rmtree(pages / "en")
    index_documents([pages], folder, device="cpu", drop=True)
    assert LocalStore.open(folder).plan.translations is None
    assert "translations are not used any more: 0 pages have some, and 20 are needed" in caplog.text
    assert LocalStore.open(folder).plan.languages == ()  # and the projection with them
    assert index([pages], folder, neutral=False).plan.projection is None
