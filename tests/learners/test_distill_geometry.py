"""Terms of a distillation on similarities: cut vectors (Kusupati et al. 2022), spread (Zhang et al. 2017)."""

import math
from functools import cache
from itertools import permutations

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from helpers.reference import gradients, learned, weights_of
from metasearch.data.translation import Translation
from metasearch.encoders.builtin import tiny
from metasearch.encoders.matryoshka import trained_dimensions
from metasearch.episodes.episode import Episode, LabelledSet
from metasearch.errors import ConfigError
from metasearch.learners.distill import Distill
from metasearch.learners.losses.matryoshka import matryoshka
from metasearch.learners.losses.spread_out import moments, spread_out
from metasearch.spec.arrangement import Arrangement
from metasearch.spec.recipe import Loss, MaxLength
from metasearch.spec.seeding import stream

EXACT = 1e-10
VARIANT = Arrangement.parse("en_de -> en_de").variants[0]
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


def episode():
    examples = tuple(Translation(source, target, ("en", "de")) for source, target in PAIRS)
    return Episode(Arrangement((VARIANT,)), (LabelledSet(VARIANT, examples),))


def cosine(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).sum() / ((a * a).sum().sqrt() * (b * b).sum().sqrt())


def by_hand(encoder, dimensions, weights, spread, target="source", share=1.0):
    """Return the sums of both papers over all ordered pairs of the vectors that a batch has."""
    read = [i for i in range(len(PAIRS)) if int((i + 1) * share) > int(i * share)]
    # Who is read, whose vector is the target, and the source that makes texts related.
    rows = [(t, s if target == "source" else t, s) for s, t in PAIRS] + [(PAIRS[i][0],) * 3 for i in read]
    student = [encoder.embedder(encoder.features([row[0]], "text"), "pooled")[0] for row in rows]
    teacher = [torch.from_numpy(Drawn().vectors([row[1]])[0]).double() for row in rows]
    n, total = len(rows), torch.zeros((), dtype=torch.float64)
    for d, weight in zip(dimensions, weights, strict=True):
        for i in range(n):
            for j in range(n):
                wanted = cosine(teacher[i], teacher[j])
                error = (wanted - cosine(student[i][:d], student[j][:d])) ** 2
                total = total + weight * error / n**2 / len(dimensions)
    pairs = [(i, j) for i, j in permutations(range(n), 2) if rows[i][0] != rows[j][0] and rows[i][2] != rows[j][2]]
    found = [cosine(student[i], student[j]) for i, j in pairs]
    first, second = sum(found) / len(found), sum(c**2 for c in found) / len(found)
    return total, spread * (first**2 + torch.clamp(second - 1 / tiny.DIMENSIONS, min=0))


@pytest.mark.parametrize(
    ("options", "sums"),
    [
        ({"dimensions": [8, 32], "dimension_weights": [1, 0.5]}, ((8, 32), (1, 0.5), 0)),
        ({"dimensions": [8], "target": "own"}, ((8,), (1,), 0)),
        ({"dimensions": [4, tiny.DIMENSIONS], "source_share": 0.4}, ((4, tiny.DIMENSIONS), (1, 1), 0)),
        ({"dimensions": [16], "source_share": 0}, ((16,), (1,), 0)),
        ({"spread_weight": 0.7}, ((), (), 0.7)),
        ({"dimensions": [8], "spread_weight": 2, "contrast": "infonce", "source_share": 0.5}, ((8,), (1,), 2)),
    ],
)
def test_terms_and_gradients_are_those_of_the_papers_sums(encoder, options, sums):
    """The rest of the loss is that of the same stage without these options."""
    added = ("dimensions", "dimension_weights", "spread_weight")
    plain = {key: value for key, value in options.items() if key not in added}
    expected = Distill(encoder, Loss(), Distill.Options(**plain), Drawn()).outer_loss([episode()]).total
    expected = expected + sum(by_hand(encoder, *sums, plain.get("target", "source"), plain.get("source_share", 1.0)))
    total, gradient = learned(Distill(encoder, Loss(), Distill.Options(**options), Drawn()), [episode()])
    assert total == pytest.approx(expected.item(), rel=EXACT)
    wanted = gradients(expected, weights_of(encoder.embedder))
    largest = max(value.norm() for value in wanted.values())
    for name, value in wanted.items():
        assert (gradient[name] - value).norm() <= EXACT * max(value.norm(), 1e-3 * largest), name


def test_a_cut_vector_learns_the_similarities_of_the_whole_ones():
    """Cut to one number, unit vectors of two texts have cosine 1 or −1; the teacher's have cos 60° = 1/2."""
    teacher = torch.tensor([[1.0, 0.0], [0.5, math.sqrt(0.75)]], dtype=torch.float64)
    student = torch.tensor([[3.0, 4.0, 0.0], [-1.0, 0.0, 2.0]], dtype=torch.float64)
    whole = (-3 / (5 * math.sqrt(5)) - 0.5) ** 2  # twice among four pairs, of which two are a vector with itself
    cut = (-1 - 0.5) ** 2
    found = matryoshka(teacher, student, [1, 3], [0.25, 1.0])
    assert found.item() == pytest.approx((0.25 * cut * 2 / 4 + whole * 2 / 4) / 2)


def test_an_order_of_the_teachers_numbers_changes_nothing():
    """So that nothing of a teacher's vector needs to be cut."""
    generator = torch.Generator().manual_seed(0)
    teacher, student = (torch.randn(5, 6, generator=generator, dtype=torch.float64) for _ in range(2))
    turned = torch.linalg.qr(torch.randn(6, 6, generator=generator, dtype=torch.float64)).Q
    found = [matryoshka(each, student, [2, 4], [1, 1]).item() for each in (teacher, teacher @ turned)]
    assert found[0] == pytest.approx(found[1], rel=1e-12)


def test_spread_out_is_the_squared_mean_and_the_excess_of_the_mean_square_over_1_by_d():
    """Zhang et al. 2017, section 3.3, of cosines 0.6, 0.8 and 0 in two dimensions, each in both orders."""
    vectors = torch.tensor([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]], dtype=torch.float64)
    first, second = (0.6 + 0.8 + 0) / 3, (0.36 + 0.64 + 0) / 3
    alone = torch.eye(3, dtype=torch.bool)
    assert [m.item() for m in moments(vectors, alone)] == pytest.approx([first, second])
    assert spread_out(vectors, alone).item() == pytest.approx(first**2 + max(0.0, second - 1 / 2))
    # Without the pair of cosine 0 the mean square is 0.5, no more than 1/2.
    alone[0, 2] = alone[2, 0] = True
    assert spread_out(vectors, alone).item() == pytest.approx(((0.6 + 0.8) / 2) ** 2)


def test_a_batch_of_related_texts_alone_has_no_spread_to_learn():
    assert spread_out(torch.ones(2, 3), torch.ones(2, 2, dtype=torch.bool)).item() == 0


@cache
def trained(dimensions=(), spread_weight=0.0, steps=15, output="pooled"):
    """Return a tiny encoder after some steps towards drawn targets, and its vectors of the batch's texts."""
    torch.manual_seed(0)
    student = tiny.build(MaxLength(text=12))
    learner = Distill(student, Loss(), Distill.Options(dimensions=dimensions, spread_weight=spread_weight), Drawn())
    learner.options = learner.options.model_copy(update={"output": output})
    learner.begin(steps)
    optimiser = torch.optim.Adam([p for _, p in learner.named_parameters()], lr=2e-3)
    for _ in range(steps):
        optimiser.zero_grad()
        learner.outer_loss([episode()]).total.backward()
        optimiser.step()
    texts = [s for s, _ in PAIRS] + [t for _, t in PAIRS]
    return student, torch.from_numpy(student.encode(texts, "text", "pooled"))


def test_the_spread_out_term_lowers_the_second_moment_of_a_student():
    """Of texts with different sources; a term of nothing but likeness would otherwise leave them where they are."""
    sources = [s for s, _ in PAIRS] * 2
    related = torch.tensor([[a == b for b in sources] for a in sources])
    before, after = (moments(trained((), weight)[1], related)[1].item() for weight in (0.0, 3.0))
    assert after < 0.7 * before


def test_cut_vectors_of_a_student_come_nearer_to_the_teachers_similarities():
    teacher = torch.from_numpy(Drawn().vectors([s for s, _ in PAIRS] * 2))
    plain, cut = (matryoshka(teacher, trained(dimensions)[1], [4], [1]).item() for dimensions in ((), (4, 8)))
    assert cut < 0.7 * plain


def test_the_encoder_notes_to_what_its_vectors_may_be_cut():
    assert trained_dimensions(trained((4, 8))[0].model) == (4, 8)
    assert trained_dimensions(trained(())[0].model) == ()
    assert trained_dimensions(trained((4, 8), steps=0, output="embedding")[0].model) == ()  # of words, not vectors


def test_more_numbers_than_vectors_have_are_refused(encoder):
    with pytest.raises(ConfigError, match=rf"^options.dimensions: 999: .* have {tiny.DIMENSIONS} numbers; choose"):
        Distill(encoder, Loss(), Distill.Options(dimensions=[8, 999]), Drawn())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"dimensions": [8, 4]}, r"each number once, the smallest first: \[4, 8\]"),
        ({"dimensions": [4, 4]}, r"each number once, the smallest first: \[4\]"),
        ({"dimensions": [0, 4]}, "greater than or equal to 1"),
        ({"dimensions": [4, 8], "dimension_weights": [1]}, "1 weights for 2 dimensions; give one for each"),
        ({"dimension_weights": [1]}, "1 weights for 0 dimensions"),
        ({"spread_weight": -1}, "greater than or equal to 0"),
    ],
)
def test_options_out_of_range_are_refused(options, says):
    with pytest.raises(ValidationError, match=says):
        Distill.Options(**options)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"dimensions": [8]}, r"options.dimensions: \[8\] is over sentences"),
        ({"spread_weight": 0.1}, "options.spread_weight: 0.1 is over sentences"),
        ({"match_weight": 0}, "options.match_weight: 0.0 is over sentences"),
    ],
)
def test_tokens_have_no_terms_of_sentences(options, says):
    with pytest.raises(ConfigError, match=f"^{says}"):
        Distill.wanted(Distill.Options(output="tokens", target="own", **options))


def test_without_the_squared_error_another_term_must_be_there(encoder):
    with pytest.raises(ConfigError, match=r"^options\.match_weight: 0 leaves no term"):
        Distill.wanted(Distill.Options(match_weight=0))
    found = Distill(encoder, Loss(), Distill.Options(match_weight=0, dimensions=[8]), Drawn()).outer_loss([episode()])
    assert found.total.item() == pytest.approx(found.terms["matryoshka"])
    assert found.terms["match"] > 0  # still in the log


def test_what_is_not_asked_for_is_not_written():
    """A recipe from before there were these options has the same text."""
    assert list(Distill.Options().model_dump()) == [
        "output", "target", "contrast", "contrast_weight", "temperature", "source_share",
    ]  # fmt: skip
    asked = {"match_weight": 0.0, "dimensions": [4, 8], "dimension_weights": [1.0, 2.0], "spread_weight": 0.5}
    written = Distill.Options(**asked).model_dump()
    assert {key: written[key] for key in asked} == asked
    assert Distill.Options(**written) == Distill.Options(**asked)
