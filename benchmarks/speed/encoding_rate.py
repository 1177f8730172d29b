"""Sentences per second of encoders, in interleaved rounds, so that what else the machine does falls on all alike."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.common.clock import Seconds, clock
from metasearch.data.records import Data, TranslationData
from metasearch.encoders.load import load_encoder

SENTENCES = 2000
BATCH = 64


def sentences_of(data: Data, count: int = SENTENCES) -> list[str]:
    """Return texts of a translation task, equally many of each language and in English."""
    assert isinstance(data, TranslationData)
    texts = [text for pair in data.pairs for text in (pair.source, pair.target)]
    return [texts[i] for i in np.linspace(0, len(texts) - 1, min(count, len(texts))).astype(int)]


def rates(models: Mapping[str, Path], sentences: Sequence[str], rounds: int, threads: int) -> dict[str, dict[str, Any]]:
    """Return sentences per second of each encoder (name → folder), tokenising included, after a batch to warm up.

    The order turns round with each round. Returns median, lowest and highest by wall-clock and CPU time by name.
    """
    torch.set_num_threads(threads)
    encoders = {name: load_encoder(str(folder), device="cpu").model for name, folder in models.items()}
    taken: dict[str, list[Seconds]] = {name: [] for name in encoders}
    for model in encoders.values():
        model.encode(list(sentences[:BATCH]), batch_size=BATCH)
    for number in range(rounds):
        for name in sorted(encoders, key=list(encoders).index, reverse=number % 2 == 1):
            began = clock()
            encoders[name].encode(list(sentences), batch_size=BATCH)
            taken[name].append(clock() - began)
    return {name: _summary(len(sentences) / np.array(seconds)) for name, seconds in taken.items()}


def _summary(rates: Seconds) -> dict[str, Any]:
    """Return median, lowest and highest of sentences per second `(rounds, 2)`."""
    return {
        kind: [float(f"{value:.4g}") for value in (np.median(column), column.min(), column.max())]
        for kind, column in zip(("wall", "cpu"), rates.T, strict=True)
    }
