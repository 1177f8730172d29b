"""What is kept of rankings, against a ranking that is sorted by hand, ties and all."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from helpers.rankings import ranking_by, ranks_of, search_by
from metasearch.config.measure import Measure
from metasearch.data.records import Candidate, Question, RetrievalData
from metasearch.errors import DataError, NonFiniteError
from metasearch.evaluation import evaluate as searching
from metasearch.evaluation.evaluate import evaluate, search
from metasearch.evaluation.metrics.retrieval import average_precision
from metasearch.evaluation.scores import Judgements
from metasearch.runs.per_query_results import DEPTH

CODES = ("ar", "de", "el")


def candidates_of(languages):
    return [Candidate(f"c{i}", language, f"long text {i}", "article", (), "") for i, language in enumerate(languages)]


def questions_of(count, language="el"):
    return [Question(f"q{i}", language, f"question {i}", "article") for i in range(count)]


@st.composite
def searches(draw):
    """Draw questions, a pool, scores that are often equal and what is relevant, as `search_by` takes them."""
    count = draw(st.integers(1, 30))
    pool = candidates_of(draw(st.lists(st.sampled_from(CODES), min_size=count, max_size=count)))
    questions = [q for language in CODES[:2] for q in questions_of(draw(st.integers(0, 3)), language)]
    questions = questions or questions_of(1)
    some = st.lists(st.integers(0, count - 1), min_size=1, max_size=6, unique=True).map(sorted)
    scores = draw(arrays(np.float32, (len(questions), count), elements=st.sampled_from([-1.0, -0.0, 0.0, 0.25, 0.5])))
    return scores, questions, pool, [draw(some) for _ in questions]


def by_hand(row):
    """Return candidates by score, highest first; equal ones in their order."""
    return sorted(range(len(row)), key=lambda i: (-row[i], i))


@pytest.fixture(params=["at once", "in blocks of a row"], autouse=True)
def way(request, monkeypatch):
    """How a search goes about it, which changes nothing in what it finds."""
    if request.param == "in blocks of a row":
        monkeypatch.setattr(searching, "_CELLS", 1)


@given(searches())
def test_ranks_and_the_top_are_those_of_a_ranking_sorted_by_hand(drawn):
    scores, questions, pool, wanted = drawn
    kept = ranking_by(*drawn)
    assert kept.languages == tuple(sorted({candidate.language for candidate in pool}))
    assert [(q.id, q.language) for q in kept.questions] == [(q.id, q.language) for q in questions]
    for i, (row, relevant) in enumerate(zip(scores, wanted, strict=True)):
        order = by_hand(row)
        mine = slice(kept.offsets[i], kept.offsets[i + 1])
        assert kept.relevant[mine].tolist() == [c for c in order if c in relevant]
        assert kept.ranks[mine].tolist() == [order.index(c) + 1 for c in order if c in relevant]
        assert kept.top[i].tolist() == order[:DEPTH]
        assert kept.scores[i].tolist() == [row[c] for c in order[:DEPTH]]


@given(searches(), st.data())
def test_ranks_in_the_pool_of_a_language_are_those_of_a_ranking_of_it_sorted_by_hand(drawn, data):
    scores, questions, pool, wanted = drawn
    start = data.draw(st.integers(0, len(questions) - 1))
    end = data.draw(st.integers(start + 1, len(questions)))
    for number, language in enumerate([*sorted({c.language for c in pool}), None]):
        inside = [i for i, c in enumerate(pool) if language in (c.language, None)]
        expected = []
        for row, relevant in zip(scores[start:end], wanted[start:end], strict=True):
            order = by_hand(row[inside])
            expected.append(sorted(order.index(inside.index(c)) + 1 for c in relevant if c in inside))
        asked = slice(start, end), None if language is None else number
        if all(expected):
            found = search_by(*drawn).ranks(*asked)
            assert [found.ranks[a:b].tolist() for a, b in pairwise(found.offsets)] == expected
        else:
            with pytest.raises(DataError, match=f"question {expected.index([])} has no relevant candidate"):
                search_by(*drawn).ranks(*asked)


def test_a_report_shows_the_sentence_and_not_what_was_encoded_with_it():
    pool = [Candidate("a", "el", "sentence. And its paragraph", "x", (), "sentence."), Candidate("b", "el", "b", "x")]
    kept = ranking_by(np.ones((1, 2), dtype=np.float32), questions_of(1), pool, [[0]])
    assert [text.text for text in kept.candidates] == ["sentence.", "b"]


@pytest.mark.parametrize("size", [2, 17, 300])
def test_equal_vectors_rank_by_index_however_the_product_rounds(size):
    random = np.random.default_rng(size)
    vectors = random.standard_normal((size, 50)).astype(np.float32)[random.integers(0, 2, size) * (size - 1)]
    asked = random.standard_normal((5, 50)).astype(np.float32)
    found = search(questions_of(5), asked, vectors, Judgements.of([[0]] * 5), np.zeros(size, np.int64))
    for top in found.top:
        same = [i for i in range(size) if (vectors[i] == vectors[top[0]]).all()]
        assert top[: len(same)].tolist() == same[:DEPTH]


def test_a_score_that_overflows_names_its_question():
    pool = candidates_of(["el", "el"])
    scores = np.array([[1, 2], [1, np.inf], [3, np.nan]], dtype=np.float32)
    with np.errstate(invalid="ignore"), pytest.raises(NonFiniteError, match=r"question 'q1' \(el\) are not finite"):
        search_by(scores, questions_of(3), pool, [[0]] * 3)


class Given:
    """An encoder of which the vectors are given; of every text another one, rounded so that scores are often equal."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)

    def encode(self, texts, role):
        return self.random.integers(-1, 2, (len(texts), 3)).astype(np.float32)


@given(st.integers(0, 10**6))
def test_average_precision_of_the_ranks_that_are_kept_is_the_value_of_the_question(seed):
    ids = [f"q{i}" for i in range(4)]
    questions = [Question(i, language, f"{i} {language}", i) for language in ("el", "ar") for i in ids]
    pool = [Candidate(f"{i} {n}", lang, "text", i, (i,) if n else ()) for i in ids for lang in CODES for n in (0, 1, 2)]
    measures = [Measure.parse("map@20", "retrieval"), Measure.parse("map", "retrieval")]
    found = evaluate(Given(seed), RetrievalData(tuple(questions), tuple(pool)), measures, ("multilingual", "bilingual"))
    kept = found.questions
    start = 0
    for language in ("ar", "el"):
        cell = ("multilingual", language, "all")
        names = [(q.id, q.language) for q in kept.ranking.questions[start : start + len(ids)]]
        assert names == [(i, language) for i in kept.units[cell]]
        for measure in measures:
            values = [
                average_precision(ranks_of(kept.ranking.ranks[slice(*kept.ranking.offsets[i : i + 2])]), measure.k)[0]
                for i in range(start, start + len(ids))
            ]
            assert kept.columns[str(measure), *cell] == pytest.approx(values, abs=1e-15)
        start += len(ids)
    for score in found.scores:
        values = kept.columns[score.measure, score.pool, score.language, score.candidates]
        assert (score.value, score.count) == (pytest.approx(sum(values) / len(values)), len(values))
    assert set(kept.units) == {(s.pool, s.language, s.candidates) for s in found.scores}
    assert kept.articles == {question.id: question.group for question in questions}


def test_without_the_multilingual_pool_no_ranking_is_kept():
    data = RetrievalData(tuple(questions_of(1)), (Candidate("a", "el", "a", "article", ("q0",)),))
    found = evaluate(Given(0), data, [Measure.parse("map", "retrieval")], ("monolingual",))
    assert found.questions.ranking is None
    assert found.questions.columns["map", "monolingual", "el", "el"].tolist() == [1.0]
