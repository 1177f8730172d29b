"""Packed texts, groups of padded ones, slices of the word table: the same vectors, whatever stands beside a text."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from helpers.backbones import CONFIGS, TEXTS
from helpers.gradients import Case, encoder_of, outer
from helpers.small import adapted_encoder
from metasearch.encoders.packed import packed
from metasearch.encoders.packed_attention import attend
from metasearch.training.outer_gradients import OuterGradients
from metasearch.training.packing.encoder import PackedEncoder
from metasearch.training.packing.layout import lay_out
from metasearch.training.packing.network import Network
from metasearch.training.packing.probe import packing_plan

OUTPUTS = ["sentence", "pooled", "embedding", "states"]
EXACT = {"rtol": 1e-11, "atol": 1e-12}


def weights_of(encoder):
    return [weight.detach() for weight in encoder.embedder.parameters()]


def own(encoder, texts, output="sentence", role="text"):
    with torch.no_grad():
        return encoder.embedder(encoder.features(texts, role), output)


def laid_out(encoder, groups, output="sentence"):
    """Return an output of each group of texts as trainings have it."""
    plan = packing_plan(encoder)
    texts, rows = lay_out(encoder, plan, groups)
    weights = weights_of(encoder)
    weights[plan.table] = weights[plan.table][rows]
    with torch.no_grad():
        return [Network(encoder, plan).run(weights, each, output) for each in texts]


def of_role(texts, role="text"):
    return [(role, text) for text in texts]


KINDS = [*CONFIGS, "student", "tiny"]


@pytest.mark.parametrize(("kind", "output"), [(kind, OUTPUTS[i % len(OUTPUTS)]) for i, kind in enumerate(KINDS)])
def test_vectors_are_the_encoders_own(kind, output):
    encoder = encoder_of(kind)
    (found,) = laid_out(encoder, [of_role(TEXTS)], output)
    torch.testing.assert_close(found, own(encoder, TEXTS, output), **EXACT)


def test_packed_texts_are_one_row_without_padding():
    encoder = encoder_of("bert")
    (texts,), _ = lay_out(encoder, packing_plan(encoder), [of_role(TEXTS)])
    (part,) = texts.parts
    assert part["input_ids"].shape == (1, sum(encoder.lengths(TEXTS, "text")))
    assert texts.tokens == sum(encoder.lengths(TEXTS, "text"))
    assert sum(count * length for count, length in part["spans"]) == texts.tokens
    assert "attention_mask" not in part


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.sampled_from(["question", "candidate", "text"]), st.integers(0, 12)), min_size=1, max_size=9),
    st.data(),
)
def test_any_texts_in_any_order_and_any_groups(asked, data):
    """A text is a role and a length; each stands in one of up to three groups, whose tokens share a slice."""
    encoder = encoder_of("xlm-roberta")
    texts = [(role, " ".join(["key"] * length)) for role, length in asked]
    place = data.draw(st.lists(st.integers(0, 2), min_size=len(texts), max_size=len(texts)))
    groups = [[text for text, group in zip(texts, place, strict=True) if group == g] for g in sorted(set(place))]
    for found, group in zip(laid_out(encoder, groups), groups, strict=True):
        expected = torch.cat([own(encoder, [text], role=role) for role, text in group])
        torch.testing.assert_close(found, expected, **EXACT)


@pytest.mark.parametrize("window", [None, 2, 3, 7])
@pytest.mark.parametrize("at_once", [False, True], ids=["in runs", "at once"])
def test_attention_is_within_each_text_and_its_window(at_once, window):
    """A softmax over the tokens of a text, written out text by text; two of the texts are of equal length.

    With a window, tokens i and j see each other where |i - j| is below it: as transformers gives it to attention.
    """
    lengths, scaling = [2, 5, 5, 1], 0.7
    generator = torch.Generator().manual_seed(0)
    query, key, value = (torch.randn(1, 2, sum(lengths), 5, dtype=torch.float64, generator=generator) for _ in range(3))
    rows = [np.zeros((1, length), np.int32) for length in lengths]
    features = packed(rows, ["input_ids"], 0, 0, at_once)
    keys = ("spans", "inside", "place")
    found, weights = attend(
        torch.nn.Identity(), query, key, value, None, scaling=scaling, sliding_window=window,
        **{name: features[name] for name in keys if name in features},
    )  # fmt: skip
    expected = []
    for q, k, v in zip(*(tensor[0].split(lengths, dim=1) for tensor in (query, key, value)), strict=True):
        scores = scaling * torch.einsum("hqd,hkd->hqk", q, k)
        length = q.shape[1]
        seen = torch.tensor([[window is None or abs(i - j) < window for j in range(length)] for i in range(length)])
        shares = scores.exp() * seen / (scores.exp() * seen).sum(dim=-1, keepdim=True)
        expected.append(torch.einsum("hqk,hkd->qhd", shares, v))
    assert weights is None
    torch.testing.assert_close(found, torch.cat(expected)[None], **EXACT)


@pytest.mark.parametrize("kind", ["bert", "mpnet", "xlm-roberta"])
def test_a_slice_is_the_words_of_all_groups_and_those_up_to_the_one_for_padding(kind):
    encoder = encoder_of(kind)
    plan = packing_plan(encoder)
    _, rows = lay_out(encoder, plan, [of_role(TEXTS[:3]), of_role(TEXTS[2:], "question")])
    known = [*encoder.tokens(TEXTS[:3], "text"), *encoder.tokens(TEXTS[2:], "question")]
    words = {int(word) for row in known for word in row[0]} | set(range(plan.padding + 1))
    if kind == "mpnet":
        words.add(encoder.model.tokenizer.pad_token_id)
    assert rows.tolist() == sorted(words)


def test_the_gradient_of_the_word_table_has_no_other_rows():
    encoder, case = encoder_of("bert"), Case("fine-tune")
    (episode,) = case.episodes(1)
    found = outer(case.learn(encoder), [episode], OuterGradients(encoder))
    table = found.given["model.0.model.embeddings.word_embeddings.weight"]
    sides = [
        (role, getattr(example, side).text)
        for part in episode.sets
        for example in part.examples
        for role, side in (("question", "question"), ("candidate", "positive"), ("candidate", "negative"))
    ]
    words = {int(word) for role, text in sides for word in encoder.tokens([text], role)[0][0]}
    assert table.is_sparse
    assert table.is_coalesced()
    assert table.sparse_dim() == 1
    assert table.indices()[0].tolist() == sorted(words | {0})
    assert all(g is None or not g.is_sparse for n, g in found.given.items() if "word_embeddings" not in n)


def test_a_family_that_cannot_be_packed_is_padded_in_groups_of_similar_length():
    encoder = encoder_of("mpnet")
    assert not packing_plan(encoder).packs
    lengths = sorted(encoder.lengths(TEXTS * 30, "text"))
    (texts,), _ = lay_out(encoder, packing_plan(encoder), [of_role(TEXTS * 30)])
    assert len(texts.parts) > 1
    assert sum(lengths) < texts.tokens < len(lengths) * max(lengths)


def test_prompts_stand_before_questions_and_candidates():
    encoder = encoder_of("bert")
    ((as_question, as_candidate, as_text),) = laid_out(
        encoder, [[("question", "a key"), ("candidate", "a key"), ("text", "a key")]]
    )
    torch.testing.assert_close(as_question, own(encoder, ["query: a key"])[0], **EXACT)
    torch.testing.assert_close(as_candidate, own(encoder, ["passage: a key"])[0], **EXACT)
    torch.testing.assert_close(as_text, own(encoder, ["a key"])[0], **EXACT)


def test_token_types_are_packed_with_their_tokens():
    encoder = encoder_of("bert")
    backbone, plan = encoder.model[0].auto_model, packing_plan(encoder)
    rows = [
        np.array([[2, 300, 3, 400, 500, 3], [1] * 6, [0, 0, 0, 1, 1, 1]], np.int32),
        np.array([[2, 300, 3], [1] * 3, [0, 0, 1]], np.int32),
    ]
    columns = ("input_ids", "attention_mask", "token_type_ids")
    (texts,), _ = lay_out(encoder, plan, [of_role(["a", "b"])])
    part = packed(rows, columns, plan.first, plan.padding)
    with torch.no_grad():
        found = Network(encoder, plan).run(
            weights_of(encoder), replace(texts, parts=(part,), order=torch.arange(2)), "pooled"
        )
        for vector, row in zip(found, rows, strict=True):
            features = {name: torch.tensor(row[None, i], dtype=torch.long) for i, name in enumerate(columns)}
            torch.testing.assert_close(vector, backbone(**features).last_hidden_state[0].mean(0), **EXACT)
            without = backbone(**features | {"token_type_ids": None}).last_hidden_state[0].mean(0)
            assert (vector - without).norm() > 0.1


def test_the_slice_of_an_adapter_acts_on_the_questions_as_the_whole_matrix_does():
    encoder = adapted_encoder(pairs=False)
    packed, size = PackedEncoder(encoder), encoder.dimension()
    questions = [[("question", "a"), ("question", "b"), ("candidate", "x")], [("candidate", "y"), ("question", "b")]]
    batch = packed.lay_out(questions)
    (cut,) = batch.cut(packed.weights)
    gradient = torch.eye(size, 2, dtype=torch.float64)
    (spread,) = batch.spread([gradient])

    assert cut.shape == (size, 2)
    whole = packed.weights[0].detach()
    # A step on the slice is a step on the matrix: (Δ − G) Bᵀ = Δ Bᵀ − (G Bᵀ).
    torch.testing.assert_close(batch.cut([whole - spread])[0], cut - gradient, rtol=0, atol=1e-12)

    def run(weights):
        return packed.each(batch.texts, lambda network, texts: network.run(weights, texts))

    for sliced, plain in zip(run([cut]), run([whole]), strict=True):
        torch.testing.assert_close(sliced, plain, rtol=0, atol=1e-12)

    # Rates of each weight, and as many questions as dimensions, take the whole matrix.
    assert [each.shape for each in batch.cut([whole, torch.ones_like(whole)])] == [(size, size)] * 2
    many = packed.lay_out([[("question", f"{i}") for i in range(size)]])
    assert many.cut(packed.weights)[0].shape == (size, size)
