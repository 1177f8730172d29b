"""Cross-validation as the MAML-Align paper does it (section 5.1, Table 2), and that no group ever straddles."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import KFold

from helpers.formats import read
from metasearch.config.task import Folds
from metasearch.data.folds import hold_out, split
from metasearch.data.records import Candidate, Question, RetrievalData, ScoredPair, SimilarityData
from metasearch.errors import ConfigError, DataError

GIVEN = Folds(method="given")
# (k, number of groups, fold); with at least 5 groups every part has one.
protocols = st.integers(3, 10).flatmap(
    lambda k: st.tuples(st.just(k), st.integers(max(k, 5), 60), st.integers(0, k - 1))
)


def articles(count, languages=("el", "ar")):
    """Make a corpus of articles with a question and two candidates each, one language after the other."""
    questions = [Question(f"q{i}", code, f"question {i}", f"article {i}") for code in languages for i in range(count)]
    candidates = [
        Candidate(f"{code}_{i}_{j}", code, f"text {i} {j}", f"article {i}", (f"q{i}",) if j == 0 else ())
        for code in languages
        for i in range(count)
        for j in range(2)
    ]
    return RetrievalData(tuple(questions), tuple(candidates))


def rows(count, pairs=("ar-en", "en-en")):
    """Make scored pairs in which the rows of the language pairs are parallel."""
    return SimilarityData(
        tuple(
            ScoredPair(pair, tuple(pair.split("-")), f"left {i}", f"right {i}", i / count, f"row {i}")
            for pair in pairs
            for i in range(count)
        )
    )


def parts(fold):
    """Return the groups of train, dev and test."""
    return fold.train.groups, fold.dev.groups, fold.test.groups


@given(protocols)
def test_test_folds_are_those_of_scikit_learn(protocol):
    k, count, fold = protocol
    data = articles(count)
    _, expected = list(KFold(n_splits=k).split(range(count)))[fold]
    assert split(data, Folds(k=k), fold).test.groups == tuple(data.groups[i] for i in expected)


@given(protocols)
def test_dev_is_the_last_of_the_rest_as_many_as_test_and_train_is_what_is_left(protocol):
    k, count, fold = protocol
    data = articles(count)
    train, dev, test = parts(split(data, Folds(k=k), fold))
    rest = [group for group in data.groups if group not in test]
    assert len(dev) == len(test)
    assert list(dev) == rest[-len(test) :]
    assert list(train) == rest[: -len(test)]


@given(protocols, st.booleans(), st.integers(0, 3), st.sampled_from([articles, rows]))
def test_no_group_straddles_and_none_is_lost(protocol, shuffle, seed, make):
    k, count, fold = protocol
    data = make(count)
    train, dev, test = map(set, parts(split(data, Folds(k=k, shuffle=shuffle, seed=seed), fold)))
    assert not train & dev
    assert not train & test
    assert not dev & test
    assert train | dev | test == set(data.groups)


def test_folds_that_leave_nothing_to_train_on_are_refused():
    """Three folds of four groups: the first tests two, keeps two for dev, and 4 - 2 - 2 = 0 are left."""
    with pytest.raises(DataError, match="4"):
        split(articles(4), Folds(k=3), 0)


def test_shuffling_depends_on_the_seed_and_on_nothing_else():
    data = articles(40)
    plain, one, again, two = (
        split(data, folds, 0).test.groups
        for folds in (Folds(), Folds(shuffle=True, seed=1), Folds(shuffle=True, seed=1), Folds(shuffle=True, seed=2))
    )
    assert one == again
    assert len({plain, one, two}) == 3


@pytest.mark.parametrize("fold", [-1, 5, 100])
def test_a_fold_out_of_range_is_refused_with_the_range(fold):
    with pytest.raises(ConfigError, match=f"^fold {fold} is out of range; the task has folds 0 to 4$"):
        split(articles(20), Folds(), fold)


def test_data_that_comes_split_is_used_as_it_comes():
    sets = split(read("stsb-multi-mt"), GIVEN, 0)
    assert parts(sets) == (("train-1", "train-2", "train-3"), ("dev-1", "dev-2"), ("test-1", "test-2"))
    assert {pair.text1 for pair in sets.dev.pairs if pair.pair == "en-en"} == {
        "A man dances.",
        "A child rides a horse.",
    }


@pytest.mark.parametrize("part", ["train", "dev", "test"])
def test_data_that_should_come_split_but_lacks_a_part_is_refused(part):
    whole = read("stsb-multi-mt")
    lacking = whole.select([group for group in whole.groups if whole.given[group] != part])
    with pytest.raises(DataError, match=f"the data has no '{part}' part"):
        split(lacking, GIVEN, 0)


@pytest.mark.parametrize(("share", "count"), [(0.5, 5), (0.3, 3), (0.25, round(2.5)), (0.9, 9)])
def test_the_last_groups_of_dev_are_held_out_for_its_score(share, count):
    dev = articles(10)
    episodes, score = hold_out(dev, share)
    assert (episodes.groups, score.groups) == (dev.groups[: 10 - count], dev.groups[10 - count :])


@given(st.floats(0.001, 0.999), st.integers(2, 40))
def test_a_share_held_out_of_dev_leaves_something_on_both_sides_and_nothing_on_both(share, count):
    episodes, score = hold_out(articles(count), share)
    assert episodes.groups
    assert score.groups
    assert not set(episodes.groups) & set(score.groups)


@given(protocols)
def test_records_follow_their_group_in_every_language(protocol):
    k, count, fold = protocol
    data = articles(count)
    sets = split(data, Folds(k=k), fold)
    for part in (sets.train, sets.dev, sets.test):
        assert [c for c in data.candidates if c.group in part.groups] == list(part.candidates)
        assert [q for q in data.questions if q.group in part.groups] == list(part.questions)
        assert part.languages == {"el", "ar"}


def test_fewer_groups_than_folds_are_refused_with_both_numbers():
    with pytest.raises(DataError, match="5 folds need at least 5 articles or rows; the data has 4"):
        split(articles(4), Folds(k=5), 0)
