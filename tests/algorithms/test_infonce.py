"""InfoNCE in the batch: which answers are wrong, and its value worked out; `test_aligned` has its gradient."""

import math

import pytest
import torch

from helpers.small import SmallEncoder, episode
from metasearch.algorithms.fine_tune import FineTune
from metasearch.algorithms.losses.base import EmbeddedSet
from metasearch.algorithms.losses.infonce import InfoNCE
from metasearch.config.recipe import Loss
from metasearch.errors import ConfigError

ANGLE = {"q": 0.0, "r": 1.0, "p": 0.2, "s": 1.5, "n": 0.7, "m": 2.2}
"""Texts as angles on the unit circle, so that every cosine is that of a difference."""
TEMPERATURE = 0.5
INFONCE = Loss(name="infonce", temperature=TEMPERATURE)


def loss_of(triplets, answers):
    """Return the loss of triplets of texts, a character each; `answers` are the labelled ones of each, if any."""
    texts = dict(zip(("question", "positive", "negative"), zip(*triplets, strict=True), strict=True))
    vectors = {
        name: torch.tensor([[math.cos(ANGLE[t]), math.sin(ANGLE[t])] for t in column], dtype=torch.float64)
        for name, column in texts.items()
    }
    numbers = {name: torch.tensor([[*ANGLE].index(t) for t in column]) for name, column in texts.items()}
    labelled = answers and torch.tensor([[text in each for text in ANGLE] for each in answers])
    batch = EmbeddedSet(vectors, numbers, answers=labelled)
    return InfoNCE(InfoNCE.Options(temperature=TEMPERATURE))(batch).item()


def entropy(question, right, *wrong):
    """Return −log of the share of the right answer among all, exp(cos / temperature) each."""
    score = {text: math.exp(math.cos(ANGLE[question] - ANGLE[text]) / TEMPERATURE) for text in (right, *wrong)}
    return -math.log(score[right] / sum(score.values()))


@pytest.mark.parametrize(
    ("triplets", "answers", "rows"),
    [
        # Wrong answers are the positives of other questions and all negatives.
        ("qpn rsm", None, "qpsnm rspnm"),
        # A positive with the text of one's own is no wrong answer,
        ("qpn rpm", None, "qpnm rpnm"),
        # nor is another answer to the same question, such as a translation, or where it is another's negative,
        ("qpn qsn rms", None, "qpmn qsmn rmpsn"),
        # nor a labelled answer that no example has as its positive: s answers q, and is the negative of r alone.
        ("qpn rms", ["ps", ""], "qpnm rmpsn"),
        # A wrong answer that stands often counts once.
        ("qpn qpm rsn", None, "qpsnm qpsnm rspnm"),
        # A label of one example holds for all that ask its question.
        ("qpn qmn rns", ["", "s", ""], "qpn qmn rnpsm"),
    ],
)
def test_the_loss_is_the_mean_entropy_of_the_right_among_the_wrong_answers(triplets, answers, rows):
    """Rows: a question, its answer, and the wrong ones."""
    expected = [entropy(*row) for row in rows.split()]
    assert loss_of(triplets.split(), answers) == pytest.approx(sum(expected) / len(expected), rel=1e-12)


def test_scored_pairs_have_no_questions():
    learner = FineTune(SmallEncoder(), INFONCE, FineTune.Options())
    with pytest.raises(ConfigError, match="the loss is taken of question, positive; the examples have text1, text2"):
        learner.outer_loss([episode("a", "pairs")])
