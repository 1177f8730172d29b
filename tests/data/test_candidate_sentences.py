"""Candidates of a retrieval task as their sentences alone, without the paragraphs (`candidates: sentence`)."""

import pytest

from helpers.formats import read, task
from metasearch.data.benchmark import load_benchmark


@pytest.mark.slow
def test_candidates_without_their_paragraph_are_the_sentences_that_are_shown(real_data):
    whole = load_benchmark("lareqa", data=str(real_data))
    alone = load_benchmark("lareqa-sentences", data=str(real_data))
    assert alone.split.test.questions == whole.split.test.questions
    assert [c.text for c in alone.data.candidates] == [c.shown for c in whole.data.candidates]
    assert all(len(a.text) < len(w.text) for a, w in zip(alone.data.candidates, whole.data.candidates, strict=True))


def test_a_candidate_can_be_its_sentence_without_the_paragraph():
    whole = read("xquad-r")
    alone = whole.sentences()
    assert alone.questions == whole.questions
    assert [c.text for c in alone.candidates] == [c.shown for c in whole.candidates]
    assert [c.answers for c in alone.candidates] == [c.answers for c in whole.candidates]
    assert alone.fingerprint != whole.fingerprint
    with pytest.raises(ValueError, match="only a retrieval task has candidates"):
        task("csv", "de", "de-de", candidates="sentence")
