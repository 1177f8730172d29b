"""Average precision, correlation and the names of measures."""

import itertools

import numpy as np
import pytest
import pytrec_eval
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats
from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator

from metasearch.errors import ConfigError, DataError, NonFiniteError
from metasearch.evaluation.metrics.average_precision import average_precision, average_precisions, ranks
from metasearch.evaluation.metrics.correlation import pearson, spearman
from metasearch.spec.measure import Measure


def ap(found, k=None):
    return average_precision(np.array(found), k)


@pytest.mark.parametrize(
    ("found", "k", "expected"),
    [
        ([1], None, 1 / 1),
        ([4], None, 1 / 4),
        ([1, 4], None, (1 / 1 + 2 / 4) / 2),
        ([2, 3, 7], None, (1 / 2 + 2 / 3 + 3 / 7) / 3),
        ([1, 4], 20, (1 / 1 + 2 / 4) / 2),
        ([1, 4], 4, (1 / 1 + 2 / 4) / 2),
        ([1, 4], 3, (1 / 1) / 2),  # min(R, k) = R = 2
        ([1, 4, 5], 2, (1 / 1) / 2),  # min(R, k) = k = 2
        ([1, 2, 3, 4, 5], 2, (1 / 1 + 2 / 2) / 2),
        ([21], 20, 0.0),
        ([20], 20, 1 / 20),
    ],
)
def test_average_precision(found, k, expected):
    assert ap(found, k) == pytest.approx(expected, abs=1e-15)


def test_seven_translations_on_top_are_perfect():
    assert ap(range(1, 8), 20) == ap(range(1, 8)) == 1.0


def test_a_lower_rank_is_worth_less():
    values = [ap(found) for found in itertools.combinations(range(1, 9), 2)]
    assert values[0] == max(values) == 1.0
    assert values[-1] == min(values) == pytest.approx((1 / 7 + 2 / 8) / 2)


def test_ranks_are_those_of_the_descending_scores():
    assert ranks(np.array([0.1, 0.9, 0.5, 0.7]), [0, 2]).tolist() == [3, 4]
    assert ranks(np.array([0.1, 0.9, 0.5, 0.7]), [2, 0]).tolist() == [3, 4]


@pytest.mark.parametrize(("relevant", "expected"), [([0], [1]), ([1], [3]), ([2], [4]), ([3], [2]), ([2, 1], [3, 4])])
def test_equal_scores_rank_by_index(relevant, expected):
    assert ranks(np.array([0.9, 0.5, 0.5, 0.7]), relevant).tolist() == expected


def test_when_all_scores_are_equal_the_ranking_is_the_order_of_the_candidates():
    assert ranks(np.zeros(5), [4, 0, 2]).tolist() == [1, 3, 5]


def test_nothing_relevant_is_a_data_error():
    with pytest.raises(DataError, match="no relevant candidate"):
        ranks(np.array([0.5, 0.1]), [])


@pytest.mark.parametrize("score", [np.nan, np.inf, -np.inf])
def test_a_score_that_is_not_finite_is_an_error_wherever_it_stands(score):
    with pytest.raises(NonFiniteError):
        ranks(np.array([0.5, 0.1, score]), [0])


@st.composite
def rankings(draw, ties):
    """Make scores of candidates, and which of them are relevant."""
    size = draw(st.integers(1, 30))
    distinct = st.permutations(range(size)).map(list)
    scores = draw(st.lists(st.integers(0, 4), min_size=size, max_size=size) if ties else distinct)
    relevant = draw(st.lists(st.integers(0, size - 1), min_size=1, unique=True))
    return np.array(scores, dtype=float), relevant


@settings(deadline=None)
@given(rankings(ties=False))
def test_it_is_the_average_precision_of_trec_eval(drawn):
    scores, relevant = drawn
    judged = {"q": {f"d{i}": 1 for i in relevant}}
    run = {"q": {f"d{i}": float(score) for i, score in enumerate(scores)}}
    theirs = pytrec_eval.RelevanceEvaluator(judged, {"map", "map_cut.20"}).evaluate(run)["q"]
    found = ranks(scores, relevant)
    assert ap(found) == pytest.approx(theirs["map"], abs=1e-6)
    if len(relevant) <= 20:  # trec_eval divides by R, also where R > k
        assert ap(found, 20) == pytest.approx(theirs["map_cut_20"], abs=1e-6)


@settings(deadline=None)
@given(rankings(ties=True), st.integers(1, 30))
def test_it_is_the_map_at_k_of_sentence_transformers_also_with_ties(drawn, k):
    scores, relevant = drawn
    names = [f"d{i:02d}" for i in range(len(scores))]  # they break ties by name, lower first
    theirs = InformationRetrievalEvaluator(
        {"q": "?"}, dict.fromkeys(names, ""), {"q": {names[i] for i in relevant}}, map_at_k=[k], write_csv=False
    )
    hits = [{"corpus_id": name, "score": score} for name, score in zip(names, scores, strict=True)]
    assert ap(ranks(scores, relevant), k) == pytest.approx(theirs.compute_metrics([hits])["map@k"][k])


@settings(deadline=None)
@given(st.lists(st.sets(st.integers(1, 60), min_size=1, max_size=25).map(sorted), min_size=1, max_size=6))
@pytest.mark.parametrize("k", [None, 1, 20])
def test_average_precisions_of_many_queries_are_those_of_each_to_the_bit(k, drawn):
    found = average_precisions(np.concatenate(drawn), np.cumsum([0, *map(len, drawn)]), k)
    assert found.tolist() == [ap(one, k) for one in drawn]


def test_pearson_by_hand():
    # Deviations (-1, 0, 1) and (-2, 1, 1): products 2 + 0 + 1, squares 2 and 6.
    assert pearson(np.array([1.0, 2.0, 3.0]), np.array([0.0, 3.0, 3.0])) == pytest.approx(3 / np.sqrt(2 * 6))


def test_spearman_sees_only_the_order():
    gold = np.array([0.0, 0.2, 0.6, 1.0])
    assert spearman(np.exp(5 * gold), gold) == pytest.approx(1.0)
    assert spearman(-(gold**3), gold) == pytest.approx(-1.0)
    # Ranks (1, 2, 3, 4) and (2, 1, 3, 4): 1 - 6 Σd² / (n³ - n).
    assert spearman(np.array([0.2, 0.1, 0.3, 0.4]), gold) == pytest.approx(1 - 6 * (1 + 1) / (4**3 - 4))


def test_spearman_gives_equal_values_their_mean_rank():
    # Ranks (1, 2.5, 2.5, 4) and (1, 2, 3, 4) as Pearson's r.
    expected = np.corrcoef([1, 2.5, 2.5, 4], [1, 2, 3, 4])[0, 1]
    assert spearman(np.array([0.1, 0.5, 0.5, 0.9]), np.array([0.0, 0.2, 0.4, 0.6])) == pytest.approx(expected)


SCORES = st.lists(st.tuples(st.floats(-1, 1), st.floats(0, 1)), min_size=2, max_size=20)


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


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("map@20", "retrieval", Measure("map", 20)),
        ("map", "retrieval", Measure("map")),
        ("map@1", "retrieval", Measure("map", 1)),
        ("pearson", "similarity", Measure("pearson")),
        ("spearman", "similarity", Measure("spearman")),
    ],
)
def test_a_measure_reads_as_it_is_written(text, kind, expected):
    assert Measure.parse(text, kind) == expected
    assert str(expected) == text


@pytest.mark.parametrize(
    ("text", "kind", "says"),
    [
        ("mpa", "retrieval", "unknown retrieval measure 'mpa'. Did you mean 'map'?"),
        ("map20", "retrieval", "Did you mean 'map@20'?"),
        ("map@0", "retrieval", "unknown retrieval measure 'map@0'"),
        ("map@-1", "retrieval", "unknown retrieval measure 'map@-1'"),
        ("map@", "retrieval", "unknown retrieval measure 'map@'"),
        ("MAP@20", "retrieval", "unknown retrieval measure 'MAP@20'"),
        ("pearson", "retrieval", "unknown retrieval measure 'pearson'. Known: map, map@20."),
        ("pearsn", "similarity", "Did you mean 'pearson'? Known: pearson, spearman."),
        ("map@20", "similarity", "unknown similarity measure 'map@20'. Known: pearson, spearman."),
        ("pearson@20", "similarity", "measure 'pearson@20': only rankings have a cut-off; write 'pearson'"),
    ],
)
def test_a_wrong_measure_is_answered_with_the_right_ones(text, kind, says):
    with pytest.raises(ConfigError) as caught:
        Measure.parse(text, kind)
    assert says in str(caught.value)
