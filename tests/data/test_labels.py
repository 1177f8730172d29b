"""A few labels of train: which are kept, that the texts stay, and what is said where there are too few."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasearch.config.library import load_recipe
from metasearch.data.benchmark import load_benchmark
from metasearch.data.folds import with_labels
from metasearch.data.records import Candidate, Question, RetrievalData, ScoredPair, SimilarityData
from metasearch.episodes.samplers import check_sizes, samplers
from metasearch.errors import DataError


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
