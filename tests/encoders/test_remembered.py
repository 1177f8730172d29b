"""Vectors are kept for one state of an encoder, for each part of the data apart."""

import numpy as np
import torch

from metasearch.encoders.protocols import CachedEncoder


class Counting:
    """Gives every text the number of texts that were encoded with it, as last bits depend on them."""

    device = torch.device("cpu")

    def __init__(self):
        self.encoded = []

    def encode(self, texts, role):
        self.encoded += texts
        return np.full((len(texts), 1), len(texts), np.float32)


def test_a_text_is_encoded_once_in_a_part():
    encoder = Counting()
    part = CachedEncoder(encoder).part("test")
    assert part.encode(["a", "b", "a"], "text").tolist() == [[2], [2], [2]]
    assert part.encode(["b", "c"], "text").tolist() == [[2], [1]]
    assert encoder.encoded == ["a", "b", "c"]


def test_vectors_of_a_part_are_the_same_whatever_was_encoded_of_others():
    """A run that was killed after the scores of dev goes on with those of test alone."""
    through, goes_on = CachedEncoder(Counting()), CachedEncoder(Counting())
    through.part("dev").encode(["a", "b"], "text")
    through.part("train").encode(["c"], "text")
    texts = ["a", "c", "d"]
    assert through.part("test").encode(texts, "text").tolist() == goes_on.part("test").encode(texts, "text").tolist()
