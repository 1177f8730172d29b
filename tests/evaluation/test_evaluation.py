"""Scores of an encoder in every pool and language (LAReQA, section 4; MAML-Align paper, section 5)."""

from contextlib import nullcontext
from dataclasses import replace
from math import acos

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.corpus import FakeEncoder, at_angle, retrieval
from metasearch.config.measure import RETRIEVAL_POOLS, Measure
from metasearch.data.records import ScoredPair, SimilarityData
from metasearch.errors import DataError, NonFiniteError
from metasearch.evaluation.evaluate import evaluate
from metasearch.evaluation.scores import unanswered

MAP, MAP1, MAP20 = Measure("map"), Measure("map", 1), Measure("map", 20)
PEARSON, SPEARMAN = Measure("pearson"), Measure("spearman")


def scoring(data, rows):
    """Make an encoder by which a question's score with candidate j is `rows[language, id][j]`."""
    one_hot = {c.text: np.eye(len(data.candidates))[j] for j, c in enumerate(data.candidates)}
    return FakeEncoder({q.text: rows[q.language, q.id] for q in data.questions} | one_hot)


def random_scoring(data, seed=0):
    rng = np.random.default_rng(seed)
    return scoring(data, {(q.language, q.id): rng.random(len(data.candidates)) for q in data.questions})


# Candidates: ar-s0 ar-s1 el-s0 el-s1.
TWO = retrieval(2, ("ar", "el"), fillers=0)
ROWS = {
    ("ar", "q0"): [0.9, 0.8, 0.2, 0.1],  # its answers rank 1, 3; within ar 1, within el 1
    ("ar", "q1"): [0.9, 0.8, 0.2, 0.1],  # its answers rank 2, 4; within ar 2, within el 2
    ("el", "q0"): [0.1, 0.4, 0.3, 0.2],  # its answers rank 2, 4; within ar 2, within el 1
    ("el", "q1"): [0.1, 0.4, 0.2, 0.3],  # its answers rank 1, 2; within ar 1, within el 1
}


def cells(evaluation):
    return {(s.pool, s.language, s.candidates): s.value for s in evaluation.scores}


def test_in_the_multilingual_pool_all_translations_of_the_answer_are_relevant():
    found = evaluate(scoring(TWO, ROWS), TWO, [MAP])
    assert cells(found) == {
        ("multilingual", "ar", "all"): pytest.approx(((1 / 1 + 2 / 3) / 2 + (1 / 2 + 2 / 4) / 2) / 2),
        ("multilingual", "el", "all"): pytest.approx(((1 / 2 + 2 / 4) / 2 + (1 / 1 + 2 / 2) / 2) / 2),
    }
    assert found.questions.columns["map", "multilingual", "el", "all"] == pytest.approx([(1 / 2 + 2 / 4) / 2, 1.0])


def test_in_a_pool_of_one_language_one_answer_is_relevant():
    assert cells(evaluate(scoring(TWO, ROWS), TWO, [MAP], ("monolingual", "bilingual"))) == {
        ("monolingual", "ar", "ar"): (1 / 1 + 1 / 2) / 2,
        ("bilingual", "ar", "el"): (1 / 1 + 1 / 2) / 2,
        ("bilingual", "el", "ar"): (1 / 2 + 1 / 1) / 2,
        ("monolingual", "el", "el"): (1 / 1 + 1 / 1) / 2,
    }


def test_a_measure_looks_only_as_deep_as_its_name_says():
    found = evaluate(scoring(TWO, ROWS), TWO, [MAP, MAP1, MAP20])
    assert found.questions.columns["map@1", "multilingual", "ar", "all"].tolist() == [1.0, 0.0]
    assert [s.measure for s in found.scores if s.language == "ar"] == ["map", "map@1", "map@20"]
    assert found.mean("map@20") == found.mean("map")  # four candidates are fewer than 20


def test_in_the_expanded_pool_a_translation_that_ranks_low_is_drawn_to_one_that_ranks_high():
    # a-0 and e-0 are translations: less their languages' means both point one way, so that half-way is (0.8, 0, 0).
    answers, others = {"ar": [0.8, 0, 0.6], "el": [0.8, 0, -0.6]}, {"ar": [0, 0.8, 0.6], "el": [0, 0.8, -0.6]}
    data = retrieval(2, ("ar", "el"), fillers=0)
    place = {"s0": answers, "s1": others}
    vectors = {c.text: np.array(place[c.id.split("-")[-1]][c.language]) for c in data.candidates}
    asked = {"q0": [0.5, 0.45, 0.74], "q1": [0.45, 0.5, 0.74]}  # nearer to their language than to what answers them
    encoder = FakeEncoder({q.text: np.array(asked[q.id]) for q in data.questions} | vectors)
    found = cells(evaluate(encoder, data, [MAP], ("multilingual", "expanded")))
    # Both answers of q0 are first and third, as ar goes before el; expanded, they are first and second.
    assert found["multilingual", "ar", "all"] == pytest.approx((1 / 1 + 2 / 3) / 2)
    assert found["expanded", "ar", "all"] == pytest.approx((1 / 1 + 2 / 2) / 2)


def test_in_the_balanced_pool_an_answer_rises_whose_language_scores_low():
    data = retrieval(2, ("ar", "el"), fillers=0)
    # By language, then whether it is the answer: in Greek all scores are 0.5 lower than in Arabic.
    near = {("ar", True): 0.9, ("ar", False): 0.6, ("el", True): 0.4, ("el", False): 0.1}
    vectors = {
        c.text: np.array([near[c.language, "s0" in c.id], near[c.language, "s1" in c.id], 0]) for c in data.candidates
    }
    asked = {q.text: np.array([q.id == "q0", q.id == "q1", 0], np.float64) for q in data.questions}
    found = cells(evaluate(FakeEncoder(asked | vectors), data, [MAP], ("multilingual", "balanced")))
    # 0.9, 0.6, 0.4, 0.1 are 0.9 − 0.45, 0.6 − 0.45, 0.4 − 0.2, 0.1 − 0.2 = 0.45, 0.15, 0.2, −0.1.
    assert found["multilingual", "ar", "all"] == pytest.approx((1 / 1 + 2 / 3) / 2)
    assert found["balanced", "ar", "all"] == pytest.approx((1 / 1 + 2 / 2) / 2)


def test_the_mean_over_languages_is_unweighted():
    asked = tuple(q for q in TWO.questions if (q.language, q.id) != ("el", "q0"))  # two in ar, one in el
    data = replace(TWO, questions=asked)
    found = evaluate(scoring(data, ROWS), data, [MAP])
    ar, el = ((1 / 1 + 2 / 3) / 2 + (1 / 2 + 2 / 4) / 2) / 2, 1.0
    assert found.mean("map") == pytest.approx((ar + el) / 2)
    assert [s.count for s in found.scores] == [2, 1]


def test_each_text_is_encoded_once_for_all_pools_and_measures():
    data = retrieval(4)
    encoder = random_scoring(data)
    evaluate(encoder, data, [MAP, MAP20], RETRIEVAL_POOLS)
    texts = {("question", q.text) for q in data.questions} | {("candidate", c.text) for c in data.candidates}
    assert encoder.times_encoded == dict.fromkeys(texts, 1)


@pytest.mark.parametrize("pool", ["multilingual", "bilingual"])
def test_a_question_without_a_relevant_candidate_is_named(pool):
    kept = [c for c in TWO.candidates if c.id != "ar-s1" and (c.id != "el-s1" or pool == "bilingual")]
    data = replace(TWO, candidates=tuple(kept))
    rows = {key: row[: len(kept)] for key, row in ROWS.items()}
    asked = "ar" if pool == "multilingual" else "el"
    with pytest.raises(DataError, match=rf"question 'q1' \({asked}\) has no relevant candidate in it"):
        evaluate(scoring(data, rows), data, [MAP], (pool,))


@given(kept=st.sets(st.integers(0, 5), min_size=1))
def test_the_pools_that_lack_an_answer_are_those_that_cannot_be_scored(kept):
    """Two questions with an answer in each of three languages, of which any may be missing."""
    whole = retrieval(2, ("ar", "de", "el"), fillers=1)
    answers = [candidate for candidate in whole.candidates if candidate.answers]
    gone = {answers[i].id for i in range(6) if i not in kept}
    data = replace(whole, candidates=tuple(each for each in whole.candidates if each.id not in gone))
    lacking = unanswered(data, RETRIEVAL_POOLS)
    for pool in RETRIEVAL_POOLS:
        with pytest.raises(DataError, match=f"pool '{pool}'") if pool in lacking else nullcontext():
            evaluate(random_scoring(data), data, [MAP], (pool,))
    assert ("multilingual" in lacking) == any(
        all(candidate.id in gone for candidate in answers if uid in candidate.answers) for uid in ("q0", "q1")
    )
    # Each question is asked in three languages, so that each answer is one of its own language to someone.
    assert ("monolingual" in lacking) == ("bilingual" in lacking) == bool(gone)


def test_vectors_that_are_not_finite_are_an_error():
    rows = ROWS | {("el", "q1"): [0.1, np.nan, 0.2, 0.3]}
    with pytest.raises(NonFiniteError):
        evaluate(scoring(TWO, rows), TWO, [MAP])


def pairs(name, cosines, gold):
    """Make pairs of one language pair, and the vectors that give them these cosines."""
    first, second = name.split("-")
    made = [
        ScoredPair(name, (first, second), f"{name} left {i}", f"{name} right {i}", score, f"{i}")
        for i, score in enumerate(gold)
    ]
    vectors = {pair.text1: at_angle(0) for pair in made}
    return tuple(made), vectors | {pair.text2: at_angle(acos(c)) for pair, c in zip(made, cosines, strict=True)}


ENGLISH, ENGLISH_VECTORS = pairs("en-en", [0.1, 0.2, 0.9], [0.0, 0.5, 1.0])
ARABIC, ARABIC_VECTORS = pairs("ar-en", [0.9, 0.1], [0.2, 0.6])


def test_similarity_is_correlated_within_each_language_pair():
    data = SimilarityData((ENGLISH[0], *ARABIC, *ENGLISH[1:]))
    found = evaluate(FakeEncoder(ENGLISH_VECTORS | ARABIC_VECTORS), data, [PEARSON, SPEARMAN])
    # Cosines deviate by (-0.3, -0.2, 0.5) from 0.4, gold by (-0.5, 0, 0.5) from 0.5.
    r = (0.3 * 0.5 + 0.5 * 0.5) / np.sqrt((0.09 + 0.04 + 0.25) * (0.25 + 0.25))
    assert [(s.measure, s.pool, s.language, s.candidates, s.count) for s in found.scores] == [
        ("pearson", "pairs", "en-en", "", 3),
        ("spearman", "pairs", "en-en", "", 3),
        ("pearson", "pairs", "ar-en", "", 2),
        ("spearman", "pairs", "ar-en", "", 2),
    ]
    assert [s.value for s in found.scores] == pytest.approx([r, 1.0, -1.0, -1.0], abs=1e-6)
    assert found.mean("pearson") == pytest.approx((r - 1) / 2, abs=1e-6)  # three pairs weigh as much as two
    with pytest.raises(DataError, match=r"^pairs en-en: .*constant"):
        evaluate(FakeEncoder(dict.fromkeys(ENGLISH_VECTORS, at_angle(1))), SimilarityData(ENGLISH), [PEARSON])


def test_the_reranked_pool_puts_the_best_candidates_in_the_order_of_the_reranker():
    """Of each question the two highest candidates are exchanged; the others stay below them, ties included."""

    class Backwards:
        name = "backwards"

        def __init__(self):
            self.calls = 0

        def scores(self, query, texts):
            self.calls += 1
            return np.arange(-len(texts), 0, dtype=np.float32)

    reranker = Backwards()
    found = evaluate(scoring(TWO, ROWS), TWO, [MAP], ("multilingual", "reranked"), reranker=reranker, rerank_top=2)
    assert reranker.calls == 4
    # ar q0 ranked 1, 3 → 2, 3; ar q1 ranked 2, 4 → 1, 4; el q0 ranked 2, 4 → 1, 4; el q1 ranked 1, 2 → 1, 2
    assert cells(found)["reranked", "ar", "all"] == pytest.approx(((1 / 2 + 2 / 3) / 2 + (1 / 1 + 2 / 4) / 2) / 2)
    assert cells(found)["reranked", "el", "all"] == pytest.approx(((1 / 1 + 2 / 4) / 2 + (1 / 1 + 2 / 2) / 2) / 2)
    assert cells(found)["multilingual", "ar", "all"] == pytest.approx(((1 / 1 + 2 / 3) / 2 + (1 / 2 + 2 / 4) / 2) / 2)
