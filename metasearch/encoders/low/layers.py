"""Linear layers in bfloat16 and int8.

- `bfloat16`: weights, and activations between linear layers, in bfloat16.
- `int8`: each row of a weight matrix, and each token's activations, are integers `round(x / s)` between -127 and 127
  with a step `s = max|x| / 127` of their own. Their products are summed in 32-bit integers. A step by token (Dettmers
  et al.: *LLM.int8()*, 2022, section 3) keeps a text's vector apart from the other texts in its batch, and needs no
  calibration, so no language falls outside a range.

Notation used for tensor shapes: N tokens of all texts, C columns and R rows of a weight matrix.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from metasearch.encoders.cpu_rates import int8_product, int8_weights

LEVELS = 127
_PACKED_FOR = 1024
"""Rows of the products for which oneDNN lays out bfloat16 weights; others are right, too."""


def inner_type() -> torch.dtype:
    """Return the type of activations between linear layers: bfloat16 where oneDNN has kernels for it."""
    return torch.bfloat16 if torch.ops.mkldnn._is_mkldnn_bf16_supported() else torch.float32


class Bfloat16Linear(nn.Module):
    """A linear layer in bfloat16, and GELU after it if asked; sums are in float32, and rounded once."""

    def __init__(self, layer: nn.Linear, gelu: bool = False) -> None:
        super().__init__()
        self.gelu = gelu
        self.bias = None if layer.bias is None else layer.bias.detach().bfloat16()
        weight = layer.weight.detach().bfloat16()
        self.laid_out = torch.ops.mkldnn._is_mkldnn_bf16_supported()
        self.weight = torch.ops.mkldnn._reorder_linear_weight(weight, _PACKED_FOR) if self.laid_out else weight

    def forward(self, inputs: Tensor) -> Tensor:
        """Return `(…, R)` in bfloat16 for inputs `(…, C)` of any type."""
        inputs = inputs.bfloat16()
        if not self.laid_out:
            found = F.linear(inputs, self.weight, self.bias)
            return F.gelu(found) if self.gelu else found
        # The last argument is the form of GELU: by the error function.
        after: tuple[Any, ...] = ("gelu", [], "none") if self.gelu else ("none", [], "")
        outputs: Tensor = torch.ops.mkldnn._linear_pointwise(inputs, self.weight, self.bias, *after)
        return outputs


class TokenRounding:
    """Rounds activations to integers by token; layers that read the same tensor one after the other share the work."""

    def __init__(self) -> None:
        # One tuple, read and replaced whole: threads may take turns.
        self._last: tuple[Tensor, int, tuple[Tensor, Tensor]] | None = None

    def __call__(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return integers + 128 as uint8 `(…, C)`, and steps `(…, 1)` in bfloat16."""
        last = self._last
        if last is not None and last[0] is inputs and last[1] == inputs._version:
            return last[2]
        rounded = round_by_token(inputs)
        self._last = inputs, inputs._version, rounded
        return rounded

    def forget(self) -> None:
        """Free the last tensor."""
        self._last = None


def round_by_token(inputs: Tensor) -> tuple[Tensor, Tensor]:
    """Return integers + 128 as uint8 `(…, C)` and their steps `(…, 1)` in bfloat16, rounded before they are used.

    A step rounded down is at most 1/512 smaller, and 127 · 513/512 still rounds to 127.
    """
    values = inputs.float()
    largest = torch.maximum(values.amax(-1, keepdim=True), values.amin(-1, keepdim=True).neg_())
    steps = largest.div_(LEVELS).clamp_(min=1e-30).bfloat16()
    scaled = torch.mul(values, steps.float().reciprocal_(), out=None if values is inputs else values)
    # Through int8: torch converts to it several times as fast as to uint8. The highest bit turned is 128 more.
    return scaled.round_().to(torch.int8).view(torch.uint8).bitwise_xor_(128), steps


Rounding = Callable[[Tensor], tuple[Tensor, Tensor]]


class Int8Linear(nn.Module):
    """A linear layer of int8 weights with a step for each row, which rounds its inputs by token; GELU after it."""

    def __init__(self, layer: nn.Linear, dtype: torch.dtype, rounding: Rounding, gelu: bool = False) -> None:
        super().__init__()
        self.gelu = gelu
        self.rounding, self.dtype = rounding, dtype
        weight = layer.weight.detach().float()
        self.steps = (weight.abs().amax(1) / LEVELS).clamp_(min=1e-30)
        self.weight = int8_weights((weight / self.steps[:, None]).round_().to(torch.int8))
        self.bias = torch.zeros(len(weight), dtype=dtype) if layer.bias is None else layer.bias.detach().to(dtype)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return `(…, R)` for inputs `(…, C)` of any type."""
        integers, steps = self.rounding(inputs)
        product = int8_product(integers, self.weight, self.steps, self.dtype)
        found = torch.addcmul(self.bias, product, steps.to(self.dtype))
        return F.gelu(found) if self.gelu else found


class RowLinear(nn.Module):
    """A linear layer after the pooling, in float32, one text at a time: the rounding depends on how many there are."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, inputs: Tensor) -> Tensor:
        """Return `(B, R)` for `(B, C)`."""
        return torch.cat([self.layer(row) for row in torch.split(inputs, 1)])
