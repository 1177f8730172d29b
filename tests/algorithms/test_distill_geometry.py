"""The Matryoshka term of a distillation (Kusupati et al. 2022)."""

import math

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from helpers.reference import gradients, learned, weights_of
from helpers.small import cosine, translations
from metasearch.algorithms.distill import Distill, matryoshka
from metasearch.config.recipe import Loss
from metasearch.config.roles import MaxLength
from metasearch.config.seeding import stream
from metasearch.encoders.builtin import tiny

EXACT = 1e-10
# A source and a translation stand twice, and one pair is the same text on both sides.
PAIRS = [
    ("a dog", "ein Hund"),
    ("the cat sleeps under the old house", "die Katze schläft unter dem alten Haus"),
    ("a dog", "der Hund"),
    ("the dog", "der Hund"),
    ("taxi", "taxi"),
]


class Drawn:
    """A vector drawn for each text."""

    def vectors(self, texts):
        return np.stack([stream(0, "target", text).normal(size=tiny.DIMENSIONS).astype(np.float32) for text in texts])


@pytest.fixture(scope="module")
def encoder():
    made = tiny.build(MaxLength(text=12))
    made.embedder.double()
    return made


def by_hand(encoder, dimensions, target="source", share=1.0):
    """Return the term as a sum over all ordered pairs of the vectors of a batch."""
    read = [i for i in range(len(PAIRS)) if int((i + 1) * share) > int(i * share)]
    # The text that the student reads, and the text whose vector is its target.
    rows = [(t, s if target == "source" else t) for s, t in PAIRS] + [(PAIRS[i][0],) * 2 for i in read]
    student = [encoder.embedder(encoder.features([text], "text"), "pooled")[0] for text, _ in rows]
    teacher = [torch.from_numpy(Drawn().vectors([text])[0]).double() for _, text in rows]
    n, total = len(rows), torch.zeros((), dtype=torch.float64)
    for d in dimensions:
        for i in range(n):
            for j in range(n):
                error = (cosine(teacher[i], teacher[j]) - cosine(student[i][:d], student[j][:d])) ** 2
                total = total + error / n**2 / len(dimensions)
    return total


@pytest.mark.parametrize(
    "options",
    [
        {"dimensions": [8, 32]},
        {"dimensions": [4, tiny.DIMENSIONS], "source_share": 0.4},
        {"dimensions": [8], "contrast": "infonce", "source_share": 0.5},
    ],
)
def test_the_term_and_its_gradient_are_the_papers_sum(encoder, options):
    """The rest of the loss is the loss of the same stage without dimensions."""
    plain = {key: value for key, value in options.items() if key != "dimensions"}
    rest = Distill(encoder, Loss(), Distill.Options(**plain), Drawn()).outer_loss([translations(*PAIRS)]).total
    term = by_hand(encoder, options["dimensions"], plain.get("target", "source"), plain.get("source_share", 1.0))
    total, gradient = learned(Distill(encoder, Loss(), Distill.Options(**options), Drawn()), [translations(*PAIRS)])
    assert total == pytest.approx((rest + term).item(), rel=EXACT)
    wanted = gradients(rest + term, weights_of(encoder.embedder))
    largest = max(value.norm() for value in wanted.values())
    for name, value in wanted.items():
        assert (gradient[name] - value).norm() <= EXACT * max(value.norm(), 1e-3 * largest), name


def test_a_cut_vector_learns_the_similarities_of_the_whole_ones():
    """Cut to one number, unit vectors of two texts have cosine 1 or −1; the teacher's have cos 60° = 1/2."""
    teacher = torch.tensor([[1.0, 0.0], [0.5, math.sqrt(0.75)]], dtype=torch.float64)
    student = torch.tensor([[3.0, 4.0, 0.0], [-1.0, 0.0, 2.0]], dtype=torch.float64)
    whole = (-3 / (5 * math.sqrt(5)) - 0.5) ** 2  # twice among four pairs, of which two are a vector with itself
    cut = (-1 - 0.5) ** 2
    found = matryoshka(teacher, student, [1, 3])
    assert found.item() == pytest.approx((cut * 2 / 4 + whole * 2 / 4) / 2)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"dimensions": [8, 4]}, r"each number once, the smallest first: \[4, 8\]"),
        ({"dimensions": [4, 4]}, r"each number once, the smallest first: \[4\]"),
        ({"dimensions": [0, 4]}, "greater than or equal to 1"),
    ],
)
def test_options_out_of_range_are_refused(options, says):
    with pytest.raises(ValidationError, match=says):
        Distill.Options(**options)
