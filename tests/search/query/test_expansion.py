"""Document expansion in an index: passages have second vectors, computed once and kept."""

import numpy as np
import pytest

from helpers.indexes import LANGUAGES, Made, found_by, key_of, made, queries, write_index
from metasearch.config.languages import UNKNOWN
from metasearch.encoders import pool_scores
from metasearch.encoders.pool_scores import expanded
from metasearch.errors import ConfigError
from metasearch.search.documents.passage import Passage
from metasearch.search.index import mapped_vectors
from metasearch.search.index.exact_search import to_int8
from metasearch.search.index.local import LocalStore


def search(folder, content, asked, top=60, languages=(), **keys):
    return found_by(LocalStore.open(write_index(folder, content, **keys)).expand(), asked, top, languages)


def in_languages(content, tags):
    passages = [Passage(each.text, each.file, each.line, tag) for each, tag in zip(content.passages, tags, strict=True)]
    return Made(content.vectors, passages, np.array([key_of(passage) for passage in passages]))


def by_hand(content, asked, known=LANGUAGES):
    """Return the scores of queries with the vectors that expansion gives, rounded as those of an index, `(q, n)`."""
    codes, steps = to_int8(content.vectors)
    vectors = codes * steps[:, None]
    tags = [passage.language for passage in content.passages]
    there = [i for i, tag in enumerate(tags) if tag in known]
    vectors[there] = expanded(vectors[there], np.array([known.index(tags[i]) for i in there]))
    codes, steps = to_int8(vectors)
    return asked @ (codes * steps[:, None]).T


@pytest.mark.parametrize("portions", [1, 3])
def test_scores_are_those_of_the_moved_vectors(tmp_path, portions):
    content, asked = made(60), queries()
    found = search(tmp_path / "index", content, asked, portions=portions)
    for ranking, wanted in zip(found, by_hand(content, asked), strict=True):
        scores = dict(ranking)
        ours = [scores[passage.text] for passage in content.passages]
        np.testing.assert_allclose(ours, wanted, atol=3e-4)  # queries are rounded, too
        assert [score for _, score in ranking] == sorted(ours, reverse=True)


def test_a_passage_that_is_found_in_one_language_was_moved_by_those_in_all(tmp_path):
    content, asked = made(60), queries()
    found = search(tmp_path / "index", content, asked, 5, ["el"])
    for ranking, row in zip(found, by_hand(content, asked), strict=True):
        own = [i for i in np.argsort(-row, kind="stable") if content.passages[i].language == "el"][:5]
        assert [text for text, _ in ranking] == [content.passages[i].text for i in own]


def test_it_is_computed_once_for_the_same_passages(tmp_path, monkeypatch):
    folder, calls, make = write_index(tmp_path / "index", made(30)), [], pool_scores.expanded
    monkeypatch.setattr(pool_scores, "expanded", lambda *given: calls.append(1) or make(*given))
    first, second = (found_by(LocalStore.open(folder).expand(), queries(), 30) for _ in range(2))
    assert first == second
    assert len(calls) == 1
    for path in (folder / "expansion").glob("*/*.safetensors"):
        path.write_bytes(path.read_bytes()[:-1] + b"x")  # damaged: computed again
    LocalStore.open(folder).expand()
    assert len(calls) == 2


@pytest.mark.parametrize(
    ("tag", "message"),
    [
        ("de", "expansion needs passages in several languages; here all are in de"),
        (UNKNOWN, "expansion needs passages in several languages; here none has a known language"),
    ],
)
def test_an_index_without_two_languages_is_refused(tmp_path, tag, message):
    content = in_languages(made(9), [tag] * 9)
    with pytest.raises(ConfigError, match=message):
        search(tmp_path / "index", content, queries())


def test_an_index_that_is_too_large_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(mapped_vectors, "MOST", 8)
    with pytest.raises(ConfigError, match="all passages with each other, at most 8; the index has 9"):
        search(tmp_path / "index", made(9), queries())
