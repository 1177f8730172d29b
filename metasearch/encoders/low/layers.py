"""Linear layers in bfloat16: weights, and activations between linear layers.

Notation used for tensor shapes: C columns and R rows of a weight matrix.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

_PACKED_FOR = 1024
"""Rows of the products for which oneDNN lays out bfloat16 weights; others are right, too."""


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


class RowLinear(nn.Module):
    """A linear layer after the pooling, in float32, one text at a time: the rounding depends on how many there are."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, inputs: Tensor) -> Tensor:
        """Return `(B, R)` for `(B, C)`."""
        return torch.cat([self.layer(row) for row in torch.split(inputs, 1)])
