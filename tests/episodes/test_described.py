"""Episodes in words: in half a line for a message, and whole with ids and texts."""

import pytest

from metasearch.config.arrangement import Arrangement, Variant
from metasearch.data.entailment import EntailmentPair
from metasearch.data.records import Candidate, Question, ScoredPair
from metasearch.data.translation import Translation
from metasearch.episodes.episode import Episode, LabelledSet, Triplet, brief, whole


def triplet(number):
    candidates = [Candidate(f"{mark}{number}", "ar", f"text {mark}{number}", "a") for mark in "pn"]
    return Triplet(Question(f"q{number}", "el", f"asked {number}", "a"), *candidates)


def episode(*examples, languages="el_ar"):
    variant = Variant.parse(languages)
    return Episode(Arrangement((variant,)), (LabelledSet(variant, examples),))


PAIR = ScoredPair("de-en", ("de", "en"), "eins", "one", 0.5, "row-7")
LONG = "a long sentence that goes on for more than forty characters"


@pytest.mark.parametrize(
    ("episodes", "said"),
    [
        ([episode(triplet(1))], "el_ar (q1/p1)"),
        ([episode(*map(triplet, range(4)))], "el_ar (q0/p0, q1/p1, q2/p2, ...)"),
        ([episode(triplet(i)) for i in range(5)], "el_ar (q0/p0), el_ar (q1/p1) and 3 more"),
        ([episode(PAIR, languages="de_en")], "de_en (de-en/row-7)"),
        # Without ids, the first text tells it from others.
        ([episode(Translation(LONG, "x", ("en", "de")), languages="en_de")], f"en_de ('{LONG[:40]}')"),
        ([episode(EntailmentPair("so", "then", "neutral"), languages="en_en")], "en_en ('so')"),
    ],
)
def test_a_message_names_languages_and_the_first_examples(episodes, said):
    assert brief(episodes) == said


def test_the_whole_of_an_episode_is_ids_and_texts():
    drawn = episode(triplet(1), triplet(2))
    texts = list(whole(drawn))
    assert texts[:3] == ["X  el_ar", "  q1/p1/n1", "  ? asked 1"]
    assert len(texts) == 1 + 2 * (1 + 3)
    translation = episode(Translation("one", "eins", ("en", "de")), languages="en_de")
    assert list(whole(translation)) == ["X  en_de", "  one  |  eins"]
