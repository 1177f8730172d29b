"""Labelled sets as tensors, and their loss.

Notation used for tensor shapes: B examples in a set, T tokens, D dimensions of an embedding.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
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
    texts = texts_of(examples)
    roles = list(dict.fromkeys(role for role, _ in texts))
    by_role = [[text for own, text in texts if own == role] for role in roles]
    towers = [encoder.features(own, role) for role, own in zip(roles, by_role, strict=True)]
    place = {(role, text): i for role, own in zip(roles, by_role, strict=True) for i, text in enumerate(own)}
    return Prepared(tuple(towers), _columns(encoder, examples, place, roles.index), _gold(encoder, examples))


def combined(encoder: Encoder, examples: LabelledSet, texts: Any) -> Prepared:
    """Return a set whose texts, as `texts_of` gives them, are in one tower."""
    place = {text: i for i, text in enumerate(texts_of(examples))}
    return Prepared((texts,), _columns(encoder, examples, place, lambda role: 0), _gold(encoder, examples))


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


def _columns(
    encoder: Encoder,
    examples: LabelledSet,
    place: Mapping[tuple[Role, str], int],
    tower_of: Callable[[Role], int],
) -> dict[str, Rows]:
    """Return where the texts of each column are, given the row of each text of a role and the tower of a role."""
    columns: Sequence[Sequence[str]] = list(zip(*(example.texts for example in examples.examples), strict=True))
    return {
        name: (tower_of(role), torch.tensor([place[role, text] for text in column], device=encoder.device))
        for (name, role), column in zip(examples.examples[0].roles.items(), columns, strict=True)
    }


def _gold(encoder: Encoder, examples: LabelledSet) -> Tensor | None:
    scores = [example.score for example in examples.examples]
    if None in scores:
        return None
    return torch.tensor(scores, dtype=next(encoder.embedder.parameters()).dtype, device=encoder.device)
