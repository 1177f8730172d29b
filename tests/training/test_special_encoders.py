"""Encoders that are built in some special way have the same gradients, and it is said where a faster form is out."""

import copy
import tempfile

import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Pooling, Transformer, WordWeights
from tokenizers.processors import TemplateProcessing
from torch import nn
from transformers import AlbertConfig, AlbertModel

from helpers.backbones import HIDDEN, LENGTHS
from helpers.gradients import AWKWARD, Case, encoder_of, error, errors, on_both
from metasearch.encoders.builtin import tiny
from metasearch.encoders.encoder import Encoder
from metasearch.training.outer_gradients import OuterGradients

EXACT = 1e-10
MAML = Case("maml")


@pytest.fixture
def bert():
    """Return a BERT of one layer in float64 that a test may change."""
    return altered(encoder_of("bert"))


def altered(encoder, modules=None):
    """Return a copy of an encoder, with other modules behind its transformer where some are given."""
    model = copy.deepcopy(encoder.model)
    if modules is not None:
        model = SentenceTransformer(modules=[model[0], *modules], device="cpu", prompts=model.prompts)
    made = Encoder(model, encoder.name, encoder.max_length)
    made.embedder.double()
    return made


def words_of(encoder):
    return encoder.model[0].auto_model.get_input_embeddings()


def assert_same(encoder, case=MAML, first_order=False, count=1):
    """Assert that both ways have the same gradient, of one inner step; return the notes and the gradient."""
    learner = case.learn(encoder, inner_steps=1, first_order=first_order)
    plain, found = on_both(learner, case.episodes(count))
    assert found.loss.item() == pytest.approx(plain.loss.item(), rel=EXACT)
    assert error(found, plain) < EXACT
    assert max(errors(found, plain).values()) < EXACT
    return OuterGradients(encoder).notes, found


def sparse(found):
    return {name.rpartition(".embeddings.")[2] for name, g in found.given.items() if g is not None and g.is_sparse}


def test_mpnet_is_sliced_but_not_packed():
    notes, found = assert_same(encoder_of("mpnet"))
    (note,) = notes
    assert "mpnet" in note
    assert "padded" in note
    assert sparse(found) == {"word_embeddings.weight"}


def test_a_frozen_word_table_has_no_gradient(bert):
    words_of(bert).requires_grad_(False)
    notes, found = assert_same(bert)
    assert notes == ()
    assert not sparse(found)
    assert not [name for name in found.given if "word_embeddings" in name]


@pytest.mark.slow
def test_a_frozen_embedding_block_and_a_frozen_layer():
    deep = altered(encoder_of("bert", layers=2))
    deep.model[0].auto_model.embeddings.requires_grad_(False)
    deep.model[0].auto_model.encoder.layer[0].requires_grad_(False)
    assert_same(deep)


@pytest.mark.slow
def test_a_word_table_that_is_tied_to_a_used_weight_stays_whole(bert):
    words = words_of(bert)
    dense = Dense(HIDDEN, words.num_embeddings, bias=False)
    tied = altered(bert, [bert.model[1], dense])
    tied.model[2].linear.weight = words_of(tied).weight
    notes, found = assert_same(tied)
    (note,) = notes
    assert "tied to model.2.linear.weight" in note
    assert "all its rows" in note
    assert not sparse(found)
    # Words that stand in no text have a gradient through the other use.
    rows = next(g for name, g in found.given.items() if "word_embeddings" in name).norm(dim=1)
    assert (rows > 0).sum() > 1000


def test_a_padding_token_keeps_its_number_in_the_slice_and_gets_no_gradient(bert):
    padding = words_of(bert).padding_idx = 278
    notes, found = assert_same(bert)
    assert notes == ()
    table = found.dense["model.0.model.embeddings.word_embeddings.weight"]
    assert not table[padding].any()
    assert table[0].any()


@pytest.mark.slow
def test_a_backbone_that_no_list_names_is_packed_and_sliced():
    config = AlbertConfig(
        vocab_size=6000, embedding_size=8, hidden_size=HIDDEN, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=24, max_position_embeddings=40,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]), tempfile.TemporaryDirectory() as folder:
        torch.manual_seed(0)
        AlbertModel(config).save_pretrained(folder)
        tiny.build().model.tokenizer.save_pretrained(folder)
        transformer = Transformer(folder, max_seq_length=25)
    model = SentenceTransformer(modules=[transformer, Pooling(HIDDEN)], device="cpu")
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.3)
    encoder = Encoder(model, "albert", LENGTHS)
    encoder.embedder.double()
    notes, found = assert_same(encoder)
    assert notes == ()
    assert sparse(found) == {"word_embeddings.weight"}


class FirstHeavy(Transformer):
    """Gives the first token of each text more weight, as code that comes with a checkpoint may."""

    def forward(self, features, **kwargs):
        features = super().forward(features, **kwargs)
        hidden = features["token_embeddings"]
        return {**features, "token_embeddings": torch.cat([50 * hidden[:, :1], hidden[:, 1:]], 1)}


class Named(Transformer):
    """Gives one word more weight, by its number."""

    def forward(self, features, **kwargs):
        weights = 1 + 50 * (features["input_ids"] == 1996).unsqueeze(-1)
        features = super().forward(features, **kwargs)
        return {**features, "token_embeddings": features["token_embeddings"] * weights}


def weigh_words(encoder):
    """Return sentence-transformers' weights of words, which are looked up by their numbers."""
    words = [encoder.model.tokenizer.convert_ids_to_tokens(i) for i in range(words_of(encoder).num_embeddings)]
    return WordWeights(words, {word: 1 + i % 7 for i, word in enumerate(words)})


SPECIAL = {
    "a custom first module": (FirstHeavy, None, {"padded", "rows"}),
    "a custom first module that reads numbers of words": (Named, None, {"rows"}),
    "weights of words": (Transformer, lambda e: [weigh_words(e), Pooling(HIDDEN)], {"padded", "rows"}),
}
"""The class of the first module, the modules behind it, and the notes that are expected."""


@pytest.mark.slow
@pytest.mark.parametrize("name", SPECIAL)
def test_code_that_needs_another_layout_has_the_same_gradients_and_a_note(bert, name):
    first, behind, expected = SPECIAL[name]
    bert.model[0].__class__ = first
    notes, _ = assert_same(altered(bert, behind and behind(bert)))
    assert {word for note in notes for word in ("padded", "rows") if word in note} == expected


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["max", "weightedmean", "lasttoken", "dense"])
def test_what_stands_behind_the_transformer_is_packed(bert, mode):
    behind = [bert.model[1], Dense(HIDDEN, 5)] if mode == "dense" else [Pooling(HIDDEN, pooling_mode=mode)]
    notes, found = assert_same(altered(bert, behind), first_order=mode != "dense")
    assert notes == ()
    assert ("model.2.linear.weight" in found.dense) == (mode == "dense")


@pytest.mark.slow
def test_a_text_may_have_no_token_at_all(bert):
    """An empty one, where the tokenizer adds none of its own; its vector is zero, which has no second derivative."""
    bert.model.prompts = {}
    bert.model.tokenizer.backend_tokenizer.post_processor = TemplateProcessing(single="$A", special_tokens=[])
    assert min(bert.lengths(AWKWARD, "candidate")) == 0
    assert_same(bert, first_order=True)
