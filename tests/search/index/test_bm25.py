"""BM25 over the texts of an index, and what is kept of it."""

import errno
import math
import os
import sys

import numpy as np
import pytest

from helpers.indexes import Made, key_of, made, write_index
from metasearch.errors import ConfigError
from metasearch.search.documents.passage import Passage
from metasearch.search.index import bm25
from metasearch.search.index.base import Scope
from metasearch.search.index.bm25 import Bm25
from metasearch.search.index.local import LocalStore

TEXTS = ("red fox red", "blue fox", "green bird in a tree", "red", "grün bird")
LANGUAGES = ("en", "en", "en", "en", "de")
NUMBERS = {word: i for i, word in enumerate(sorted({word for text in TEXTS for word in text.split()} | {"cow"}), 100)}


def words(texts):
    return [[NUMBERS[word] for word in text.split()] for text in texts]


@pytest.fixture
def index(tmp_path):
    passages = [Passage(text, "a.txt", i + 1, tag) for i, (text, tag) in enumerate(zip(TEXTS, LANGUAGES, strict=True))]
    content = Made(made(5).vectors, passages, np.array([key_of(passage) for passage in passages]))
    return LocalStore.open(write_index(tmp_path / "index", content))


def weight(word, text):
    """Return what a word of a query adds to the score of a text, as Lucene has it, with k1 = 1.5 and b = 0.75."""
    texts = [each.split() for each in TEXTS]
    having = sum(word in each for each in texts)
    mean = sum(map(len, texts)) / len(texts)
    count, length = text.split().count(word), len(text.split())
    idf = math.log(1 + (len(texts) - having + 0.5) / (having + 0.5))
    return idf * count / (count + 1.5 * (1 - 0.75 + 0.75 * length / mean))


def bm25_of(index, name):
    texts = [[passage.text for passage, _ in index.passages(range(len(index)))]]
    return Bm25(index.folder, [index.contents, name], texts, words)


def everywhere(index):
    return index.rows_in([])


def test_scores_are_those_of_the_formula(index):
    ((rows, scores),) = bm25_of(index, "w").search(["red fox"], 10, everywhere(index))
    expected = [weight("red", text) + weight("fox", text) for text in TEXTS]
    assert rows.tolist() == sorted(np.flatnonzero(expected).tolist(), key=lambda row: -expected[row])
    np.testing.assert_allclose(scores, [expected[row] for row in rows], rtol=1e-5)


def test_a_missing_package_is_named_with_its_extra(index, monkeypatch):
    monkeypatch.setitem(sys.modules, "bm25s", None)
    with pytest.raises(ConfigError, match=r"--hybrid needs the package bm25s: pip install 'bm25s"):
        bm25_of(index, "w")


def test_what_has_no_word_of_the_query_is_no_hit(index):
    found = bm25_of(index, "w").search(["cow", "bird cow", ""], 10, everywhere(index))
    assert [rows.tolist() for rows, _ in found] == [[], [4, 2], []]


def test_languages_are_chosen_before_the_ranking(index):
    assert index.search_words(words, ["bird"], 1, Scope(["en"]))[0][0].tolist() == [2]
    with pytest.raises(ConfigError, match="no passage is in language 'fr'"):
        index.search_words(words, ["bird"], 1, Scope(["fr"]))


def test_other_words_or_texts_are_counted_anew(index, monkeypatch):
    bm25_of(index, "w")
    calls = []
    count = bm25._count
    monkeypatch.setattr(bm25, "_count", lambda *given: calls.append(1) or count(*given))
    bm25_of(index, "other")
    assert len(calls) == 1
    # What was kept of the first is gone: one set is kept.
    assert len(list((index.folder / "bm25").glob("*/"))) == 1
    bm25_of(index, "w")
    assert len(calls) == 2


def test_what_is_damaged_is_counted_anew(index):
    first = bm25_of(index, "w").search(["red fox"], 10, everywhere(index))[0]
    for path in list((index.folder / "bm25").glob("*/*")):
        content = path.read_bytes()
        for damage in (content[:-1], b"", content[: len(content) // 2] + b"x" + content[len(content) // 2 + 1 :]):
            path.write_bytes(damage)
            again = bm25_of(index, "w").search(["red fox"], 10, everywhere(index))[0]
            assert (again[0] == first[0]).all()
            assert (again[1] == first[1]).all()


def test_words_that_cannot_be_kept_are_counted_once_and_used(index, monkeypatch, caplog):
    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    calls, count = [], bm25._count
    monkeypatch.setattr(bm25, "_count", lambda *given: calls.append(1) or count(*given))
    with monkeypatch.context() as patch:
        patch.setattr("metasearch.io.os.fsync", full)
        first, _ = bm25_of(index, "w").search(["red fox"], 10, everywhere(index))[0]
    assert len(calls) == 1
    assert "No space left on device" in caplog.text
    again, _ = bm25_of(index, "w").search(["red fox"], 10, everywhere(index))[0]
    assert (again.tolist(), len(calls)) == (first.tolist(), 2)
