"""Low-rank updates of weights that the inner loop moves in their place (LoRA, Hu et al., 2021, equation 3).

A projection W `(out, in)` runs as W + B A with A `(r, in)` and B `(out, r)`. Each episode begins with B = 0, and with A
as one fixed draw of N(0, 1/r): E[AᵀA] = I, so that the first step at a rate ρ, W − ρ ∇W AᵀA, is on average that of
gradient descent on W itself. The paper's factor α/r is 1, as another one only means another draw and another rate.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from metasearch.spec.seeding import stream

PROJECTIONS = ("query", "value", "q", "v", "q_lin", "v_lin", "q_proj", "v_proj", "Wqkv")
"""What the query and value projections of attention are called in the backbones of transformers; ModernBERT has one for
queries, keys and values together."""


@dataclass(frozen=True)
class LowRank:
    """The update of one weight.

    Attributes:
        name: of the weight.
        place: of the weight among the trainable ones.
        down: A at the start, `(r, in)`.
    """

    name: str
    place: int
    down: Tensor

    @classmethod
    def drawn(cls, name: str, place: int, weight: Tensor, rank: int) -> "LowRank":
        """Return an update of a rank; its A depends on the name and the shape of the weight alone."""
        values = stream(0, "lora", name, rank).normal(scale=rank**-0.5, size=(rank, weight.shape[1]))
        return cls(name, place, torch.from_numpy(values).to(weight))

    def start(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Return A and B at the start of an episode, in the type and on the device of the weight."""
        return self.down.to(weight), weight.new_zeros(weight.shape[0], len(self.down))

    def merged(self, weight: Tensor, down: Tensor, up: Tensor) -> Tensor:
        """Return W + B A, in the precision of the weights also where layers run in bfloat16."""
        with torch.autocast(weight.device.type, enabled=False):
            return weight + up @ down


class WithLowRank(nn.Module):
    """A network that runs with low-rank updates, whose factors are parameters of its own behind the network's."""

    def __init__(self, network: nn.Module, updates: Sequence[LowRank]) -> None:
        super().__init__()
        self.network = network
        trained = [(name, weight) for name, weight in network.named_parameters() if weight.requires_grad]
        # Names as they are now: those of layers that are computed again differ.
        self._updates = [(trained[update.place][0], update) for update in updates]
        sides = [side for update in updates for side in update.start(trained[update.place][1].detach())]
        self.sides = nn.ParameterList([nn.Parameter(side.clone()) for side in sides])

    def forward(self, *args: Any) -> Any:
        """Return what the network returns."""
        weights, named = dict(self.network.named_parameters()), {}
        for number, (name, update) in enumerate(self._updates):
            named[name] = update.merged(weights[name], self.sides[2 * number], self.sides[2 * number + 1])
        return functional_call(self.network, named, args)
