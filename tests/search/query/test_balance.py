"""A search whose scores are balanced between languages, in every kind of index."""

import numpy as np
import pytest

from helpers.indexes import Given, found_by, made, queries, write_index
from metasearch.encoders.pool_scores import balance
from metasearch.search.index.exact_search import to_int8
from metasearch.search.index.local import LocalStore
from metasearch.search.query.searcher import Searcher


def searcher(folder, content, asked, **keys):
    """Return a searcher of content whose queries `0`, `1`, … have the given vectors."""
    return Searcher(LocalStore.open(write_index(folder, content, **keys)), Given(asked))


def balanced(scores, tags):
    own = np.float32(scores).copy()
    balance(own, [np.array([i for i, tag in enumerate(tags) if tag == one]) for one in dict.fromkeys(tags)])
    return own


@pytest.mark.parametrize("keys", [{}, {"portions": 3}])
@pytest.mark.parametrize("expand", [False, True])
def test_hits_are_those_of_the_scores_of_all_passages_balanced(tmp_path, keys, expand):
    content, asked = made(60), queries()
    found = searcher(tmp_path / "index", content, asked, **keys)
    codes, steps = to_int8(content.vectors)
    tags = [passage.language for passage in content.passages]
    texts = [str(i) for i in range(len(asked))]
    plain = np.float32(asked @ (codes * steps[:, None]).T)
    if expand:
        where = {passage.text: i for i, passage in enumerate(content.passages)}
        for query, ranking in enumerate(found_by(found.store.expand(), asked, 60)):
            plain[query, [where[text] for text, _ in ranking]] = [score for _, score in ranking]
    for hits, wanted in zip(
        found.search(texts, top_k=9, expand=expand, balance=True, by="passage"), balanced(plain, tags), strict=True
    ):
        assert [hit.score for hit in hits] == pytest.approx(np.sort(wanted)[::-1][:9], abs=4e-4)  # queries are rounded
        assert [hit.passage.text for hit in hits] == [content.passages[i].text for i in np.argsort(-wanted)[:9]]


def test_only_the_languages_that_are_searched_are_balanced(tmp_path):
    content, asked = made(60), queries()
    found = searcher(tmp_path / "index", content, asked)
    both = found.search(["0"], top_k=60, languages=["de", "tr"], balance=True)[0]
    assert {hit.passage.language for hit in both} == {"de", "tr"}
    plain = {hit.passage.text: hit.score for hit in found.search(["0"], top_k=60)[0]}
    assert [hit.score for hit in both] != [plain[hit.passage.text] for hit in both]
    whole = [hit for hit in found.search(["0"], top_k=60, balance=True)[0] if hit.passage.language != "el"]
    assert [(hit.passage.text, hit.score) for hit in both] == [(hit.passage.text, hit.score) for hit in whole]
