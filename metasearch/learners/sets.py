"""Labelled sets as tensors, and their loss.

Notation used for tensor shapes: B examples in a set, T tokens, D dimensions of an embedding.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from metasearch.encoders.encoder import Encoder
from metasearch.episodes.episode import LabelledSet
from metasearch.learners.losses.base import Embedded, Loss, fitting
from metasearch.spec.recipe import Role

Forward = Callable[[Any], Tensor]
"""A tower → unit vectors `(texts, D)`: an encoder's embedder, its fast copy, or its network on other weights."""

Rows = tuple[int, Tensor]
"""Number of a tower, and the row in it of each example's text `(B,)`."""


@dataclass(frozen=True)
class Prepared:
    """A set as tensors; each distinct text of a role is encoded once.

    Attributes:
        towers: texts that are encoded together: features for an embedder, or `Texts` for the fast form.
        columns: for each text of an example, such as `positive`, where it is.
        gold: similarity from 0 to 1 of each example `(B,)`, where examples have one.
    """

    towers: tuple[Any, ...]
    columns: Mapping[str, Rows]
    gold: Tensor | None = None


def prepare(encoder: Encoder, examples: LabelledSet) -> Prepared:
    """Tokenise a set and put it on the encoder's device, the texts of each role in a tower of their own."""
    by_role: dict[Role, list[str]] = {}
    for role, text in texts_of(examples):
        by_role.setdefault(role, []).append(text)
    place = {(role, text): (tower, i) for tower, role in enumerate(by_role) for i, text in enumerate(by_role[role])}
    towers = tuple(encoder.features(texts, role) for role, texts in by_role.items())
    return _prepared(encoder, examples, towers, place)


def combined(encoder: Encoder, examples: LabelledSet, texts: Any) -> Prepared:
    """Return a set whose texts, as `texts_of` gives them, are in one tower."""
    return _prepared(encoder, examples, (texts,), {text: (0, i) for i, text in enumerate(texts_of(examples))})


def texts_of(examples: LabelledSet) -> list[tuple[Role, str]]:
    """Return the distinct texts of a set, each with its role, column after column."""
    roles = examples.examples[0].roles.values()
    columns = zip(*(example.texts for example in examples.examples), strict=True)
    return distinct((role, text) for role, column in zip(roles, columns, strict=True) for text in column)


def set_loss(forward: Forward, examples: Prepared, losses: tuple[Loss, ...]) -> Tensor:
    """Return the scalar loss of a set: that of the first loss that fits its examples."""
    loss = fitting(losses, examples.columns)
    vectors = [forward(tower) for tower in examples.towers]
    embedded = {name: vectors[tower][rows] for name, (tower, rows) in examples.columns.items()}
    return loss(Embedded(embedded, {name: rows for name, (_, rows) in examples.columns.items()}, examples.gold))


def distinct(values: Iterable[Any]) -> list[Any]:
    """Return each value once, in the order of their first appearance."""
    return list(dict.fromkeys(values))


def _prepared(
    encoder: Encoder,
    examples: LabelledSet,
    towers: tuple[Any, ...],
    place: Mapping[tuple[Role, str], tuple[int, int]],
) -> Prepared:
    """Return a set, given the tower and the row of each text of a role."""
    columns = {}
    for i, (name, role) in enumerate(examples.examples[0].roles.items()):
        places = [place[role, example.texts[i]] for example in examples.examples]
        columns[name] = (places[0][0], torch.tensor([row for _, row in places], device=encoder.device))
    scores, gold = [example.score for example in examples.examples], None
    if None not in scores:
        dtype = next(encoder.embedder.parameters()).dtype
        gold = torch.tensor(scores, dtype=dtype, device=encoder.device)
    return Prepared(towers, columns, gold)
