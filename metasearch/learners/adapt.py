"""Which weights the inner loop moves: the option `adapt` of learners that have one.

| value | what moves |
|---|---|
| `all` | all trainable weights |
| `last:n` | the last n layers and the modules behind the transformer; ANIL moves a head alone (Raghu et al., 2020) |
| `bias` | bias vectors, those of LayerNorm among them (BitFit, Ben Zaken et al., 2022) |
| `lora:r` | updates of rank r of the query and value projections of attention (LoRA, Hu et al., 2021) |

With θ the trainable weights and φ the low-rank factors, both in their order, the inner loop works on Θ = (θ, φ), of
which it moves a part. The outer gradient is that of all of θ.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, SerializerFunctionWrapHandler, model_serializer
from torch import Tensor, nn

from metasearch.encoders.encoder import Encoder
from metasearch.errors import ConfigError
from metasearch.learners.inner_loop import Rates
from metasearch.learners.low_rank import PROJECTIONS, LowRank, WithLowRank
from metasearch.spec.declared import Declared

ALL = "all"
KNOWN = "all, last:N (N layers, 1 or more), bias, lora:R (rank R, 1 or more)"
_NORMS = (nn.LayerNorm, nn.RMSNorm)
_FORM = re.compile(r"all|bias|(last|lora):[1-9][0-9]{0,5}")


def _known(written: str) -> str:
    if not _FORM.fullmatch(written):
        raise ValueError(f"expected one of {KNOWN}")
    return written


class InnerOptions(Declared):
    """What learners with an inner loop have in common.

    Attributes:
        adapt: which weights the inner loop moves, one of `all`, `last:N`, `bias` and `lora:R`.
    """

    adapt: Annotated[str, AfterValidator(_known)] = ALL

    @model_serializer(mode="wrap")
    def _written(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Return what a file holds; where all weights adapt it is what files held before there was a choice."""
        return {key: value for key, value in write(self).items() if (key, value) != ("adapt", ALL)}


class Adaptation:
    """What the inner loop moves of an encoder, and of copies of its network.

    Args:
        encoder: the encoder, as it is trained.
        adapt: a value of the option.

    Attributes:
        moves: for each tensor of Θ, whether the inner loop moves it.
        shifts: for each tensor of θ, whether its value in the network changes in the inner loop.

    Raises:
        ConfigError: the encoder has not so many layers, or nothing of the kind.
    """

    def __init__(self, encoder: Encoder, adapt: str = ALL) -> None:
        self._weights = {name: p for name, p in encoder.embedder.named_parameters() if p.requires_grad}
        self.low_rank: tuple[LowRank, ...] = ()
        kind, _, number = adapt.partition(":")
        where = f"options.adapt: '{adapt}': encoder '{getattr(encoder, 'name', 'given')}'"
        if kind == "lora":
            self.low_rank = _low_rank(encoder.embedder, self._weights, int(number), where)
            chosen = set()
        elif kind == "last":
            chosen = _last(encoder.embedder, int(number), where)
        else:
            chosen = {id(p) for name, p in self._weights.items() if kind == ALL or _is_bias(name, p)}
        moves = [id(weight) in chosen for weight in self._weights.values()]
        if not (any(moves) or self.low_rank or kind == ALL):
            raise ConfigError(f"{where} has none that is trained; the inner loop would move nothing")
        places = {update.place for update in self.low_rank}
        self.moves = (*moves, *([True] * (2 * len(self.low_rank))))
        self.shifts = tuple(moved or place in places for place, moved in enumerate(moves))

    def named(self) -> Iterator[tuple[str, Tensor]]:
        """Yield name and value of what adapts, at the start of an episode."""
        names = [*self._weights, *(f"{update.name}.lora_{side}" for update in self.low_rank for side in "ab")]
        whole = zip(names, self.start(list(self._weights.values())), self.moves, strict=True)
        yield from ((name, value) for name, value, moves in whole if moves)

    def start(self, weights: Sequence[Tensor]) -> list[Tensor]:
        """Return Θ at the start of an episode: the weights θ, then A and B = 0 of each low-rank update."""
        return [*weights, *(side for update in self.low_rank for side in update.start(weights[update.place]))]

    def merged(self, point: Sequence[Tensor]) -> list[Tensor]:
        """Return the weights that the network runs on at a point Θ of the inner loop, differentiable in all of it."""
        weights, sides = list(point[: len(self._weights)]), iter(point[len(self._weights) :])
        for update in self.low_rank:
            weights[update.place] = update.merged(weights[update.place], next(sides), next(sides))
        return weights

    def around(self, network: nn.Module) -> nn.Module:
        """Return a module whose trainable parameters are Θ, and which runs a network of this encoder on `merged`."""
        return WithLowRank(network, self.low_rank) if self.low_rank else network

    def rates(self, lr: float | Sequence[Tensor]) -> Rates:
        """Return the inner rate of each tensor of Θ, None for one that stays, from one rate or one for each that moves.

        One rate of a Θ that moves as a whole is returned as it is.
        """
        if isinstance(lr, float) and all(self.moves):
            return lr
        places = [place for place, moves in enumerate(self.moves) if moves]
        each: Sequence[float | Tensor] = [lr] * len(places) if isinstance(lr, float) else lr
        given = dict(zip(places, each, strict=True))
        return [given.get(place) for place in range(len(self.moves))]


def _is_bias(name: str, weight: Tensor) -> bool:
    return name.rpartition(".")[2] == "bias" and weight.ndim == 1


def _stack(module: nn.Module, where: str) -> tuple[list[nn.Module], list[nn.Module]]:
    """Return the layers of a network, each once, and the modules that run behind them."""
    found = list(_stacks(module))
    if not found:
        raise ConfigError(f"{where} has no layers; 'all' takes all of its weights")
    if len(found) > 1:
        raise ConfigError(f"{where} has {len(found)} lists of layers, and which come last is not known; take 'all'")
    return found[0]


def _stacks(module: nn.Module, behind: Sequence[nn.Module] = ()) -> Iterator[tuple[list[nn.Module], list[nn.Module]]]:
    """Yield every list of layers that is not part of a layer, with what runs behind it."""
    children = list(module.children())
    for number, child in enumerate(children, 1):
        # The children of a `Sequential` run in their order, as the modules of sentence-transformers do. Of others it is
        # known of norms alone: MPNet's positions, which every layer needs, stand behind its layers.
        ordered = isinstance(module, nn.Sequential)
        after = [*(other for other in children[number:] if ordered or isinstance(other, _NORMS)), *behind]
        if isinstance(child, nn.ModuleList):
            yield list(child.children()), list(after)
        else:
            yield from _stacks(child, after)


def _last(network: nn.Module, count: int, where: str) -> set[int]:
    """Return the ids of the weights of the last layers and of what runs behind them."""
    layers, behind = _stack(network, where)
    if count > len(layers):
        these = f"{len(layers)} layers" if len(layers) > 1 else "1 layer"
        raise ConfigError(f"{where} has {these}{_often(network)}; N is at most {len(layers)}")
    return {id(p) for module in (*layers[len(layers) - count :], *behind) for p in module.parameters()}


def _often(network: nn.Module) -> str:
    """Return what is said of recurrent layers, of which more run than there are."""
    most = max(getattr(module, "repeats", 1) for module in network.modules() if isinstance(module, nn.ModuleList))
    return f", which run {most} times" if most > 1 else ""


def _low_rank(network: nn.Module, weights: dict[str, nn.Parameter], rank: int, where: str) -> tuple[LowRank, ...]:
    """Return an update for each query and value projection that is trained."""
    layers, _ = _stack(network, where)
    attention = {
        id(module.weight)
        for layer in layers
        for name, module in layer.named_modules()
        if isinstance(module, nn.Linear) and name.rpartition(".")[2] in PROJECTIONS
    }
    found = [(place, name, weight) for place, (name, weight) in enumerate(weights.items()) if id(weight) in attention]
    if not found:
        raise ConfigError(f"{where} has no trained projection of attention called {', '.join(PROJECTIONS)}; take 'all'")
    most = min(min(weight.shape) for _, _, weight in found)
    if rank > most:
        raise ConfigError(f"{where} has projections of {most} columns; R is at most {most}")
    return tuple(LowRank.drawn(name, place, weight, rank) for place, name, weight in found)
