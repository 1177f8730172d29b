"""A stage of distillation, against losses and gradients written out in float64, a text and a token at a time."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from helpers.reference import assert_same, gradients, learned, weights_of
from helpers.small import cosine, translation_episode
from metasearch.algorithms.base import TargetSpec
from metasearch.algorithms.distill import Distill, matryoshka
from metasearch.config.recipe import Loss
from metasearch.config.roles import MaxLength
from metasearch.config.seeding import stream
from metasearch.encoders.builtin import tiny
from metasearch.encoders.encoder import Encoder
from metasearch.errors import ConfigError

EXACT = 1e-10
# Texts of several lengths; a source and a translation stand twice, and one pair is the same text on both sides.
PAIRS = [
    ("a dog", "ein Hund"),
    ("the cat sleeps under the old house by the sea", "die Katze schläft unter dem alten Haus am Meer"),
    ("a dog", "der Hund"),
    ("the dog", "der Hund"),
    ("taxi", "taxi"),
]
TEXTS = list(dict.fromkeys([source for source, _ in PAIRS] + [target for _, target in PAIRS]))
COMBINATIONS = [
    ("sentence", "own", "soft"),
    ("sentence", "source", "infonce"),
    ("pooled", "source", "none"),
    ("pooled", "source", "infonce"),
    ("pooled", "own", "none"),
    ("pooled", "source", "ce-hard"),
    ("embedding", "source", "infonce"),
    ("states", "own", "none"),
]  # fmt: skip


class Given:
    """Targets drawn for each text, or for each of its tokens; remembers which texts it was asked for."""

    def __init__(self, encoder, output):
        self.encoder, self.output = encoder, output
        self.asked = []

    def vectors(self, texts):
        self.asked.append(list(texts))
        return np.concatenate([self.of(text) for text in texts])

    def of(self, text):
        rows = int(self.encoder.lengths([text], "text")[0]) if self.output == "states" else 1
        return stream(0, "target", text).normal(size=(rows, tiny.DIMENSIONS)).astype(np.float32)


@pytest.fixture(scope="module")
def encoder():
    """Return a real encoder in float64, without dropout; it has one layer."""
    made = tiny.build(MaxLength(text=12))
    made.embedder.double()
    return made


def made(encoder, **options):
    return Distill(encoder, Loss(), Distill.Options(**options), Given(encoder, options.get("output", "pooled")))


def output_of(encoder: Encoder, text: str, output: str) -> Tensor:
    """Return the rows of one text alone, so without any padding: one, or one for each token."""
    backbone = encoder.model[0].auto_model
    block = backbone.embeddings
    features = encoder.features([text], "text")
    if output == "embedding":
        ids = features["input_ids"][0]
        summed = block.word_embeddings.weight[ids] + block.position_embeddings.weight[: len(ids)]
        summed = summed + block.token_type_embeddings.weight[0]
        centred = summed - summed.mean(1, keepdim=True)
        scaled = centred / (centred.square().mean(1, keepdim=True) + block.LayerNorm.eps).sqrt()
        rows = scaled * block.LayerNorm.weight + block.LayerNorm.bias
        return rows.sum(0, keepdim=True) / len(rows)
    states = backbone(**features).last_hidden_state[0]
    if output == "states":
        return states
    pooled = states.sum(0, keepdim=True) / len(states)
    return pooled if output == "pooled" else pooled / pooled.square().sum().sqrt()


def hard_labels(pairs, student, teacher, temperature):
    """Return the cross entropy of finding the other side of a pair, the teacher's source or the student's own."""
    total = 0.0
    for i, (s, t) in enumerate(pairs):
        anchor = student(t if teacher else s)
        sides = [teacher(other) if teacher else student(translation) for other, translation in pairs]
        found = [torch.exp(cosine(anchor, side) / temperature) for side in sides]
        # A pair with the same source is no wrong answer.
        against = sum(value for j, value in enumerate(found) if j == i or pairs[j][0] != s)
        total = total - torch.log(found[i] / against) / len(pairs)
    return total


def reference(encoder, targets, pairs, output, target, kind, weight=1.0, temperature=0.05):
    """Return the two terms of the loss: equations 2 to 6 with a mean over dimensions, and Table 5 or InfoNCE."""

    def student(text):
        return output_of(encoder, text, output)

    def teacher(text):
        return torch.from_numpy(targets.of(text)).double()

    if output == "states":
        errors = torch.cat([(student(text) - teacher(text)).square().flatten() for text in TEXTS])
        return errors.sum() / len(errors), 0.0
    n = len(pairs)
    match = 0.0
    for s, t in pairs:
        of_target = teacher(s if target == "source" else t)
        match = match + (student(s) - teacher(s)).square().sum() + (student(t) - of_target).square().sum()
    match = match / (n * tiny.DIMENSIONS)
    contrast = torch.zeros((), dtype=torch.float64)
    if kind in ("infonce", "ce-hard"):
        contrast = hard_labels(pairs, student, teacher if kind == "infonce" else None, temperature)
    for s, _ in pairs if kind == "soft" else ():
        for other, t in pairs:
            gap = cosine(teacher(s), teacher(other)) - cosine(student(s), student(t))
            contrast = contrast + gap**2 / n**2
    return match, weight * contrast


def assert_gradient(found, expected):
    off = {name: (found[name] - value).norm().item() for name, value in expected.items()}
    # An absolute bound, too: attention's key bias has no gradient but for rounding.
    largest = max(value.norm().item() for value in expected.values())
    assert {n: error for n, error in off.items() if error > EXACT * max(expected[n].norm(), 1e-3 * largest)} == {}
    assert largest > 1e-3


@pytest.mark.parametrize(
    ("output", "target", "kind"),
    [pytest.param(*each, marks=() if i < 4 else pytest.mark.slow) for i, each in enumerate(COMBINATIONS)],
)
def test_loss_and_gradient_are_those_of_the_equations(encoder, output, target, kind):
    learner = made(encoder, output=output, target=target, contrast=kind, contrast_weight=0.7)
    match, contrast = reference(encoder, learner.targets, PAIRS, output, target, kind, weight=0.7)
    total, gradient = learned(learner, [translation_episode(*PAIRS)])
    assert total == pytest.approx((match + contrast).item(), rel=EXACT)
    assert_gradient(gradient, gradients(match + contrast, weights_of(encoder.embedder)))


@pytest.mark.parametrize(
    ("share", "read", "kind"),
    [(0.0, [], "infonce"), (0.4, [2, 4], "none"), (0.5, [1, 3], "infonce"), (1.0, [0, 1, 2, 3, 4], "none")],
)
def test_a_share_of_the_sources_is_read_and_weighs_as_much(encoder, share, read, kind):
    """The first term is `|t|² + share · |s|²`, means over what is read; infonce needs no source read."""
    learner = made(encoder, source_share=share, contrast=kind)
    passes = []
    handle = encoder.embedder.register_forward_hook(lambda module, inputs, output: passes.append(len(output)))
    try:
        found, gradient = learned(learner, [translation_episode(*PAIRS)])
    finally:
        handle.remove()
    # The probe of packing has passes of two texts.
    assert {*passes} - {2} == {len({PAIRS[i][0] for i in read} | {target for _, target in PAIRS})}

    def error(text, source):
        return (output_of(encoder, text, "pooled") - torch.from_numpy(learner.targets.of(source))).square().mean()

    expected = sum(error(target, source) for source, target in PAIRS) / len(PAIRS)
    if read:
        expected = expected + share * sum(error(PAIRS[i][0], PAIRS[i][0]) for i in read) / len(read)
    expected = expected + reference(encoder, learner.targets, PAIRS, "pooled", "source", kind)[1]
    assert found == pytest.approx(expected.item(), rel=EXACT)
    assert_gradient(gradient, gradients(expected, weights_of(encoder.embedder)))


@pytest.mark.parametrize(("share", "read"), [(0.0, []), (0.4, [2, 4])])
def test_tokens_of_sources_that_are_not_read_have_no_error(encoder, share, read):
    learner = made(encoder, output="states", target="own", source_share=share)
    texts = dict.fromkeys([PAIRS[i][0] for i in read] + [target for _, target in PAIRS])
    assert list(dict.fromkeys(learner.texts(learner.pairs([translation_episode(*PAIRS)])))) == list(texts)
    errors = [
        output_of(encoder, text, "states") - torch.from_numpy(learner.targets.of(text)).double() for text in texts
    ]
    expected = torch.cat(errors).square().sum() / (sum(map(len, errors)) * tiny.DIMENSIONS)
    total, gradient = learned(learner, [translation_episode(*PAIRS)])
    assert total == pytest.approx(expected.item(), rel=EXACT)
    assert_gradient(gradient, gradients(expected, weights_of(encoder.embedder)))


def test_the_episodes_of_a_meta_batch_are_one_batch(encoder):
    """Texts of one episode are compared with translations of another."""
    learner = made(encoder, contrast="soft")
    whole, gradient = learned(learner, [translation_episode(*PAIRS)])
    parts, found = learned(learner, [translation_episode(*PAIRS[:2]), translation_episode(*PAIRS[2:])])
    assert parts == whole
    assert_same(found, gradient, 0)
    alone = [learner.outer_loss([translation_episode(*part)]).terms["contrast"] for part in (PAIRS[:2], PAIRS[2:])]
    assert not math.isclose(
        (2 * alone[0] + 3 * alone[1]) / 5, learner.outer_loss([translation_episode(*PAIRS)]).terms["contrast"]
    )


@pytest.mark.parametrize(("output", "kind"), [("sentence", "none"), ("pooled", "soft"), ("embedding", "infonce")])
def test_the_frozen_encoder_need_not_read_translations_where_the_source_is_the_target(encoder, output, kind):
    learner = made(encoder, output=output, target="source", contrast=kind)
    learner.outer_loss([translation_episode(*PAIRS)])
    assert {text for texts in learner.targets.asked for text in texts} == {source for source, _ in PAIRS}
    assert Distill.wanted(learner.options) == TargetSpec(output, translations=False)


def test_the_error_is_taken_in_float32_where_forward_passes_run_in_bfloat16():
    learner = made(tiny.build(MaxLength(text=12)), contrast="soft")
    exact = learner.outer_loss([translation_episode(*PAIRS)])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = learner.outer_loss([translation_episode(*PAIRS)])
    assert found.total.dtype == torch.float32
    assert found.total.item() == pytest.approx(exact.total.item(), rel=2**-7)
    assert found.terms["match"] != torch.tensor(found.terms["match"]).bfloat16().item()


WIDE = SimpleNamespace(vectors=lambda texts: np.zeros((len(texts), 7), np.float32))


@pytest.mark.parametrize(
    ("targets", "says"),
    [
        (None, "learner 'distill' needs a frozen encoder to learn from; name it in the stage under `against`"),
        (WIDE, f"vectors have 7 dimensions, the learner's {tiny.DIMENSIONS}$"),
    ],
    ids=["none", "wide"],
)
def test_missing_targets_and_those_of_another_width_are_refused(encoder, targets, says):
    with pytest.raises(ConfigError, match=says):
        Distill(encoder, Loss(), Distill.Options(), targets).outer_loss([translation_episode(*PAIRS)])


def term_by_hand(learner, dimensions, share):
    """Return the Matryoshka term (Kusupati et al. 2022) as a sum over all ordered pairs of the vectors of a batch."""
    read = [i for i in range(len(PAIRS)) if int((i + 1) * share) > int(i * share)]
    # The text that the student reads, and the text whose vector is its target.
    rows = [(t, s) for s, t in PAIRS] + [(PAIRS[i][0],) * 2 for i in read]
    student = [output_of(learner.encoder, text, "pooled")[0] for text, _ in rows]
    teacher = [torch.from_numpy(learner.targets.of(text)[0]).double() for _, text in rows]
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
    rest = made(encoder, **plain).outer_loss([translation_episode(*PAIRS)]).total
    learner = made(encoder, **options)
    term = term_by_hand(learner, options["dimensions"], plain.get("source_share", 1.0))
    total, gradient = learned(learner, [translation_episode(*PAIRS)])
    assert total == pytest.approx((rest + term).item(), rel=EXACT)
    assert_gradient(gradient, gradients(rest + term, weights_of(encoder.embedder)))


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
