"""Metrics by hand, against trec_eval, numpy and scipy; every one of retrieval is a function of the ranks."""

import doctest
from dataclasses import replace
from importlib import import_module
from math import log2
from pathlib import Path

import numpy as np
import pytest
import pytrec_eval
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from helpers.corpus import FakeEncoder, at_angle, retrieval, similarity
from helpers.rankings import ranks_by, ranks_of
from metasearch.config import registry
from metasearch.config.measure import Measure
from metasearch.data.records import Candidate, Question, RetrievalData, Translation, TranslationData
from metasearch.errors import ConfigError, DataError, NonFiniteError
from metasearch.evaluation import metrics
from metasearch.evaluation.evaluate import evaluate
from metasearch.evaluation.metrics.base import Metric, Ranks
from metasearch.evaluation.metrics.pairs import pearson, spearman

WITH_CUTOFF = ("complete", "map", "mrr", "ndcg", "precision", "recall")
WHOLE = ("map", "mrr", "ndcg")


def values(measure, *questions):
    """Return the values of a measure such as `map@20`, given the ranks of what is relevant to each question."""
    measure = Measure.parse(measure, "retrieval")
    return measure.load().function(ranks_of(*questions), measure.k).tolist()


@pytest.mark.parametrize(
    ("measure", "ranks", "expected"),
    [
        ("map", [2, 3, 7], (1 / 2 + 2 / 3 + 3 / 7) / 3),
        ("map@3", [1, 4], (1 / 1) / 2),  # min(R, k) = R = 2
        ("map@2", [1, 4, 5], (1 / 1) / 2),  # min(R, k) = k = 2
        ("map@2", [1, 2, 3, 4, 5], (1 / 1 + 2 / 2) / 2),
        ("map@20", [21], 0.0),
        ("mrr", [3, 4], 1 / 3),
        ("mrr@2", [3, 4], 0.0),
        ("ndcg", [1, 3], (1 / log2(2) + 1 / log2(4)) / (1 / log2(2) + 1 / log2(3))),
        ("ndcg@2", [1, 3], (1 / log2(2)) / (1 / log2(2) + 1 / log2(3))),
        ("ndcg@1", [1, 3, 4], 1.0),  # the perfect top 1 has one of them, too
        ("recall@3", [1, 3, 4], 2 / 3),
        ("precision@4", [1, 3, 5], 2 / 4),
        ("complete@3", [1, 3], 1.0),
        ("complete@3", [1, 4], 0.0),
    ],
)
def test_a_value_by_hand(measure, ranks, expected):
    assert values(measure, ranks) == [pytest.approx(expected, abs=1e-15)]


def test_a_question_without_a_relevant_candidate_is_a_data_error():
    with pytest.raises(DataError, match="question 1 has no relevant candidate"):
        ranks_of([1], [], [2, 3])


@st.composite
def rankings(draw):
    """Make scores of candidates, often equal, and which of them are relevant."""
    size = draw(st.integers(1, 40))
    scores = draw(st.lists(st.integers(0, draw(st.sampled_from([0, 4, 1000]))), min_size=size, max_size=size))
    relevant = draw(st.lists(st.integers(0, size - 1), min_size=1, unique=True))
    return np.array(scores, dtype=float), relevant


def trec_eval(measure, scores, relevant):
    """Return what trec_eval measures; of equal scores it ranks the last name first, so that names go down."""
    names = [f"d{len(scores) - i:03d}" for i in range(len(scores))]
    run = dict(zip(names, scores.tolist(), strict=True))
    judged = {"q": {names[i]: 1 for i in relevant}}
    return pytrec_eval.RelevanceEvaluator(judged, {measure}).evaluate({"q": run})["q"][measure.replace(".", "_")]


@given(rankings(), st.integers(1, 45))
def test_metrics_are_those_of_trec_eval_also_with_ties_and_more_relevant_than_k(drawn, k):
    scores, relevant = drawn
    found = ranks_by(scores, relevant)

    def ours(name, k=None):
        return Measure(name, k).load().function(found, k)[0]

    def theirs(name):
        return pytest.approx(trec_eval(name, scores, relevant), abs=1e-6)

    assert ours("map") == theirs("map")
    assert ours("mrr") == theirs("recip_rank")
    assert ours("ndcg") == theirs("ndcg")
    # trec_eval divides by R also where R > k.
    assert ours("map", k) * min(len(relevant), k) / len(relevant) == theirs(f"map_cut.{k}")
    assert ours("ndcg", k) == theirs(f"ndcg_cut.{k}")
    assert ours("recall", k) == theirs(f"recall.{k}")
    assert ours("precision", k) == theirs(f"P.{k}")
    # What trec_eval has no name for: all are among the first k, and the first of them is.
    assert ours("complete", k) == (trec_eval(f"recall.{k}", scores, relevant) == 1)
    assert ours("mrr", k) == (ours("mrr") if trec_eval(f"success.{k}", scores, relevant) else 0)


QUESTIONS = st.lists(st.sets(st.integers(1, 60), min_size=1, max_size=25).map(sorted), min_size=1, max_size=6)


@pytest.mark.slow
@given(QUESTIONS)
@pytest.mark.parametrize("measure", [f"{name}@{k}" for name in WITH_CUTOFF for k in (1, 20)] + [*WHOLE])
def test_values_do_not_depend_on_the_questions_beside_them_to_the_bit(measure, drawn):
    assert values(measure, *drawn) == [values(measure, one)[0] for one in drawn]


# Every registered metric, for any input.


def registered(kind):
    """Return all registered measures of a kind of task, with a cut-off where one may be."""
    found = {name: Measure(name).load() for name in registry.names("metrics")}
    own = {name: metric for name, metric in found.items() if metric.kind == kind}
    whole = [Measure(name) for name, metric in own.items() if metric.cutoff != "required"]
    return whole + [Measure(name, k) for name, metric in own.items() if metric.cutoff != "none" for k in (1, 3, 20)]


GRADES = st.one_of(st.just(0.0), st.sampled_from([1.0, 2.0]), st.floats(5e-324, 1.7e308))


@settings(max_examples=50)
@given(
    st.lists(st.integers(0, 2), min_size=6, max_size=6),
    st.lists(st.sampled_from(["q0", "q1"]), max_size=4).flatmap(lambda ids: st.permutations(ids * 2)),
    st.dictionaries(st.tuples(st.sampled_from(["q0", "q1"]), st.sampled_from(["c0", "c1", "c2"])), GRADES),
)
def test_every_retrieval_measure_is_from_0_to_1_for_repeated_judgements_ties_and_any_grade(angles, answers, grades):
    """Each candidate lists its questions as often as they are drawn, and both have candidates of equal scores."""
    given_to = [tuple(answers[i::3]) for i in range(3)]
    pool = [Candidate(f"c{i}", "en", f"c{i}", "g", own) for i, own in enumerate(given_to)]
    asked = [Question(f"q{i}", "en", f"q{i}", "g") for i in range(2)]
    texts = ["q0", "q1", "c0", "c1", "c2"]
    encoder = FakeEncoder({text: at_angle(angle) for text, angle in zip(texts, angles, strict=False)})
    relevant = {uid for c in pool for uid in c.answers if grades.get((uid, c.id), 1) > 0}
    # Of languages see `test_answer_languages`: the pool here has one.
    measures = [each for each in registered("retrieval") if not each.load().languages]
    data = RetrievalData(tuple(asked), tuple(pool), grades=grades)
    if relevant != {"q0", "q1"}:
        with pytest.raises(DataError, match=r"question 'q[01]' \(en\) has no relevant candidate"):
            evaluate(encoder, data, measures)
        return
    found = [score.value for score in evaluate(encoder, data, measures).scores]
    assert all(0 <= value <= 1 for value in found)
    once = [replace(c, answers=tuple(sorted({u for u in c.answers if grades.get((u, c.id), 1) > 0}))) for c in pool]
    assert found == [score.value for score in evaluate(encoder, replace(data, candidates=tuple(once)), measures).scores]


FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(st.tuples(FINITE, FINITE), min_size=1, max_size=8))
@pytest.mark.filterwarnings("ignore")
def test_every_correlation_is_from_minus_1_to_1_or_an_error_where_a_side_is_constant(pairs):
    predicted, gold = np.array(pairs).T
    for measure in registered("similarity"):
        if len(set(predicted)) < 2 or len(set(gold)) < 2:
            with pytest.raises(DataError, match="constant"):
                measure.load().function(predicted, gold)
        else:
            assert -1 <= measure.load().function(predicted, gold) <= 1


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(4, 7)), min_size=1, max_size=8), st.data())
def test_every_translation_measure_is_from_0_to_1_also_with_repeated_texts(pairs, drawn):
    data = TranslationData(tuple(Translation(f"t{a}", f"t{b}", ("en", "de")) for a, b in pairs))
    angles = drawn.draw(st.lists(st.integers(0, 3), min_size=8, max_size=8))
    encoder = FakeEncoder({f"t{i}": at_angle(angle) for i, angle in enumerate(angles)})
    assert all(0 <= score.value <= 1 for score in evaluate(encoder, data, registered("translation")).scores)


@pytest.mark.parametrize(("ranks", "gains"), [([1, 1], None), ([0, 2], None), ([2, 1], None), ([1, 2], [1.0, 0.0])])
def test_ranks_that_no_ranking_has_are_refused(ranks, gains):
    with pytest.raises(DataError, match=r"repeated, below 1 or out of order|expected a finite number above 0"):
        Ranks(np.array(ranks), np.array([0, 2]), gains and np.array(gains))


@pytest.mark.parametrize(
    ("measure", "data", "kinds"),
    [
        ("pearson", retrieval(2), ("similarity", "retrieval")),
        ("map", similarity(2, ("en-en",)), ("retrieval", "similarity")),
    ],
)
def test_a_measure_of_another_kind_of_task_is_refused_before_anything_is_scored(measure, data, kinds):
    encoder = FakeEncoder({text: [1.0] for text in texts(data)})
    with pytest.raises(ConfigError, match=f"^measure '{measure}' is for {kinds[0]} tasks, the data is of a {kinds[1]}"):
        evaluate(encoder, data, [Measure(measure)])


def test_a_metric_whose_value_is_not_finite_is_named(monkeypatch):
    def undefined(ranks, k):
        return np.full(len(ranks.sizes), np.nan)

    monkeypatch.setattr(metrics.retrieval, "METRIC_RECALL", Metric("retrieval", undefined, "required"))
    data = retrieval(2)
    with pytest.raises(NonFiniteError, match=r"^measure 'recall@3' has a value that is not finite$"):
        evaluate(FakeEncoder({text: [1.0] for text in texts(data)}), data, [Measure("recall", 3)])


@pytest.mark.parametrize("module", sorted(Path(metrics.__file__).parent.glob("[a-z]*.py")), ids=lambda path: path.stem)
def test_examples_in_docstrings_are_right(module):
    assert doctest.testmod(import_module(f"{metrics.__name__}.{module.stem}")).failed == 0


def texts(data):
    if hasattr(data, "pairs"):
        return [text for pair in data.pairs for text in (pair.text1, pair.text2)]
    return [item.text for item in (*data.questions, *data.candidates)]


SCORES = st.lists(st.tuples(st.floats(-1, 1), st.floats(0, 1)), min_size=2, max_size=20)


# scipy says so of scores that differ by rounding alone.
@pytest.mark.filterwarnings("ignore::scipy.stats.NearConstantInputWarning")
@given(SCORES)
def test_correlations_are_those_of_numpy_and_scipy_and_never_nan(drawn):
    predicted, gold = (np.array(side) for side in zip(*drawn, strict=True))
    assume(np.ptp(predicted) > 0 and np.ptp(gold) > 0)
    r, rho = pearson(predicted, gold), spearman(predicted, gold)
    assert -1 - 1e-9 <= r <= 1 + 1e-9
    assert rho == pytest.approx(stats.spearmanr(predicted, gold).statistic, abs=1e-12)
    if np.ptp(predicted) > 1e-6 and np.ptp(gold) > 1e-6:  # numpy loses smaller ones to rounding
        assert r == pytest.approx(np.corrcoef(predicted, gold)[0, 1], abs=1e-6)


@pytest.mark.parametrize("correlate", [pearson, spearman])
@pytest.mark.parametrize(
    ("predicted", "gold", "error", "says"),
    [
        ([0.5, 0.5, 0.5], [0.0, 0.5, 1.0], DataError, "the 3 predicted scores are constant"),
        ([0.0, 0.5, 1.0], [0.2, 0.2, 0.2], DataError, "the 3 gold scores are constant"),
        ([0.5], [0.5], DataError, "the 1 predicted scores are constant"),
        ([0.5, np.nan], [0.0, 1.0], NonFiniteError, "a predicted score is not finite"),
        ([0.5, 0.1], [0.0, np.inf], NonFiniteError, "a gold score is not finite"),
    ],
)
def test_an_undefined_correlation_is_an_error_never_nan(correlate, predicted, gold, error, says):
    with pytest.raises(error, match=says):
        correlate(np.array(predicted), np.array(gold))
