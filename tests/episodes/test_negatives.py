"""Classes of negatives by their distance to the anchor (Schroff et al., 2015; MAML-Align paper, appendix B)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.corpus import FakeEncoder, at_angle, episodes_of, retrieval
from metasearch.config.arrangement import Variant
from metasearch.config.recipe import Episodes, Loss
from metasearch.data.labels import load_labels
from metasearch.episodes.triplets import TripletSampler, choose

# d(q, p) = 0.5 and m = 0.25: hard below 0.5, semi-hard from 0.5 to 0.75, easy above 0.75.
TO_POSITIVE, MARGIN = 0.5, 0.25
SPREAD = [0.9, 0.3, 0.6, 0.8, 0.4, 0.7]
MEMBERS = {"hard": {1, 4}, "semi-hard": {2, 5}, "easy": {0, 3}}


def chosen(kind, to_negatives, count=1, seed=0):
    rng = np.random.default_rng(seed)
    return choose(kind, TO_POSITIVE, np.array(to_negatives, np.float32), MARGIN, count, rng)


@pytest.mark.parametrize("kind", MEMBERS)
def test_a_class_is_where_schroff_puts_it(kind, caplog):
    assert set(chosen(kind, SPREAD, count=2)) == MEMBERS[kind]
    assert not caplog.records


@pytest.mark.parametrize(("kind", "bounds"), [("hard", [0.5]), ("semi-hard", [0.5, 0.75]), ("easy", [0.75])])
def test_a_bound_belongs_to_no_class(kind, bounds, caplog):
    chosen(kind, bounds)
    assert f"0 of 1 negatives are {kind}" in caplog.text


@pytest.mark.parametrize(
    ("kind", "to_negatives", "nearest"),
    [
        ("easy", [0.3, 0.7, 0.6], 1),  # short of 0.75 by 0.45, 0.05, 0.15
        ("hard", [0.9, 0.7, 0.6], 2),  # beyond 0.5 by 0.4, 0.2, 0.1
        ("semi-hard", [0.3, 0.8, 1.5], 1),  # short of 0.5 by 0.2; beyond 0.75 by 0.05 and 0.75
        ("semi-hard", [0.4, 0.9, 1.5], 0),  # short of 0.5 by 0.1; beyond 0.75 by 0.15 and 0.75
    ],
)
def test_when_a_class_is_empty_the_nearest_to_it_is_taken_and_said(kind, to_negatives, nearest, caplog):
    assert chosen(kind, to_negatives) == [nearest]
    assert f"0 of 1 negatives are {kind}; the closest others fill the rest" in caplog.text


def test_when_a_class_is_too_small_its_members_come_first(caplog):
    assert chosen("hard", [0.9, 0.3, 0.6, 0.8], count=3) == [1, 2, 3]
    assert "1 of 3 negatives are hard" in caplog.text


@given(
    kind=st.sampled_from(sorted(MEMBERS)),
    to_negatives=st.lists(st.floats(0, 2, width=32), min_size=1, max_size=12),
    data=st.data(),
)
def test_as_many_distinct_negatives_are_chosen_as_were_asked_for(kind, to_negatives, data):
    count = data.draw(st.integers(1, len(to_negatives)))
    found = chosen(kind, to_negatives, count)
    assert len(set(found)) == len(found) == count
    assert set(found) <= set(range(len(to_negatives)))


# On the unit circle: all questions at 0, sentence i at (i + 1) / 10. d grows with the angle.
ANGLES = {i: (i + 1) / 10 for i in range(12)}


def on_a_circle(angles=ANGLES):
    vectors = {f"el question {i}": at_angle(0) for i in angles}
    return FakeEncoder(vectors | {f"el sentence {i}": at_angle(angle) for i, angle in angles.items()})


def distance(angle):
    return 2 * np.sin(angle / 2)


def sentences(kind, encoder, seed=0, **settings):
    """Yield the sentence numbers of positive and negative of each triplet, all sentences being looked at."""
    how = {"k": 6, "q": 6, "n_neg": 1, "negatives": kind, "margin": 0.3, **settings}
    for found in episodes_of(retrieval(), "el_el -> el_el", embed=encoder, seed=seed, **how).episode(0).sets:
        for triplet in found.examples:
            yield tuple(int(c.text.removeprefix("el sentence ")) for c in (triplet.positive, triplet.negative))


@pytest.mark.parametrize(
    ("kind", "belongs"),
    [("hard", lambda p, n: n < p), ("semi-hard", lambda p, n: p < n < p + 0.3), ("easy", lambda p, n: p + 0.3 < n)],
)
def test_drawn_negatives_are_of_the_class_wherever_the_class_has_members(kind, belongs):
    pairs = [pair for seed in range(10) for pair in sentences(kind, on_a_circle(), seed)]
    graded = [(distance(ANGLES[p]), distance(ANGLES[n])) for p, n in pairs]
    possible = {p: any(belongs(distance(p), distance(n)) for n in ANGLES.values()) for p in ANGLES.values()}
    assert len(pairs) == 10 * (6 + 6)
    for (p, _), (to_positive, to_negative) in zip(pairs, graded, strict=True):
        assert belongs(to_positive, to_negative) == possible[ANGLES[p]]


def test_the_margin_of_the_loss_separates_the_classes():
    for positive, negative in sentences("easy", on_a_circle(), margin=0.05):
        if positive < 11:
            assert distance(ANGLES[positive]) + 0.05 < distance(ANGLES[negative])
    for positive, negative in sentences("easy", on_a_circle(), margin=2.0):  # none is: the farthest comes nearest
        assert negative == (11 if positive != 11 else 10)


def test_graded_negatives_follow_the_present_encoder():
    encoder = on_a_circle()
    sampler = episodes_of(retrieval(), "el_el -> el_el", embed=encoder, k=6, n_neg=1, negatives="hard")
    before = sampler.episode(0)
    assert sampler.episode(0) == before
    encoder.vectors = on_a_circle({i: 1.3 - angle for i, angle in ANGLES.items()}).vectors  # near ones are far now
    after = sampler.episode(0)
    for now, then in zip(after.sets[0].examples, before.sets[0].examples, strict=True):
        positive, was, is_now = (int(c.id.removeprefix("el-s")) for c in (then.positive, then.negative, now.negative))
        assert now.question == then.question
        assert was < positive or positive == 0
        assert is_now > positive or positive == 11
    assert after != before


@pytest.mark.parametrize("wanted", [1, 2, 3])
def test_candidates_that_are_labelled_as_no_answers_come_first(wanted):
    rows = [{"query": f"q{i}", "document": f"d{i}", "language": "en", "relevance": 1} for i in range(8)]
    # One of them answers nothing, the other answers another question.
    wrong = ["only wrong", "d1"]
    rows += [{"query": "q0", "document": text, "language": "en", "relevance": 0} for text in wrong]
    data = load_labels(rows)
    sampler = TripletSampler(data, Episodes(k=8, n_neg=wanted), Loss())
    variant = Variant.parse("en_en")
    drawn = sampler.draw(variant, 8 * wanted, np.random.default_rng(0), None).examples
    own = [triplet.negative.text for triplet in drawn if triplet.question.text == "q0"]
    assert len(set(own)) == wanted
    assert set(own[:2]) <= set(wrong)
    others = {triplet.negative.text for triplet in drawn if triplet.question.text != "q0"}
    assert "only wrong" not in others
