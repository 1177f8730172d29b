"""Cross-validation as the MAML-Align paper does it (section 5.1, Table 2), and that no group ever straddles."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import KFold

from helpers.formats import read
from metasearch.config.library import load_recipe
from metasearch.config.task import Folds
from metasearch.data.benchmark import load_benchmark
from metasearch.data.folds import hold_out, split, with_labels
from metasearch.data.records import Candidate, Question, RetrievalData, ScoredPair, SimilarityData
from metasearch.episodes.samplers import check_sizes, samplers
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
    return SimilarityData(
        tuple(
            ScoredPair(pair, tuple(pair.split("-")), f"left {i}", f"right {i}", i / count, f"row {i}")
            for pair in pairs
            for i in range(count)
        )
    )


def parts(fold):
    return fold.train.groups, fold.dev.groups, fold.test.groups


@given(protocols)
def test_test_folds_are_those_of_scikit_learn_and_dev_is_the_last_of_the_rest_as_many(protocol):
    k, count, fold = protocol
    data = articles(count)
    others, expected = list(KFold(n_splits=k).split(range(count)))[fold]
    train, dev, test = parts(split(data, Folds(k=k), fold))
    assert test == tuple(data.groups[i] for i in expected)
    assert train + dev == tuple(data.groups[i] for i in others)
    assert len(dev) == len(test)


@given(protocols, st.booleans(), st.integers(0, 3), st.sampled_from([articles, rows]))
def test_no_group_straddles_and_none_is_lost(protocol, shuffle, seed, make):
    k, count, fold = protocol
    data = make(count)
    train, dev, test = map(set, parts(split(data, Folds(k=k, shuffle=shuffle, seed=seed), fold)))
    assert not train & dev
    assert not train & test
    assert not dev & test
    assert train | dev | test == set(data.groups)


@pytest.mark.parametrize(
    ("k", "message"),
    [
        (3, "3 folds of 4 articles or rows leave none for training"),  # two for test, two for dev: 4 - 2 - 2 = 0
        (5, "5 folds need at least 5 articles or rows; the data has 4"),
    ],
)
def test_folds_that_leave_nothing_to_train_on_are_refused(k, message):
    with pytest.raises(DataError, match=message):
        split(articles(4), Folds(k=k), 0)


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


@given(protocols)
def test_records_follow_their_group_in_every_language(protocol):
    k, count, fold = protocol
    data = articles(count)
    sets = split(data, Folds(k=k), fold)
    for part in (sets.train, sets.dev, sets.test):
        assert [c for c in data.candidates if c.group in part.groups] == list(part.candidates)
        assert [q for q in data.questions if q.group in part.groups] == list(part.questions)
        assert part.languages == {"el", "ar"}


# Few labels.


def asked(data):
    """Return language → ids of the questions that have an answer."""
    found = {}
    for question in data.questions:
        if question.id in data.answers:
            found.setdefault(question.language, set()).add(question.id)
    return found


@st.composite
def retrieval(draw):
    """Return data whose languages have some questions in common, some of them without an answer."""
    ids = [f"q{i}" for i in range(10)]
    own = {language: draw(st.sets(st.sampled_from(ids), min_size=4)) for language in ("de", "el", "th")}
    questions = [Question(i, language, f"{i} {language}", "a") for language in own for i in sorted(own[language])]
    unanswered = draw(st.sets(st.sampled_from(ids), max_size=2))
    answers = [Candidate(f"c{i}", "de", f"c {i}", "a", (i,)) for i in ids if i not in unanswered]
    return RetrievalData(tuple(questions), (*answers, Candidate("none", "el", "none", "a")))


@given(retrieval(), st.integers(1, 2), st.integers(0, 99))
def test_each_language_has_just_so_many_questions_with_answers_and_all_candidates_stay(data, count, seed):
    kept = with_labels(data, count, seed, ("de", "el"))
    whole = asked(data)
    assert {language: len(ids) for language, ids in asked(kept).items()} == {"de": count, "el": count}
    assert all(ids <= whole[language] for language, ids in asked(kept).items())
    assert [(c.id, c.text, c.language, c.group) for c in kept.candidates] == [
        (c.id, c.text, c.language, c.group) for c in data.candidates
    ]


def test_translations_of_a_question_are_chosen_together_and_a_seed_chooses_others():
    train = load_benchmark("demo").split.train
    chosen = [asked(with_labels(train, 8, seed, train.languages)) for seed in (0, 0, 1)]
    assert all(len({frozenset(ids) for ids in each.values()}) == 1 for each in chosen)
    assert chosen[0] == chosen[1] != chosen[2]


def test_a_score_is_a_label_of_a_row_and_of_all_its_translations():
    pairs = [
        ScoredPair(name, tuple(name.split("-")), f"{name} {i}", "b", i / 5, f"row {i}")
        for name in ("en-en", "en-el")
        for i in range(6)
    ]
    kept = with_labels(SimilarityData(tuple(pairs)), 4, 0, ()).pairs
    rows = [{pair.group for pair in kept if pair.pair == name} for name in ("en-en", "en-el")]
    assert rows[0] == rows[1]
    assert len(rows[0]) == 4
    assert [pair for pair in pairs if pair.group in rows[0]] == [*kept]
    with pytest.raises(DataError, match=r"labels: 7 rows of (en|el-en) are .* train has 6; --set labels=6 fits"):
        with_labels(SimilarityData(tuple(pairs)), 7, 0, ())


def test_too_few_questions_are_named_with_their_language_and_the_number_that_all_have():
    questions = (*(Question(str(i), "de", str(i), "a") for i in range(3)), Question("1", "el", "one", "a"))
    data = RetrievalData(questions, tuple(Candidate(str(i), "el", str(i), "a", (str(i),)) for i in range(3)))
    said = r"labels: 2 questions with answers in el are requested; train has 1; --set labels=1 fits"
    with pytest.raises(DataError, match=said):
        with_labels(data, 2, 0, ("de", "el"))
    # Of a language that is not asked in nothing is wanted.
    assert asked(with_labels(data, 2, 0, ("de",))).keys() == {"de"}
    with pytest.raises(DataError, match=r"labels: 1 questions with answers in th are requested; train has 0$"):
        with_labels(data, 1, 0, ("th",))


def test_a_translation_of_a_labelled_question_is_there_though_it_has_no_label_itself():
    """Languages that share some questions only: el has 20 of those that ar has."""
    benchmark = load_benchmark("demo", "trans")
    train = benchmark.split.train
    few = sorted({question.id for question in train.questions})[:20]
    questions = tuple(q for q in train.questions if q.language != "el" or q.id in few)
    uneven = replace(benchmark, split=replace(benchmark.split, train=replace(train, questions=questions)))
    sets = ["episodes.translations=true", "loss.name=infonce", "loss.align=jsd", "budget.meta_valid=0"]
    recipe = load_recipe("fine-tune", [*sets, "labels=4", "episodes.k=2", "episodes.q=2"])
    check_sizes(uneven, recipe, seed=1)
    sampler = samplers(uneven, recipe, seed=1)["meta-train"]
    drawn = [each for i in range(20) for labelled in sampler.episode(i).sets for each in labelled.examples]
    assert all(each.translation.id == each.question.id for each in drawn)


@pytest.mark.parametrize("mode", ["mono-mono", "mixt"])
def test_episodes_are_drawn_of_the_labelled_questions_alone(mode):
    benchmark = load_benchmark("demo", mode)
    recipe = load_recipe("fine-tune", ["labels=4", "episodes.k=4", "episodes.q=4", "budget.meta_valid=0"])
    sampler = samplers(benchmark, recipe, seed=3)["meta-train"]
    drawn = {
        triplet.question.id for i in range(20) for labelled in sampler.episode(i).sets for triplet in labelled.examples
    }
    kept = with_labels(benchmark.split.train, 4, 3, benchmark.split.train.languages)
    (chosen,) = {frozenset(ids) for ids in asked(kept).values()}
    assert drawn == chosen
