"""Mined negatives: the nearest candidates of all, less those that may answer (Moreira et al. 2024, TopK-PercPos)."""

from math import cos

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from helpers.corpus import FakeEncoder, at_angle, retrieval, variant
from metasearch.config.recipe import Episodes, Loss
from metasearch.episodes.triplets import NearestCandidates, TripletSampler

DATA = retrieval(questions=6, languages=("de", "el"), fillers=2)
# All questions at 0. Sentence i of German at (i + 1) / 10, of Greek a little further; fillers are further than all.
ANGLES = {f"de sentence {i}": (i + 1) / 10 for i in range(6)} | {f"el sentence {i}": (i + 1.5) / 10 for i in range(6)}
ANGLES |= {f"{code} filler {i}": 1 + i / 10 + (code == "el") / 20 for code in ("de", "el") for i in range(2)}


def encoder(angles=ANGLES):
    asked = {question.text: at_angle(0) for question in DATA.questions}
    return FakeEncoder(asked | {text: at_angle(angle) for text, angle in angles.items()})


def near(number, languages=("de", "el"), margin=0.0, own=(), angles=ANGLES):
    """Return the texts near to German question `number`, whose answer is the German sentence of that number."""
    question = DATA.questions_by_language["de"][number]
    (positive,) = (each for each in DATA.candidates if each.text == f"de sentence {number}")
    found = NearestCandidates(DATA, ("de", "el"), encoder(angles).encode).near(
        question, positive, {positive.text, *own}, languages, margin
    )
    return [each.text for each in found]


def test_candidates_further_than_the_answer_come_by_nearness_in_all_languages_without_other_answers():
    assert near(4) == ["el sentence 4", "de sentence 5", "el sentence 5", *(f"{c} filler {i}" for i, c in FILLERS)]
    assert near(4, languages=("de",)) == ["de sentence 5", "de filler 0", "de filler 1"]
    assert "el sentence 4" not in near(4, own=["el sentence 4"])


FILLERS = [(0, "de"), (0, "el"), (1, "de"), (1, "el")]


def test_what_is_nearer_than_the_margin_allows_may_be_an_answer_and_is_left_out():
    # The answer is at 0.1; of what is further, only what has a cosine of at most (1 − m) cos 0.1 is far enough.
    for margin in (0.0, 0.05, 0.2, 0.6):
        allowed = (1 - margin) * cos(0.1)
        expected = [text for text, angle in sorted(ANGLES.items(), key=lambda item: item[1]) if cos(angle) <= allowed]
        assert near(0, margin=margin) == [text for text in expected if text != "de sentence 0"]


def test_a_cosine_below_zero_has_its_margin_below_it_too():
    # cos 2 = -0.416: less m |cos 2| is -0.437 at m = 0.05, so that cos 2.02 = -0.434 is too near and cos 2.03 is not.
    angles = ANGLES | {"de sentence 0": 2, "el sentence 1": 2.02, "el sentence 2": 2.03}
    assert near(0, margin=0.05, angles=angles) == ["el sentence 2"]


def sampler(embed=None, **settings):
    how = Episodes(**{"k": 4, "q": 4, "n_neg": 1, "negatives": "mined", "relative_margin": 0, **settings})
    nearest = NearestCandidates(DATA, ("de", "el"), embed.encode) if embed else None
    return TripletSampler(DATA, how, Loss(), embed.encode if embed else None, nearest)


def test_everything_is_embedded_once_whatever_is_drawn():
    embed = encoder()
    drawn = sampler(embed)
    for seed in range(5):
        drawn.draw(variant("de_{de,el}"), 4, np.random.default_rng(seed), None)
    assert set(embed.times_encoded.values()) == {1}


@given(seed=st.integers(0, 2**32), n_neg=st.integers(1, 3), pool=st.integers(1, 6))
def test_mined_negatives_are_among_the_nearest_and_answer_nothing_of_the_question(seed, n_neg, pool):
    drawn = sampler(encoder(), n_neg=n_neg, negative_pool=pool).draw(
        variant("de_{de,el}"), 6, np.random.default_rng(seed), None
    )
    for triplet in drawn.examples:
        number = int(triplet.question.id.removeprefix("q"))
        assert triplet.question.id not in triplet.negative.answers
        # Its Greek answer is nearer than the next German sentence, so that both have the same negatives.
        nearest = near(number, own=[f"el sentence {number}"])
        assert triplet.negative.text in nearest[: max(pool, n_neg)]


def test_where_too_few_are_far_enough_random_ones_are_taken_and_said(caplog):
    far = {text: angle for text, angle in ANGLES.items() if "filler" not in text}
    plain = retrieval(questions=6, languages=("de", "el"), fillers=0)
    embed = encoder(far | {"de sentence 5": 3.1, "el sentence 5": 3.1})
    nearest = NearestCandidates(plain, ("de",), embed.encode)
    how = Episodes(k=6, n_neg=2, negatives="mined", relative_margin=1.5)
    drawn = TripletSampler(plain, how, Loss(), embed.encode, nearest).draw(
        variant("de_de"), 6, np.random.default_rng(0), None
    )
    assert "only 1 of 2 mined negatives are far enough; the rest are random" in caplog.text
    of_each = {}
    for triplet in drawn.examples:
        of_each.setdefault(triplet.question.id, []).append(triplet.negative.text)
    assert all(len(set(texts)) == 2 for texts in of_each.values())
