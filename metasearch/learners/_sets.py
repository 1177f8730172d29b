"""Labelled sets as tensors, and their loss.

Notation used for tensor shapes: B examples in a set, T tokens, D dimensions of an embedding.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from metasearch.config import Loss, Role
from metasearch.data.records import ScoredPair
from metasearch.encoders.base import Encoder, Features
from metasearch.episodes.episode import LabelledSet, Triplet
from metasearch.losses.similarity import cosine_mse
from metasearch.losses.triplet import triplet_loss

Forward = Callable[[Features], Tensor]
"""Features of texts → unit vectors `(texts, D)`; an encoder's embedder, or its fast copy in an inner loop."""


@dataclass(frozen=True)
class Prepared:
    """A set as tensors; texts of one role are encoded together, each distinct one once.

    Attributes:
        towers: features of the distinct texts of each role.
        columns: question, positive and negative (or text 1 and text 2) as tower and rows `(B,)` of it.
        gold: similarity from 0 to 1 of each example `(B,)`; None for triplets.
    """

    towers: tuple[Features, ...]
    columns: tuple[tuple[int, Tensor], ...]
    gold: Tensor | None = None


def prepare(encoder: Encoder, examples: LabelledSet) -> Prepared:
    """Tokenise a set and put it on the encoder's device."""
    triplets = [example for example in examples.examples if isinstance(example, Triplet)]
    pairs = [example for example in examples.examples if isinstance(example, ScoredPair)]
    if triplets:
        questions, asked = _tower(encoder, "question", [[t.question.text for t in triplets]])
        candidates, found = _tower(
            encoder, "candidate", [[t.positive.text for t in triplets], [t.negative.text for t in triplets]]
        )
        return Prepared((questions, candidates), ((0, asked[0]), (1, found[0]), (1, found[1])))
    texts, rows = _tower(encoder, "text", [[p.text1 for p in pairs], [p.text2 for p in pairs]])
    dtype = next(encoder.embedder.parameters()).dtype
    gold = torch.tensor([p.score for p in pairs], dtype=dtype, device=encoder.device)
    return Prepared((texts,), ((0, rows[0]), (0, rows[1])), gold)


def set_loss(forward: Forward, examples: Prepared, settings: Loss) -> Tensor:
    """Return the scalar loss of a set: the triplet loss, or the squared error of the cosine against gold."""
    vectors = [forward(features) for features in examples.towers]
    columns = [vectors[tower][rows] for tower, rows in examples.columns]
    if examples.gold is None:
        return triplet_loss(columns[0], columns[1], columns[2], settings)
    return cosine_mse(columns[0], columns[1], examples.gold)


def _tower(encoder: Encoder, role: Role, columns: Sequence[Sequence[str]]) -> tuple[Features, list[Tensor]]:
    """Return the features of all distinct texts, and for each column the row of each of its texts."""
    row = {text: i for i, text in enumerate(dict.fromkeys(text for column in columns for text in column))}
    rows = [torch.tensor([row[text] for text in column], device=encoder.device) for column in columns]
    return encoder.features(list(row), role), rows
