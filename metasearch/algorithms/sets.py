"""Labelled sets as tensors, and their loss.

Notation used for tensor shapes: B examples in a set, D dimensions of an embedding.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

from metasearch.config.roles import Role
from metasearch.encoders.encoder import Encoder
from metasearch.episodes.episode import LabelledSet

Value = TypeVar("Value", bound=Hashable)

Forward = Callable[[Any], Tensor]
"""A tower → unit vectors `(texts, D)`: an encoder's network, or a model around it."""


@dataclass(frozen=True)
class Prepared:
    """A set as tensors; each distinct text is encoded once per role.

    Attributes:
        towers: texts that are encoded together: features for an encoder's network, or `PackedTexts` for the packed one.
        columns: for each text of an example, such as `positive`, its tower and its row there by example `(B,)`.
        gold: similarity from 0 to 1 of each example `(B,)`, if any.
        answers: whether a row of the candidates' tower answers the question of each example, `(B, rows)`, if labelled.
    """

    towers: tuple[Any, ...]
    columns: Mapping[str, tuple[int, Tensor]]
    gold: Tensor | None = None
    answers: Tensor | None = None

    def __len__(self) -> int:
        """Return how many examples there are."""
        _, rows = next(iter(self.columns.values()))
        return len(rows)


def prepare(encoder: Encoder, examples: LabelledSet, together: Any = None) -> Prepared:
    """Return a set as tensors on the encoder's device: one tower if laid out `together`, else one a role."""
    texts = texts_of(examples)
    if together is not None:
        groups, towers = [texts], [together]
    else:
        groups = [[text for text in texts if text[0] == role] for role in numbered(role for role, _ in texts)]
        towers = [encoder.features([text for _, text in group], group[0][0]) for group in groups]
    place = {text: (tower, row) for tower, group in enumerate(groups) for row, text in enumerate(group)}
    columns = {}
    of_columns = zip(*(example.texts for example in examples.examples), strict=True)
    for (name, role), column in zip(examples.examples[0].roles.items(), of_columns, strict=True):
        places = [place[role, text] for text in column]
        # Texts of a column have the same role, and so the same tower.
        columns[name] = (places[0][0], torch.tensor([row for _, row in places], device=encoder.device))
    scores, gold = [example.score for example in examples.examples], None
    if None not in scores:
        gold = torch.tensor(scores, dtype=next(encoder.embedder.parameters()).dtype, device=encoder.device)
    answers = None
    if any(example.answers for example in examples.examples):
        tower, _ = columns["positive"]
        row_of = {text: row for row, (role, text) in enumerate(groups[tower]) if role == "candidate"}
        answers = torch.zeros(len(examples.examples), len(groups[tower]), dtype=torch.bool)
        for i, example in enumerate(examples.examples):
            answers[i, [row_of[text] for text in example.answers if text in row_of]] = True
        answers = answers.to(encoder.device)
    return Prepared(tuple(towers), columns, gold, answers)


def vectors_of(forward: Forward, examples: Prepared) -> list[Tensor]:
    """Return the vectors for each tower, `(texts, D)`."""
    return [forward(tower) for tower in examples.towers]


def texts_of(examples: LabelledSet) -> list[tuple[Role, str]]:
    """Return the distinct texts in a set, each with its role, column by column."""
    roles = examples.examples[0].roles.values()
    columns = zip(*(example.texts for example in examples.examples), strict=True)
    return list(numbered((role, text) for role, column in zip(roles, columns, strict=True) for text in column))


def numbered(values: Iterable[Value]) -> dict[Value, int]:
    """Return a number for each distinct value, in order of first appearance."""
    return {value: i for i, value in enumerate(dict.fromkeys(values))}
