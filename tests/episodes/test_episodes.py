"""What an episode of a retrieval task is made of (MAML-Align paper, section 4.2, Table 4 and appendix C.3)."""

import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from math import ceil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.corpus import LANGUAGES, episodes_of, retrieval, similarity, variant
from metasearch.config.recipe import Episodes, Loss
from metasearch.config.seeding import stream
from metasearch.data.records import Candidate
from metasearch.episodes.triplets import TripletSampler
from metasearch.errors import DataError

GREEK = "el_el -> el_ar -> el_{ar,el,hi}"
HINDI = "hi_hi -> hi_de -> hi_{ar,de,hi}"


def draw(data, text, count, n_neg=3, seed=0):
    sampler = TripletSampler(data, Episodes(n_neg=n_neg), Loss())
    sampler.check(variant(text), count, "meta-train")
    return sampler.draw(variant(text), count, stream(seed, "set"), like=None).examples


def test_an_episode_is_the_same_drawn_alone_or_in_any_order():
    first = episodes_of(retrieval(), GREEK, HINDI)
    in_order = [first.episode(i) for i in range(6)]
    backwards = [first.episode(i) for i in reversed(range(6))]
    alone = [episodes_of(retrieval(), GREEK, HINDI).episode(i) for i in range(6)]
    assert in_order == backwards[::-1] == alone


def test_arrangements_take_turns():
    sampler = episodes_of(retrieval(), GREEK, HINDI)
    drawn = [str(sampler.episode(i).arrangement) for i in range(7)]
    assert drawn == [GREEK, HINDI, GREEK, HINDI, GREEK, HINDI, GREEK]


@pytest.mark.parametrize("arrangement", ["el_el -> ar_ar", "el_el -> el_ar", "el_ar -> el_{ar,el}", GREEK, HINDI])
def test_each_set_is_in_the_languages_of_its_variant(arrangement):
    episode = episodes_of(retrieval(), arrangement).episode(0)
    assert " -> ".join(str(found.variant) for found in episode.sets) == arrangement
    for found in episode.sets:
        assert {t.question.language for t in found.examples} == {found.variant.query}
        assert {t.positive.language for t in found.examples} == set(found.variant.candidates)
        assert {t.negative.language for t in found.examples} <= set(found.variant.candidates)


@pytest.mark.parametrize(("k", "q", "n_neg"), [(8, 4, 3), (1, 1, 1), (5, 7, 2), (3, 8, 5)])
def test_the_first_set_has_k_examples_and_each_further_one_q(k, q, n_neg):
    episode = episodes_of(retrieval(), GREEK, k=k, q=q, n_neg=n_neg).episode(0)
    assert [len(found.examples) for found in episode.sets] == [k, q, q]


@pytest.mark.parametrize("text", ["el_{ar,el}", "el_{ar,el,hi}"])
def test_negatives_are_spread_evenly_over_the_candidate_languages(text):
    drawn = Counter(t.negative.language for seed in range(100) for t in draw(retrieval(), text, 12, seed=seed))
    codes = variant(text).candidates
    assert drawn.keys() == set(codes)
    assert all(drawn[code] == pytest.approx(1200 / len(codes), rel=0.15) for code in codes)


def test_a_question_with_two_answer_sentences_gets_either_as_its_positive():
    data = retrieval(5, ("el",))
    second = Candidate("el-s0b", "el", "el sentence 0, said otherwise", "a0", ("q0",))
    data = replace(data, candidates=(*data.candidates, second))
    triplets = [t for seed in range(40) for t in draw(data, "el_el", 5, n_neg=1, seed=seed) if t.question.id == "q0"]
    assert {t.positive.id for t in triplets} == {"el-s0", "el-s0b"}
    assert not {t.negative.id for t in triplets} & {"el-s0", "el-s0b"}


def repeated(data, texts):
    """Return the data with some of its candidates' texts put in place of others, by id."""
    return replace(data, candidates=tuple(replace(c, text=texts.get(c.id, c.text)) for c in data.candidates))


@pytest.mark.parametrize("text", ["el_el", "el_{ar,el}"])
def test_a_sentence_with_the_text_of_ones_own_answer_is_no_negative_whatever_else_it_answers(text):
    """Sentence 1 answers q1 alone, and says what sentence 0, the answer to q0, says."""
    codes = variant(text).candidates
    data = repeated(retrieval(4, ("ar", "el")), {f"{code}-s1": f"{code} sentence 0" for code in codes})
    drawn = [t for seed in range(40) for t in draw(data, text, 4 * len(codes), n_neg=1, seed=seed)]
    asked = {t.question.id: {o.negative.text for o in drawn if o.question == t.question} for t in drawn}
    two, three = ({f"{code} sentence {i}" for code in codes} for i in (2, 3))
    assert asked["q0"] == asked["q1"] == two | three
    assert asked["q2"] == {f"{code} sentence 0" for code in codes} | three


def test_the_negatives_of_a_question_have_different_texts():
    """Of six sentences, 1 and 2 say the same, so that q0 has four negatives and not five."""
    data = repeated(retrieval(6, ("el",)), {"el-s2": "el sentence 1"})
    for seed in range(20):
        triplets = [t for t in draw(data, "el_el", 6 * 3, n_neg=3, seed=seed) if t.question.id == "q0"]
        assert len({t.negative.text for t in triplets}) == len(triplets) == 3
    episodes_of(data, "el_el -> el_el", k=1, q=1, n_neg=4)
    with pytest.raises(DataError, match=r"5 negatives in el need as many different answers .*; there are 4\."):
        episodes_of(data, "el_el -> el_el", k=1, q=1, n_neg=5)


@pytest.mark.parametrize(
    ("arrangement", "sizes", "phase", "says"),
    [
        ("el_el -> el_ar", {"k": 40}, "meta-train", r"meta-train, episodes\.k=40: .* need 14 questions .* are 12"),
        ("el_el -> el_ar", {"q": 40}, "meta-valid", r"meta-valid, episodes\.q=40: .* need 14 questions .* are 12"),
        ("sw_sw -> el_ar", {}, "meta-train", r"meta-train, episodes\.k=8: .* of sw_sw .* there are 0"),
        ("el_el -> el_{ar,sw}", {}, "meta-valid", r"meta-valid, episodes\.q=4: .* answers in ar, sw; there are 0"),
        (
            "el_el -> el_ar",
            {"n_neg": 12},
            "meta-train",
            r"meta-train, .* 12 negatives in el .* are 11.*episodes\.n_neg",
        ),
    ],
)
def test_data_that_is_too_small_is_named_with_its_phase_and_key(arrangement, sizes, phase, says):
    with pytest.raises(DataError, match=says):
        episodes_of(retrieval(), arrangement, phase=phase, **sizes)


@st.composite
def drawn_sets(draw_from):
    """Make a corpus in which questions may share answers, and draw a set from it."""
    answer_of = draw_from(st.lists(st.integers(0, 7), min_size=6, max_size=12))
    n_neg = draw_from(st.integers(1, max(1, len(set(answer_of)) - 1)))
    candidates = draw_from(st.lists(st.sampled_from(LANGUAGES), min_size=1, max_size=3, unique=True))
    count = draw_from(st.integers(1, len(answer_of) * n_neg * len(candidates)))
    data = retrieval(len(answer_of), LANGUAGES, answer_of)
    return candidates, n_neg, count, data, draw_from(st.integers(0, 99))


@given(drawn_sets())
def test_every_set_of_every_corpus_keeps_its_promises(drawn):
    candidates, n_neg, count, data, seed = drawn
    if len(data.candidates) == 3 * len(LANGUAGES):  # one sentence answers everything: there is no negative
        with pytest.raises(DataError):
            draw(data, f"el_{{{','.join(candidates)}}}", count, n_neg, seed)
        return
    triplets = draw(data, f"el_{{{','.join(candidates)}}}", count, n_neg, seed)
    assert len(triplets) == count
    assert all(t.question.id in t.positive.answers for t in triplets)
    assert not any(t.question.id in t.negative.answers for t in triplets)
    stand = {candidate for t in triplets for candidate in (t.positive, t.negative)}
    assert all((c.text in t.answers) == (t.question.id in c.answers) for t in triplets for c in stand)
    assert len({(t.question, t.positive, t.negative) for t in triplets}) == count
    assert len({t.question for t in triplets}) <= ceil(count / (n_neg * len(candidates)))
    shares = Counter(t.positive.language for t in triplets)
    assert max(shares[code] for code in candidates) - min(shares[code] for code in candidates) <= 1
    questions = Counter(t.question for t in triplets).values()
    assert max(questions) - min(questions) <= len(candidates)


@pytest.mark.slow
def test_an_episode_is_the_same_in_another_process_with_another_hash_seed():
    code = (
        "from helpers.corpus import episodes_of, retrieval;"
        f"s = episodes_of(retrieval(), {GREEK!r}, {HINDI!r}, seed=7); print([s.episode(i) for i in range(4)])"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "5", "PYTHONPATH": str(Path(__file__).parents[1])}
    found = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    here = episodes_of(retrieval(), GREEK, HINDI, seed=7)
    assert found.stdout.strip() == str([here.episode(i) for i in range(4)])


def test_sentences_that_answer_nothing_are_no_negatives():
    data = retrieval(3, ("el",), fillers=50)
    drawn = {t.negative.text for seed in range(30) for t in draw(data, "el_el", 3, n_neg=1, seed=seed)}
    assert drawn == {f"el sentence {i}" for i in range(3)}


ENGLISH = "en_en -> ar_en -> en_{ar,en,es}"


def shares(found):
    return Counter(pair.pair for pair in found.examples)


def test_a_set_in_several_languages_takes_them_in_turn():
    x, y, z = episodes_of(similarity(), ENGLISH, k=8, q=7).episode(0).sets
    assert shares(x) == {"en-en": 8}
    assert shares(y) == {"ar-en": 7}
    assert shares(z) == {"ar-en": 3, "en-en": 2, "es-en": 2}  # 7 = 3 + 2 + 2, in the order written
    assert [pair.pair for pair in z.examples][:4] == ["ar-en", "en-en", "es-en", "ar-en"]


@pytest.mark.parametrize("written", ["ar_en -> ar_en", "en_ar -> en_ar"])
def test_the_order_of_two_languages_does_not_matter(written):
    episode = episodes_of(similarity(rows=4), written, k=4, q=4).episode(0)
    for found in episode.sets:
        assert {pair.group for pair in found.examples} == {f"row {i}" for i in range(4)}
        assert {pair.languages for pair in found.examples} == {("ar", "en"), ("en", "ar")}


@given(rows=st.integers(2, 12), seed=st.integers(0, 99), data=st.data())
def test_no_pair_is_drawn_twice_in_a_set(rows, seed, data):
    size = data.draw(st.integers(1, rows))
    for found in episodes_of(similarity(rows), ENGLISH, seed=seed, k=size, q=size).episode(0).sets:
        assert len(set(found.examples)) == len(found.examples) == size
