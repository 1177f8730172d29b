"""Document expansion in an index: scores are those of moved vectors, computed once and kept."""

import numpy as np
import pytest

from helpers.indexes import LANGUAGES, Made, key_of, made, queries, write_index
from metasearch.config.languages import UNKNOWN
from metasearch.data.documents.passage import Passage
from metasearch.encoders.rerank import expanded
from metasearch.errors import ConfigError
from metasearch.retrieval.index.index import Index
from metasearch.retrieval.index.quantise import to_int8
from metasearch.retrieval.search import expansion
from metasearch.retrieval.search.expansion import Expansion


def opened(folder, content, **keys):
    return Index.open(write_index(folder, content, **keys))


def in_languages(content, tags):
    passages = [Passage(each.text, each.file, each.line, tag) for each, tag in zip(content.passages, tags, strict=True)]
    return Made(content.vectors, passages, np.array([key_of(passage) for passage in passages]))


def by_hand(content, asked, known=LANGUAGES):
    """Return the scores of queries with the vectors that expansion gives, `(q, n)`."""
    codes, steps = to_int8(content.vectors)
    vectors = codes * steps[:, None]
    tags = [passage.language for passage in content.passages]
    there = [i for i, tag in enumerate(tags) if tag in known]
    vectors[there] = expanded(vectors[there], np.array([known.index(tags[i]) for i in there]))
    return asked @ vectors.T


@pytest.mark.parametrize("keys", [{}, {"rows": 7, "portions": 3}])
def test_scores_are_those_of_the_vectors_that_are_moved(tmp_path, keys):
    content, asked = made(60), queries()
    index = opened(tmp_path / "index", content, **keys)
    for (rows, scores), wanted in zip(Expansion.of(index).search(asked, 60), by_hand(content, asked), strict=True):
        texts = [hit.passage.text for hit in index.hits(rows, scores)]
        assert texts == [content.passages[i].text for i in np.argsort(-wanted, kind="stable")]
        np.testing.assert_allclose(scores, np.sort(wanted)[::-1], atol=3e-4)  # queries are rounded, too


def test_a_passage_that_is_found_in_one_language_was_moved_by_those_in_all(tmp_path):
    content, asked = made(60), queries()
    index = opened(tmp_path / "index", content)
    wanted = by_hand(content, asked)
    for (rows, scores), row in zip(Expansion.of(index).search(asked, 5, ["el"]), wanted, strict=True):
        own = [i for i in np.argsort(-row, kind="stable") if content.passages[i].language == "el"][:5]
        assert [hit.passage.text for hit in index.hits(rows, scores)] == [content.passages[i].text for i in own]


def test_it_is_computed_once_for_the_same_passages(tmp_path, monkeypatch):
    index, calls, make = opened(tmp_path / "index", made(30)), [], expansion._made
    monkeypatch.setattr(expansion, "_made", lambda *given: calls.append(1) or make(*given))
    first, again = (Expansion.of(index).search(queries(), 30) for _ in range(2))
    assert len(calls) == 1
    for (rows, scores), (others, more) in zip(first, again, strict=True):
        assert (rows == others).all()
        assert (scores == more).all()
    for path in (index.folder / "expansion").glob("*.safetensors"):
        path.write_bytes(path.read_bytes()[:-1] + b"x")  # damaged: computed again
    Expansion.of(index)
    assert len(calls) == 2


def test_passages_of_unknown_languages_stay_and_move_none(tmp_path, caplog):
    content = made(60)
    tags = [UNKNOWN if i % 4 == 0 else passage.language for i, passage in enumerate(content.passages)]
    content, asked = in_languages(content, tags), queries()
    index = opened(tmp_path / "index", content)
    (_, scores), *_ = Expansion.of(index).search(asked, 60)
    np.testing.assert_allclose(scores, np.sort(by_hand(content, asked)[0])[::-1], atol=3e-4)
    assert "not expanded, as their language is not known: 15 passages" in caplog.text


@pytest.mark.parametrize(
    ("tag", "message"),
    [
        ("de", "expansion looks for passages in other languages; here all are in de"),
        (UNKNOWN, "expansion looks for passages in other languages; here none has a known language"),
    ],
)
def test_an_index_without_two_languages_is_refused(tmp_path, tag, message):
    content = in_languages(made(9), [tag] * 9)
    with pytest.raises(ConfigError, match=message):
        Expansion.of(opened(tmp_path / "index", content))


def test_an_index_that_is_too_large_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(expansion, "MOST", 8)
    with pytest.raises(ConfigError, match="all passages with each other, 8 at most; here are 9"):
        Expansion.of(opened(tmp_path / "index", made(9)))
