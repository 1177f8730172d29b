"""A batch of texts in parts, each with a worker of its own."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from metasearch.algorithms.inner_loop import Gradient
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.features import Output
from metasearch.training.distributed import GradientSum
from metasearch.training.packing.encoder import PackedEncoder
from metasearch.training.packing.layout import PackedTexts, token_rows
from metasearch.training.packing.network import Network

_LEAST = 256
"""Least tokens of a part: fewer are not worth a thread."""


class Parts:
    """Texts in as many parts as there are workers, with about as many tokens each.

    A loss L may compare any text with any other, so it needs the outputs v_1, …, v_P of all P parts at once. Its
    gradient is Σ_p (∂v_p/∂θ)ᵀ ∂L/∂v_p: each part keeps its graph until ∂L/∂v_p is known, and goes backward on its own
    thread (gradient caching, Gao et al. 2021).
    """

    def __init__(self, packed: PackedEncoder, texts: Sequence[str], output: Output, bf16: bool = False) -> None:
        parts = cut(packed.encoder, texts, packed.workers)
        self.batch = packed.lay_out([[("text", texts[i]) for i in part] for part in parts])
        self._output, self._bf16 = output, bf16
        order = [i for part in parts for i in part]
        # The argsort of a permutation is its inverse.
        rows = torch.from_numpy(place := np.argsort(order))
        if output == "states":
            rows = token_rows(place, packed.encoder.lengths([texts[i] for i in order], "text"))
        self._rows = rows.to(packed.encoder.device)

    def outputs(self, weights: Sequence[Tensor]) -> Tensor:
        """Return the outputs for weights from `PackedBatch.cut`, without gradients and dropout."""

        def run(network: Network, texts: PackedTexts) -> Tensor:
            # `each` has set the learner's mode, and sets it again before the next pass.
            network.train(False)
            with torch.no_grad():  # a setting of each thread
                return network.run(weights, texts, self._output, self._bf16)

        return self._joined(self.batch.packed.each(self.batch.texts, run))

    def begin(self, weights: Sequence[Tensor]) -> tuple[Tensor, Callable[[Tensor], Gradient]]:
        """Return the outputs, a row for each text or token, and the backward pass.

        The backward pass turns ∂L/∂outputs into the gradient in the weights, summed in the order of the parts.
        """

        def forward(network: Network, texts: PackedTexts) -> tuple[Sequence[Tensor], Tensor]:
            # `detach` shares the memory: leaves for each part cost nothing.
            leaves = [weight.detach().requires_grad_() for weight in weights]
            return leaves, network.run(leaves, texts, self._output, self._bf16)

        def backward(network: Network, part: tuple[Sequence[Tensor], Tensor, Tensor]) -> Gradient:
            leaves, rows, pulled = part
            return list(torch.autograd.grad(rows, leaves, pulled, allow_unused=True))

        each = self.batch.packed.each
        done = each(self.batch.texts, forward)

        def back(pulled: Tensor) -> Gradient:
            shares = self._apart(pulled, [len(outputs) for _, outputs in done])
            total = GradientSum(len(weights))
            for gradient in each([(*part, share) for part, share in zip(done, shares, strict=True)], backward):
                total.add(gradient)
            return total.gradient

        return self._joined([outputs.detach() for _, outputs in done]), back

    def _apart(self, outputs: Tensor, sizes: list[int]) -> Sequence[Tensor]:
        """Return each part's rows, as the inverse to `_joined`."""
        return torch.split(outputs[self._rows.argsort()], sizes)

    def _joined(self, rows: Sequence[Tensor]) -> Tensor:
        return torch.cat(list(rows))[self._rows]


def cut(encoder: Encoder, texts: Sequence[str], count: int, least: int = _LEAST) -> list[list[int]]:
    """Return text numbers for up to `count` parts with about `least` tokens or more, in ascending length."""
    if count < 2 or len(texts) < 2:
        return [list(range(len(texts)))]
    lengths = encoder.lengths(texts, "text")
    # numpy's default sort may put equal lengths in any order, and so texts into other parts.
    order = np.argsort(lengths, kind="stable")
    ends = np.cumsum(lengths[order])
    count = max(1, min(count, int(ends[-1]) // least))
    # A text across a border belongs to the part in which its middle lies.
    number = ((ends - lengths[order] / 2) * count // ends[-1]).astype(int)
    parts = [order[number == i].tolist() for i in range(count)]
    # A text longer than the share of a part can leave the next one empty.
    return [part for part in parts if part]
