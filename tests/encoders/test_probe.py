"""Opening an encoder tests that neither padding nor other texts change a vector; others are refused."""

from functools import cache

import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import CNN, LSTM, Dense, Pooling
from torch import nn

from helpers.backbones import HIDDEN, LENGTHS, make
from helpers.tiers import others_slow
from metasearch.encoders.encoder import Encoder
from metasearch.errors import EncoderError

KINDS = ("bert", "xlm-roberta", "mpnet", "modernbert", "gpt2")
EXACT = {"rtol": 1e-5, "atol": 1e-6}  # rotary positions are in float32


class Unmasked(nn.Module):
    """The mean of all columns, padding included."""

    def forward(self, features):
        return {**features, "sentence_embedding": features["token_embeddings"].mean(1)}


HEADS = {
    "mean": lambda: [Pooling(HIDDEN)],
    "last": lambda: [Pooling(HIDDEN, "lasttoken")],
    "convolution": lambda: [CNN(HIDDEN, 6), Pooling(18)],
    "unmasked": lambda: [Unmasked(), Dense(HIDDEN, 5)],
}


@cache
def network(kind, head, side):
    """Return an encoder in float64."""
    model = SentenceTransformer(modules=[make(kind, layers=2).model[0], *HEADS[head]()], device="cpu")
    model.tokenizer.padding_side = side
    encoder = Encoder(model, kind, LENGTHS)
    encoder.embedder.double()
    return encoder


COUNTED_FROM_THE_LEFT = ("bert", "gpt2", "mpnet")
"""Families whose positions change with padding on the left."""
PLACES = [(kind, ["mean", "last"][i % 2], side) for i, kind in enumerate(KINDS) for side in ("left", "right")]
QUICK = [place for place in PLACES if place[0] in ("bert", "xlm-roberta")]


@pytest.mark.parametrize("place", others_slow(PLACES, QUICK), ids=str)
def test_a_text_has_one_vector_whatever_stands_beside_it_or_is_refused(place):
    kind, head, side = place
    if side == "left" and kind in COUNTED_FROM_THE_LEFT:
        with pytest.raises(EncoderError, match="padding changes its embeddings"):
            network(kind, head, side)
        return
    encoder, words = network(kind, head, side), ["the", "key", "is", "under", "a", "mat", "by", "old"]
    texts = [" ".join(words[i % 8] for i in range(length, 2 * length)) for length in (3, 20, 1, 7, 7)]
    for output in ("sentence", "states"):
        with torch.no_grad():
            together = encoder.embedder(encoder.features(texts, "text"), output)
            alone = [encoder.embedder(encoder.features([text], "text"), output) for text in texts]
        assert not (output == "states" and len(together) != sum(map(len, alone)))
        torch.testing.assert_close(together, torch.cat(alone), **EXACT)


@pytest.mark.parametrize("head", ["convolution", "unmasked"])
def test_a_module_behind_the_transformer_that_reads_padding_is_refused(head):
    with pytest.raises(EncoderError, match="padding changes its embeddings"):
        network("bert", head, "right")


class Centred(nn.Module):
    """Takes the mean of a batch from each vector."""

    def forward(self, features):
        vectors = features["sentence_embedding"]
        return {**features, "sentence_embedding": vectors - 0.5 * vectors.mean(0)}


class Asking(nn.Module):
    """Asks for something that no other module gives."""

    def forward(self, features):
        return {**features, "sentence_embedding": features["speech"]}


@pytest.mark.parametrize(
    ("modules", "says"),
    [
        ([Pooling(HIDDEN), Centred()], "m: its embeddings depend on the other texts in a batch"),
        ([LSTM(HIDDEN, 8), Pooling(HIDDEN)],
         "m: cannot be used: module LSTM asks for 'sentence_lengths', which the modules before it do not give"),
        ([Asking()], "m: cannot be used: module Asking asks for 'speech', which the modules before it do not give"),
        ([Pooling(HIDDEN), Dense(HIDDEN + 1, 5)], r"m: cannot be used: module Dense fails: .*shapes"),
        ([], "m: its modules return only token embeddings"),
    ],
    ids=["batch", "lstm", "asking", "wide", "no-pooling"],
)  # fmt: skip
def test_modules_that_do_not_fit_are_refused_by_name(modules, says):
    with pytest.raises(EncoderError, match=says) as caught:
        Encoder(SentenceTransformer(modules=[make("bert").model[0], *modules], device="cpu"), "m", LENGTHS)
    assert "\n" not in str(caught.value)
