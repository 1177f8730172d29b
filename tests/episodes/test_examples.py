"""All kinds of examples say the same of themselves: texts with their roles, languages, a score where there is one."""

from dataclasses import replace

import pytest

from metasearch.data.entailment import EntailmentPair
from metasearch.data.records import Candidate, Question, ScoredPair, Translation
from metasearch.episodes.episode import Triplet

ASKED = Question("q", "el", "Where?", "article")
NEAR = Candidate("p", "ar", "Here. A paragraph.", "article", ("q",), "Here.")
FAR = Candidate("n", "hi", "There. A paragraph.", "article", (), "There.")
COLUMNS = {
    "question": ("question", "Where?"), "positive": ("candidate", NEAR.text), "negative": ("candidate", FAR.text),
}  # fmt: skip
KINDS = {
    Triplet(ASKED, NEAR, FAR): (
        COLUMNS,
        ("el", "ar", "hi"),
        None,
        ["? Where?", "  + ar: Here.", "  - hi: There."],
    ),
    Triplet(ASKED, NEAR, FAR, translation=replace(ASKED, language="de", text="Wo?")): (
        {**COLUMNS, "translation": ("question", "Wo?")},
        ("el", "ar", "hi", "de"),
        None,
        ["? Where?", "  = de: Wo?", "  + ar: Here.", "  - hi: There."],
    ),
    ScoredPair("en-de", ("de", "en"), "eins", "one", 0.5, "row"): (
        {"text1": ("text", "eins"), "text2": ("text", "one")},
        ("de", "en"),
        0.5,
        [f"{5 * 0.5:.1f}  eins  |  one"],
    ),
    Translation("one", "eins", ("en", "de")): (
        {"source": ("text", "one"), "target": ("text", "eins")},
        ("en", "de"),
        None,
        ["one  |  eins"],
    ),
    EntailmentPair("It rains.", "It is wet.", "entailment"): (
        {"premise": ("text", "It rains."), "hypothesis": ("text", "It is wet.")},
        ("en", "en"),
        None,
        ["entailment  It rains.  |  It is wet."],
    ),
}


@pytest.mark.parametrize(("example", "said"), KINDS.items(), ids=lambda value: type(value).__name__)
def test_a_kind_of_examples_says_its_texts_roles_languages_score_and_lines(example, said):
    columns, languages, score, lines = said
    roles_and_texts = zip(example.roles.values(), example.texts, strict=True)
    assert dict(zip(example.roles, roles_and_texts, strict=True)) == columns
    assert (example.languages, example.score, list(example.lines())) == (languages, score, lines)


def test_kinds_with_a_question_say_which_texts_are_labelled_as_its_answers():
    triplet = Triplet(ASKED, NEAR, FAR, (NEAR.text, "Over there."))
    assert triplet.answers == (NEAR.text, "Over there.")
    assert {e.answers for e in KINDS} == {()}
