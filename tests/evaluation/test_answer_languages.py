"""Metrics of the languages of answers: by hand, by counting in whole rankings, and where they are undefined."""

from dataclasses import replace
from math import log2
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.corpus import FakeEncoder, at_angle, retrieval
from helpers.rankings import ranks_of
from metasearch.config.library import Library
from metasearch.config.measure import RETRIEVAL_POOLS, Measure, is_rank
from metasearch.data.benchmark import load_benchmark
from metasearch.data.records import Candidate, Question, RetrievalData
from metasearch.errors import ConfigError, DataError
from metasearch.evaluation.evaluate import evaluate
from metasearch.evaluation.metrics.base import Ranks
from metasearch.evaluation.study.paired import sample
from metasearch.evaluation.study.study import ScoreSelection
from metasearch.runs.per_query_results import QueryResults

FIRST = [f"first-{kind}-{side}" for kind in ("relevant", "irrelevant") for side in ("own", "other")]
NAMES = ["own-ndcg@20", "others-recall@3", "best-own", "worst-rank", *FIRST]
ORDER = [("E", "en", True), ("x", "de", False), ("D", "de", True), ("y", "de", False), ("F", "fr", True)]
ORDER += [("z", "en", False)]
"""Candidates from the first to the last: id, language, and whether one answers the German question."""


def measures(*names):
    return [Measure.parse(name, "retrieval") for name in names]


def ranked(order, languages=("de",)):
    """Return data of one question in some languages, and an encoder that ranks the candidates in this order."""
    pool = tuple(Candidate(name, code, name, "a", ("q",) if right else ()) for name, code, right in order)
    asked = tuple(Question("q", code, f"{code}?", "a") for code in languages)
    vectors = {c.text: at_angle((i + 1) / 10) for i, c in enumerate(pool)} | {q.text: at_angle(0) for q in asked}
    return RetrievalData(asked, pool), FakeEncoder(vectors)


def scores(order, names, languages=("de",), **changes):
    data, encoder = ranked(order, languages)
    found = evaluate(encoder, replace(data, **changes), measures(*names))
    return {(score.measure, score.language): score.value for score in found.scores}


def test_the_example_by_hand():
    found = scores(ORDER, [*NAMES, "others-recall@20", "ndcg@20"])
    assert found == {
        ("own-ndcg@20", "de"): pytest.approx((1 / log2(4)) / (1 / log2(2))),  # D has rank 3, and would have 1
        ("others-recall@3", "de"): 1 / 2,  # E, and not F
        ("others-recall@20", "de"): 2 / 2,
        ("best-own", "de"): 0,  # E is English
        ("worst-rank", "de"): 5,  # F
        ("first-relevant-own", "de"): 0,
        ("first-relevant-other", "de"): 1,
        ("first-irrelevant-own", "de"): 0,
        ("first-irrelevant-other", "de"): 0,
        ("ndcg@20", "de"): pytest.approx((1 + 1 / log2(4) + 1 / log2(6)) / (1 + 1 / log2(3) + 1 / log2(4))),
    }
    assert found["ndcg@20", "de"] == pytest.approx(0.885460, abs=5e-7)


def test_gains_of_the_own_language_are_grades_and_those_of_others_are_nothing():
    order = [("A", "en", True), ("B", "de", True), ("C", "de", True)]
    grades = {("q", "A"): 9.0, ("q", "B"): 1.0, ("q", "C"): 3.0}
    found = scores(order, ["own-ndcg@20"], grades=grades)
    assert found["own-ndcg@20", "de"] == pytest.approx((1 / log2(3) + 3 / log2(4)) / (3 / log2(2) + 1 / log2(3)))


def test_relevant_documents_that_the_pool_lacks_are_in_no_language():
    found = scores(ORDER, NAMES, missing={("q", "G"): 1.0})
    assert found == scores(ORDER, NAMES)


def test_a_language_without_candidates_is_never_the_own():
    found = scores(ORDER, ["best-own", "others-recall@3", *FIRST], ("de", "el"))
    assert [found[name, "el"] for name in ("best-own", "first-relevant-other", "first-relevant-own")] == [0, 1, 0]
    assert found["others-recall@3", "el"] == 2 / 3  # E and D, of E, D and F


def test_a_question_without_a_value_has_no_share():
    data, encoder = ranked(ORDER)
    english = tuple(replace(c, answers=("q", "r") if c.id == "E" else c.answers) for c in data.candidates)
    data = replace(data, questions=(*data.questions, Question("r", "de", "r", "a")), candidates=english)
    encoder.vectors["r"] = at_angle(0)
    found = evaluate(encoder, data, measures("own-ndcg@20", "worst-rank"))
    assert {s.measure: (s.value, s.count) for s in found.scores} == {
        "own-ndcg@20": (pytest.approx(1 / 2), 1),  # r has no German answer
        "worst-rank": ((5 + 1) / 2, 2),
    }
    values = found.questions.columns["own-ndcg@20", "multilingual", "de", "all"]
    assert np.isnan(values).tolist() == [False, True]


def test_a_language_without_a_value_has_no_score_and_a_pool_without_one_is_an_error():
    assert scores(ORDER, ["own-ndcg@20"], ("de", "el")) == scores(ORDER, ["own-ndcg@20"])
    with pytest.raises(DataError, match=r"^measure 'own-ndcg@20', pool 'multilingual': no question has a value"):
        scores(ORDER, ["own-ndcg@20"], ("el",))


def test_only_pools_of_several_languages_have_these_scores():
    data = retrieval(2, ("ar", "el"), fillers=2)
    rng = np.random.default_rng(0)
    encoder = FakeEncoder({each.text: rng.standard_normal(4) for each in (*data.questions, *data.candidates)})
    found = evaluate(encoder, data, measures(*NAMES, "map"), RETRIEVAL_POOLS)
    pools = {name: {s.pool for s in found.scores if s.measure == name} for name in (*NAMES, "map")}
    several = {"multilingual", "expanded", "balanced"}
    assert pools == {**{name: several for name in NAMES}, "map": {*RETRIEVAL_POOLS}}


def test_ranks_without_languages_are_refused():
    with pytest.raises(DataError, match="the ranks have no languages"):
        Measure("best-own").load().function(ranks_of([1, 2]), None)


KINDS = [(True, True), (True, False), (False, True), (False, False)]
"""Whether the first candidate is relevant, and in the language of the question."""
RANKINGS = st.lists(st.tuples(st.sampled_from(["de", "en", "fr"]), st.booleans()), min_size=1, max_size=12)


@given(RANKINGS.filter(lambda order: any(right for _, right in order)), st.integers(1, 12))
def test_values_are_those_of_counting_in_the_whole_ranking(order, k):
    right, german = np.array([right for _, right in order]), np.array([code == "de" for code, _ in order])
    ranks = Ranks(np.flatnonzero(right) + 1, np.array([0, right.sum()]), own=german[right], first_own=german[:1])

    def value(name, k=None):
        (found,) = Measure.parse(name, "retrieval").load().function(ranks, k)
        return found

    own = [i for i, (code, right) in enumerate(order, 1) if right and code == "de"]
    others = [i for i, (code, right) in enumerate(order, 1) if right and code != "de"]
    gain, ideal = (sum(1 / log2(1 + i) for i in ranks if i <= k) for ranks in (own, range(1, len(own) + 1)))
    assert value("own-ndcg", k) == pytest.approx(gain / ideal if own else np.nan, nan_ok=True)
    share = sum(i <= k for i in others) / len(others) if others else np.nan
    assert value(f"others-recall@{k}", k) == pytest.approx(share, nan_ok=True)
    assert value("best-own") == (min([*own, *others]) in own)
    assert value("worst-rank") == max([*own, *others])
    assert [value(name) for name in FIRST] == [(right[0], german[0]) == kind for kind in KINDS]


def scored(values, means, path="run"):
    cells = {("multilingual", code, "all"): np.array(own) for code, own in values.items()}
    units = {cell: tuple(f"{cell[1]}{i}" for i in range(len(own))) for cell, own in cells.items()}
    columns = {("own-ndcg@20", *cell): own for cell, own in cells.items()}
    return SimpleNamespace(
        questions=QueryResults(units, columns), fold=0, run=SimpleNamespace(path=path),
        values=lambda *_: {(code, "all"): mean for code, mean in means.items()},
    )  # fmt: skip


def test_arms_are_compared_on_the_questions_that_have_a_value():
    nan = np.nan
    runs = [
        scored({"ar": [0.1, nan, 0.5], "de": [nan, nan], "el": [1.0, nan]}, {"ar": 0.3, "el": 1.0}),
        scored({"ar": [0.3, nan, 0.9], "de": [nan, nan], "el": [0.0, nan]}, {"ar": 0.6, "el": 0.0}),
    ]
    found = sample(tuple(runs), ScoreSelection("own-ndcg@20", "multilingual"))
    assert [cell[1] for cell in found.cells] == ["ar", "el"]
    assert found.ids == (("ar0", "ar2"), ("el0",))
    assert found.values == pytest.approx([(0.2 + 0.7) / 2, 0.5])
    assert found.without[:, 0] == pytest.approx([0.7, 0.2, (0.2 + 0.7) / 2])  # without ar0, ar2 and el0


def test_a_rank_is_known_by_name_and_other_names_are_shares():
    assert [is_rank(name) for name in ("worst-rank", "map@20", "own-ndcg@20", "of-a-package@5")] == [True, *[False] * 3]


@pytest.mark.parametrize("monitor", ["worst-rank", "own-ndcg@20"])
def test_training_watches_no_measure_of_languages(tmp_path, monitor):
    text = Library().path("task", "demo").read_text(encoding="utf-8")
    text = text.replace("task: demo", "task: mine").replace("[map@20, map]", f"[map@20, {monitor}]")
    (tmp_path / "mine.yaml").write_text(text.replace("monitor: map@20", f"monitor: {monitor}"), encoding="utf-8")
    with pytest.raises(ConfigError, match=rf"mine.yaml:\d+: monitor '{monitor}': training needs a measure of all"):
        load_benchmark("mine", include=(str(tmp_path),), data=str(Library().path("task", "demo").parent / "demo"))
