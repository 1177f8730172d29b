"""The student that distillation is timed on, and the pairs that it learns from."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from metasearch.compress.student import with_transformer
from metasearch.config.distillation import CorpusSettings
from metasearch.config.seeding import stream
from metasearch.data.parallel.corpus import read_corpus
from metasearch.data.records import Translation
from metasearch.encoders.encoder import Encoder

LINES = 3000
"""Pairs that are read of each file; the vocabulary is learned from them, and what is timed is drawn from them."""


@dataclass(frozen=True)
class Scale:
    """How large all is: the frozen encoder, its vocabulary, the student, pairs in an epoch and in a batch."""

    encoder: str
    vocabulary: int
    table: int
    layers: int
    pairs: int
    batch: int


SCALES = {
    "full": Scale("minilm", 32000, 250_002, 3, 3200, 64),
    "small": Scale("tiny", 400, 2000, 1, 24, 8),
}


def read_pairs(data: Path | None) -> Sequence[Translation]:
    """Return the published pairs; without a folder, pairs of random words with lengths like those of real ones."""
    if data is not None:
        return read_corpus([data / "parallel"], CorpusSettings(max_chars=250, max_lines=LINES))
    rng = stream(0, "generated")
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    words = ["".join(rng.choice(letters, rng.integers(2, 10))) for _ in range(20_000)]
    sizes = rng.lognormal(2.2, 0.7, 2 * LINES).clip(1, 60).astype(int)
    texts = [" ".join(words[int(i)] for i in rng.zipf(1.3, size) % len(words)) for size in sizes]
    return [Translation(a, b, ("en", "de")) for a, b in zip(texts[::2], texts[1::2], strict=True)]


def large_student(assistant: Encoder, scale: Scale) -> Encoder:
    """Return a student with random weights whose word table is large and whole."""
    source = assistant.model[0].auto_model
    config = copy.deepcopy(source.config)
    config.vocab_size, config.num_hidden_layers = scale.table, scale.layers
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = with_transformer(assistant.model, type(source)(config, add_pooling_layer=False))
    return Encoder(model, "large-table", assistant.max_length)
