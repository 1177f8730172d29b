"""Labelled sets as tensors, and their loss.

Notation used for tensor shapes: B examples in a set, T tokens, D dimensions of an embedding.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from metasearch.data.records import ScoredPair
from metasearch.encoders.encoder import Encoder
from metasearch.episodes.episode import LabelledSet, Triplet
from metasearch.learners.losses.similarity import cosine_mse
from metasearch.learners.losses.triplet import triplet_loss
from metasearch.spec.recipe import Loss, Role

Forward = Callable[[Any], Tensor]
"""A tower → unit vectors `(texts, D)`: an encoder's embedder, its fast copy, or its network on other weights."""

Column = tuple[int, Tensor]
"""A tower, and the row in it of each example's text `(B,)`."""


@dataclass(frozen=True)
class Prepared:
    """A set as tensors; each distinct text of a role is encoded once.

    Attributes:
        towers: texts that are encoded together: features for an embedder, or `Texts` for the fast engine.
        columns: question, positive and negative, or text 1 and text 2.
        gold: similarity from 0 to 1 of each example `(B,)`; None for triplets.
    """

    towers: tuple[Any, ...]
    columns: tuple[Column, ...]
    gold: Tensor | None = None


def prepare(encoder: Encoder, examples: LabelledSet) -> Prepared:
    """Tokenise a set and put it on the encoder's device, the texts of each role in a tower of their own."""
    towers, columns = [], []
    for number, (role, texts) in enumerate(_by_role(examples).items()):
        place = _places([(role, text) for column in texts for text in column])
        towers.append(encoder.features([text for _, text in place], role))
        columns += [(number, _rows(place, role, column, encoder.device)) for column in texts]
    return Prepared(tuple(towers), tuple(columns), _gold(encoder, examples))


def group_of(examples: LabelledSet) -> list[tuple[Role, str]]:
    """Return the distinct texts of a set, each with its role."""
    return list(_places([(role, text) for role, texts in _by_role(examples).items() for c in texts for text in c]))


def together(encoder: Encoder, examples: LabelledSet, texts: Any) -> Prepared:
    """Return a set whose texts, as `group_of` gives them, are in one tower."""
    place = _places(group_of(examples))
    columns = [
        (0, _rows(place, role, column, encoder.device))
        for role, texts in _by_role(examples).items()
        for column in texts
    ]
    return Prepared((texts,), tuple(columns), _gold(encoder, examples))


def set_loss(forward: Forward, examples: Prepared, settings: Loss) -> Tensor:
    """Return the scalar loss of a set: the triplet loss, or the squared error of the cosine against gold."""
    vectors = [forward(tower) for tower in examples.towers]
    columns = [vectors[tower][rows] for tower, rows in examples.columns]
    if examples.gold is None:
        return triplet_loss(columns[0], columns[1], columns[2], settings)
    return cosine_mse(columns[0], columns[1], examples.gold)


def _by_role(examples: LabelledSet) -> dict[Role, list[list[str]]]:
    """Return the texts of a set, a list for each column, the columns of a role together."""
    triplets = [example for example in examples.examples if isinstance(example, Triplet)]
    if triplets:
        answers = [[t.positive.text for t in triplets], [t.negative.text for t in triplets]]
        return {"question": [[t.question.text for t in triplets]], "candidate": answers}
    pairs = [example for example in examples.examples if isinstance(example, ScoredPair)]
    return {"text": [[pair.text1 for pair in pairs], [pair.text2 for pair in pairs]]}


def _gold(encoder: Encoder, examples: LabelledSet) -> Tensor | None:
    pairs = [example for example in examples.examples if isinstance(example, ScoredPair)]
    if not pairs:
        return None
    dtype = next(encoder.embedder.parameters()).dtype
    return torch.tensor([pair.score for pair in pairs], dtype=dtype, device=encoder.device)


def _places(texts: Iterable[tuple[Role, str]]) -> dict[tuple[Role, str], int]:
    """Number distinct texts."""
    return {text: i for i, text in enumerate(dict.fromkeys(texts))}


def _rows(place: dict[tuple[Role, str], int], role: Role, column: Sequence[str], device: torch.device) -> Tensor:
    return torch.tensor([place[role, text] for text in column], device=device)
