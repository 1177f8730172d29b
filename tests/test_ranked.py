"""What is kept of rankings, against a ranking that is sorted by hand, ties and all."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from metasearch.data.records import Candidate, Question, RetrievalData
from metasearch.evaluation.evaluate import evaluate
from metasearch.evaluation.ranked import TOP, Search, joined
from metasearch.metrics import Measure
from metasearch.metrics.average_precision import average_precision

CODES = ("ar", "de", "el")


def candidates_of(languages):
    return [Candidate(f"c{i}", language, f"long text {i}", "article", (), "") for i, language in enumerate(languages)]


def questions_of(count, language="el"):
    return tuple(Question(f"q{i}", language, f"question {i}", "article") for i in range(count))


@st.composite
def searches(draw):
    """Draw a pool and one or two searches in it, of scores that are often equal."""
    count = draw(st.integers(1, 30))
    pool = candidates_of(draw(st.lists(st.sampled_from(CODES), min_size=count, max_size=count)))
    found = []
    for language in draw(st.sampled_from([("el",), ("ar", "el")])):
        asked = draw(st.integers(1, 3))
        scores = draw(arrays(np.float32, (asked, count), elements=st.sampled_from([-1.0, 0.0, 0.25, 0.5])))
        some = st.lists(st.integers(0, count - 1), min_size=1, max_size=6, unique=True).map(sorted)
        found.append(Search(questions_of(asked, language), scores, [np.array(draw(some)) for _ in range(asked)]))
    return pool, found


def by_hand(row):
    """Return candidates by score, highest first; equal ones in their order."""
    return sorted(range(len(row)), key=lambda i: (-row[i], i))


@settings(max_examples=40)
@given(searches())
def test_ranks_what_ranks_above_and_the_top_are_those_of_a_ranking_sorted_by_hand(drawn):
    pool, found = drawn
    kept = joined(pool, found)
    assert kept.languages == tuple(sorted({candidate.language for candidate in pool}))
    assert [q.language for q in kept.questions] == [q.language for search in found for q in search.questions]
    rows = [
        (row, set(rel.tolist())) for search in found for row, rel in zip(search.scores, search.relevant, strict=True)
    ]
    for i, (row, relevant) in enumerate(rows):
        order = by_hand(row)
        mine = slice(kept.offsets[i], kept.offsets[i + 1])
        assert kept.relevant[mine].tolist() == [c for c in order if c in relevant]
        assert kept.ranks[mine].tolist() == [order.index(c) + 1 for c in order if c in relevant]
        for rank, above in zip(kept.ranks[mine], kept.above[mine], strict=True):
            others = [pool[c].language for c in order[: rank - 1] if c not in relevant]
            assert above.tolist() == [others.count(language) for language in kept.languages]
        assert kept.top[i].tolist() == order[:TOP]
        assert kept.scores[i].tolist() == [row[c] for c in order[:TOP]]


@settings(max_examples=40)
@given(searches())
def test_ranks_of_a_search_are_those_that_are_kept(drawn):
    pool, found = drawn
    kept = joined(pool, found)
    flat = np.concatenate([ranks for search in found for ranks in search.ranks])
    assert kept.ranks.tolist() == flat.tolist()


def test_the_ranks_of_what_is_relevant_count_what_ranks_above_in_each_language():
    # By score: c1 (de), c0 (ar, relevant), c3 (el), c4 (ar), c2 (de, relevant); c3 and c4 are equal.
    pool = candidates_of(["ar", "de", "de", "el", "ar"])
    scores = np.array([[0.8, 0.9, 0.1, 0.5, 0.5]], dtype=np.float32)
    kept = joined(pool, [Search(questions_of(1), scores, [np.array([0, 2])])])
    assert kept.relevant.tolist() == [0, 2]
    assert kept.ranks.tolist() == [2, 5]
    assert kept.above.tolist() == [[0, 1, 0], [1, 1, 1]]
    assert kept.top.tolist() == [[1, 0, 3, 4, 2]]


def test_a_report_shows_the_sentence_and_not_what_was_encoded_with_it():
    pool = [Candidate("a", "el", "sentence. And its paragraph", "x", (), "sentence."), Candidate("b", "el", "b", "x")]
    kept = joined(pool, [Search(questions_of(1), np.ones((1, 2), dtype=np.float32), [np.array([0])])])
    assert [text.text for text in kept.candidates] == ["sentence.", "b"]


class Given:
    """An encoder of which the vectors are given; of every text another one, rounded so that scores are often equal."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)

    def encode(self, texts, role):
        return self.random.integers(-1, 2, (len(texts), 3)).astype(np.float32)


@settings(max_examples=40)
@given(st.integers(0, 10**6))
def test_average_precision_of_the_ranks_that_are_kept_is_the_value_of_the_question(seed):
    ids = [f"q{i}" for i in range(4)]
    questions = [Question(i, language, f"{i} {language}", i) for language in ("el", "ar") for i in ids]
    pool = [Candidate(f"{i} {n}", lang, "text", i, (i,) if n else ()) for i in ids for lang in CODES for n in (0, 1, 2)]
    measures = [Measure.parse("map@20", "retrieval"), Measure.parse("map", "retrieval")]
    found = evaluate(Given(seed), RetrievalData(tuple(questions), tuple(pool)), measures, ("multilingual", "bilingual"))
    kept = found.kept
    start = 0
    for language in ("ar", "el"):
        cell = ("multilingual", language, "all")
        names = [(q.id, q.language) for q in kept.ranking.questions[start : start + len(ids)]]
        assert names == [(i, language) for i in kept.units[cell]]
        for measure in measures:
            values = [
                average_precision(kept.ranking.ranks[kept.ranking.offsets[i] : kept.ranking.offsets[i + 1]], measure.k)
                for i in range(start, start + len(ids))
            ]
            assert kept.columns[str(measure), *cell] == pytest.approx(values, abs=1e-15)
        start += len(ids)
    for score in found.scores:
        values = kept.columns[score.measure, score.pool, score.language, score.candidates]
        assert (score.value, score.count) == (pytest.approx(sum(values) / len(values)), len(values))
    assert set(kept.units) == {(s.pool, s.language, s.candidates) for s in found.scores}


def test_without_the_multilingual_pool_no_ranking_is_kept():
    data = RetrievalData(questions_of(1), (Candidate("a", "el", "a", "article", ("q0",)),))
    found = evaluate(Given(0), data, [Measure.parse("map", "retrieval")], ("monolingual",))
    assert found.kept.ranking is None
    assert found.kept.columns["map", "monolingual", "el", "el"].tolist() == [1.0]
