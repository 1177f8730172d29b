"""Query sets that resemble their support set (MAML-Align paper, section 4.2 and Figure 5)."""

import pytest

from helpers.corpus import FakeEncoder, at_angle, episodes_of, retrieval
from metasearch.errors import ConfigError

# Question i stands at the angle i² / 100 in every language: the nearest to question i > 0 is question i - 1.
LANGUAGES = ("ar", "el", "hi")
ONE = {"k": 1, "q": 1, "n_neg": 1, "queries": "similar"}


def on_a_circle(questions=8):
    return FakeEncoder({f"{code} question {i}": at_angle(i * i / 100) for code in LANGUAGES for i in range(questions)})


def number(triplet):
    return int(triplet.question.id[1:])


def draws(arrangement, questions=8, top=1, episodes=60, position=1):
    """Yield the number of the support's question and that of the query's, for many episodes."""
    sampler = episodes_of(
        retrieval(questions, LANGUAGES), arrangement, embed=on_a_circle(questions), similar_top=top, **ONE
    )
    for i in range(episodes):
        sets = sampler.episode(i).sets
        yield number(sets[0].examples[0]), number(sets[position].examples[0])


def test_in_its_own_language_the_nearest_other_question_is_drawn():
    found = set(draws("el_el -> el_ar"))
    assert found == {(0, 1), (1, 0), (2, 1), (3, 2), (4, 3), (5, 4), (6, 5), (7, 6)}


def test_the_translation_comes_before_a_question_that_is_nearer_by_its_vector():
    encoder = on_a_circle()
    encoder.vectors["ar question 3"] = at_angle(3.0)
    sampler = episodes_of(retrieval(8, LANGUAGES), "el_el -> ar_ar", embed=encoder, similar_top=1, **ONE)
    drawn = [tuple(number(found.examples[0]) for found in sampler.episode(i).sets) for i in range(60)]
    assert {query for support, query in drawn if support == 3} == {3}


@pytest.mark.parametrize(("top", "near_seven"), [(2, {6, 5}), (3, {6, 5, 4})])
def test_one_of_the_nearest_few_is_drawn(top, near_seven):
    found = draws("el_el -> el_ar", top=top, episodes=200)
    assert {query for support, query in found if support == 7} == near_seven


@pytest.mark.parametrize("questions", [3, 4, 5])
def test_the_support_question_is_not_drawn_again_when_there_are_few_others(questions):
    found = set(draws("el_el -> el_ar", questions=questions, top=5, episodes=100))
    assert found == {(i, j) for i in range(questions) for j in range(questions) if i != j}


def test_the_questions_of_a_query_set_resemble_the_supports_in_turn_and_are_distinct():
    settings = {"k": 2, "q": 4, "n_neg": 1, "queries": "similar", "similar_top": 1}
    sampler = episodes_of(retrieval(8, LANGUAGES), "el_el -> ar_ar", embed=on_a_circle(), **settings)
    for i in range(20):
        support, query = ([number(t) for t in found.examples] for found in sampler.episode(i).sets)
        assert query[:2] == support  # each one's translation first
        assert len(set(query)) == 4


def test_similarity_is_that_of_the_starting_encoder():
    encoder = on_a_circle()
    sampler = episodes_of(retrieval(8, LANGUAGES), "el_el -> el_ar", embed=encoder, similar_top=1, **ONE)
    before = [sampler.episode(i) for i in range(10)]
    encoder.vectors = {text: at_angle(-len(text)) for text in encoder.vectors}
    assert [sampler.episode(i) for i in range(10)] == before
    assert set(encoder.times_encoded.values()) == {1}
    assert {role for role, _ in encoder.calls} == {"question"}


@pytest.mark.parametrize("settings", [{"queries": "similar"}, {"negatives": "hard"}])
def test_without_an_encoder_sizes_can_be_checked_but_nothing_drawn(settings):
    sampler = episodes_of(retrieval(), "el_el -> el_ar", **settings)
    with pytest.raises(ConfigError, match="need an encoder"):
        sampler.episode(0)
