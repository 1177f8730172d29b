"""Base class for losses: a loss maps embedded columns of a set to a scalar. Its module names the class `LOSS`.

Notation used for tensor shapes: B examples in a set, D dimensions of an embedding.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from metasearch.config import registry, yaml
from metasearch.config.base import FrozenConfig, Rate
from metasearch.config.recipe import Loss as Settings
from metasearch.errors import ConfigError, nearest

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class EmbeddedSet:
    """A set of examples as tensors, with one column per text of an example.

    Attributes:
        vectors: embeddings of each column `(B, D)`, by its name, such as `positive`.
        texts: numbers of the texts of each column `(B,)`; equal texts of a role have equal numbers.
        gold: similarity from 0 to 1 of each example `(B,)`, if any.
        answers: whether the candidate text of a number answers the question of each example, `(B, numbers)`, if
            labelled.
    """

    vectors: Mapping[str, Tensor]
    texts: Mapping[str, Tensor] = field(default_factory=dict)
    gold: Tensor | None = None
    answers: Tensor | None = None


class Loss(ABC):
    """Base class for losses; its options are an instance of its `Options`."""

    Options: ClassVar[type[FrozenConfig]] = FrozenConfig
    columns: ClassVar[tuple[str, ...]]
    """Columns that it needs whatever its options; a loss fits every kind of examples that has all it needs."""

    def __init__(self, options: Any = None, /, **values: Any) -> None:
        """Take options as one object or by name, `Triplet(margin=0.2)`; `ConfigError` where one is wrong."""
        self.options: Any = options or yaml.check(values, type(self).Options, type(self).__name__)

    @property
    def needed(self) -> tuple[str, ...]:
        """Columns needed with these options: the class's own, and maybe more."""
        return self.columns

    @abstractmethod
    def __call__(self, batch: EmbeddedSet) -> Tensor:
        """Return the scalar loss of a set from vectors `(B, D)` for the columns `needed`."""


def losses_of(settings: Settings, where: str = "loss") -> tuple[Loss, ...]:
    """Return the losses named in a recipe, or the default ones; an option goes to every loss that has it.

    `ConfigError` where a loss is unknown, or an option is unknown to all of them or has a wrong value.
    """
    kinds: list[type[Loss]] = [registry.load("losses", name).LOSS for name in _names(settings)]
    known = [set(kind.Options.model_fields) for kind in kinds]
    if unknown := sorted(set(settings.model_extra or ()).difference(*known)):
        hint = f"{nearest(unknown[0], set().union(*known))} null leaves it out: --set loss.{unknown[0]}=null"
        raise ConfigError(f"{where}: {unknown[0]}: loss {' or '.join(_names(settings))} has no such option.{hint}")
    losses = []
    for kind, own in zip(kinds, known, strict=True):
        of_others = set().union(*known) - own
        options = {name: value for name, value in settings.options(own).items() if name not in of_others}
        losses.append(kind(yaml.check(options, kind.Options, where)))
    return tuple(losses)


def _names(settings: Settings) -> tuple[str, ...]:
    if settings.name is None:
        return "triplet", "cosine-mse"
    return (settings.name,) if isinstance(settings.name, str) else settings.name


def warn_of_unused(settings: Settings, graded: bool = False) -> None:
    """Warn about loss values in a recipe that the loss ignores; `graded`: the margin separates classes of negatives."""
    losses = losses_of(settings)
    known = {name for loss in losses for name in type(loss).Options.model_fields}
    if graded:
        known.add("margin")
    plain = Settings().model_dump()  # what every recipe holds; any other name that a loss does not know is refused
    given = {name: getattr(settings, name) for name in plain.keys() - known - {"name"}}
    values = [f"loss.{name}={value}" for name, value in sorted(given.items()) if value != plain[name]]
    if values:
        names = " or ".join(_names(settings))
        log.warning("loss '%s' ignores options of other losses: %s", names, ", ".join(values))


def fitting(losses: tuple[Loss, ...], columns: Collection[str]) -> Loss:
    """Return the loss that fits examples with these columns; `ConfigError` where none does."""
    for loss in losses:
        if set(loss.needed) <= set(columns):
            return loss
    needed = " or ".join(", ".join(loss.needed) for loss in losses)
    known = {name: registry.load("losses", name).LOSS.columns for name in registry.names("losses")}
    fit = ", ".join(name for name, own in known.items() if set(own) <= set(columns))
    raise ConfigError(f"the loss is taken of {needed}; the examples have {', '.join(columns)}. Losses that fit: {fit}")


def cosines(first: Tensor, second: Tensor) -> Tensor:
    """Return cosines `(N, M)` between vectors `(N, D)` and `(M, D)`."""
    with torch.autocast(first.device.type, enabled=False):  # a product in bfloat16 has 8 bits of each cosine
        return F.normalize(first, dim=-1) @ F.normalize(second, dim=-1).T


def equal_texts(texts: Tensor) -> Tensor:
    """Return which of N numbered texts are equal, `(N, N)`."""
    return texts.unsqueeze(1) == texts.unsqueeze(0)


# In-batch contrast: each text has to find its match among all examples in the set (van den Oord et al. 2018).


class Temperature(FrozenConfig):
    """Temperature τ."""

    temperature: Rate = 0.05


def infonce(anchors: Tensor, candidates: Tensor, wrong: Tensor, temperature: float) -> Tensor:
    """Return the mean cross entropy for finding candidate i with anchor i among its `wrong` candidates.

    Anchors are `(N, D)`, candidates `(M, D)`, of which the first N are the right ones, and `wrong` is `(N, M)`. Cosines
    are divided by the temperature.
    """
    logits = cosines(anchors, candidates) / temperature
    own = torch.arange(len(anchors), device=anchors.device)
    left_out = ~wrong
    # The right candidate is in the sum too, whatever `wrong` says of it.
    left_out[own, own] = False
    return F.cross_entropy(logits.masked_fill(left_out, -torch.inf), own)
