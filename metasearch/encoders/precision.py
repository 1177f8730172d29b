"""Encode in bfloat16 or int8: the linear layers of a transformer converted once, for inference on a CPU.

- `bfloat16`: weights, and activations between linear layers, in bfloat16.
- `int8`: each row of a weight matrix, and each token's activations, are integers `round(x / s)` between -127 and 127
  with a step `s = max|x| / 127` of their own. Their products are summed in 32-bit integers. A step by token (Dettmers
  et al.: *LLM.int8()*, 2022, section 3) keeps a text's vector apart from the other texts in its batch, and needs no
  calibration, so no language falls outside a range.

Normalisation, softmax, residual sums and pooling stay float32. Texts stand in one row without padding.

Notation used for tensor shapes: N tokens of all texts, C columns and R rows of a weight matrix.
"""

import copy
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import AttentionInterface

from metasearch.config.index import Low
from metasearch.encoders.checks import probe_rows
from metasearch.encoders.cpu_rates import int8_product, int8_weights
from metasearch.encoders.features import Output
from metasearch.encoders.inputs import TransformerInput, input_of
from metasearch.encoders.packed import packed
from metasearch.errors import first_line

ATTENTION = "metasearch-inference"
"""Name of the attention for texts in one row; never set in a model that is saved."""
LEVELS = 127
CLOSE = 0.95
"""Cosine that vectors of a probe must have with those in float32.

In int8, e5 has 0.998, and mini-e5, whose projection takes out what all vectors share, 0.98.
"""
_PROBED = 24
_PACKED_FOR = 1024
"""Rows of the products for which oneDNN lays out bfloat16 weights; others are right, too."""


def inner_type() -> torch.dtype:
    """Return the type of activations between linear layers: bfloat16 where oneDNN has kernels for it."""
    return torch.bfloat16 if torch.ops.mkldnn._is_mkldnn_bf16_supported() else torch.float32


class Bfloat16Linear(nn.Module):
    """A linear layer in bfloat16; sums are in float32, and rounded once."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.bias = None if layer.bias is None else layer.bias.detach().bfloat16()
        weight = layer.weight.detach().bfloat16()
        self.laid_out = torch.ops.mkldnn._is_mkldnn_bf16_supported()
        self.weight = torch.ops.mkldnn._reorder_linear_weight(weight, _PACKED_FOR) if self.laid_out else weight

    def forward(self, inputs: Tensor) -> Tensor:
        """Return `(…, R)` in bfloat16 for inputs `(…, C)` of any type."""
        inputs = inputs.bfloat16()
        if not self.laid_out:
            return F.linear(inputs, self.weight, self.bias)
        outputs: Tensor = torch.ops.mkldnn._linear_pointwise(inputs, self.weight, self.bias, "none", [], "")
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


class Int8Linear(nn.Module):
    """A linear layer of int8 weights with a step for each row, which rounds its inputs by token."""

    def __init__(self, layer: nn.Linear, rounding: TokenRounding, dtype: torch.dtype) -> None:
        super().__init__()
        self.rounding, self.dtype = rounding, dtype
        weight = layer.weight.detach().float()
        self.steps = (weight.abs().amax(1) / LEVELS).clamp_(min=1e-30)
        self.weight = int8_weights((weight / self.steps[:, None]).round_().to(torch.int8))
        self.bias = torch.zeros(len(weight), dtype=dtype) if layer.bias is None else layer.bias.detach().to(dtype)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return `(…, R)` for inputs `(…, C)` of any type."""
        integers, steps = self.rounding(inputs)
        product = int8_product(integers, self.weight, self.steps, self.dtype)
        return torch.addcmul(self.bias, product, steps.to(self.dtype))


class RowLinear(nn.Module):
    """A linear layer after the pooling, in float32, one text at a time: the rounding depends on how many there are."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, inputs: Tensor) -> Tensor:
        """Return `(B, R)` for `(B, C)`."""
        return torch.cat([self.layer(row) for row in torch.split(inputs, 1)])


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    spans: Sequence[tuple[int, int]] = (),
    sliding_window: int | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Attend within each text of a row; an attention function for transformers, without gradients and dropout.

    Query, key and value are `(1, heads, N, d)`, `spans` runs of equally long texts as (how many, how long). Returns
    `(1, N, heads, d)`. Scores and weights of bfloat16 inputs are bfloat16, the softmax between them is float32.
    """
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    ends = np.cumsum([0, *(count * length for count, length in spans)]).tolist()
    outputs = []
    for (start, end), (count, length) in zip(pairwise(ends), spans, strict=True):
        # (heads, count · length, d) → (count, heads, length, d)
        q, k, v = (
            torch.unflatten(each[0, :, start:end], 1, (count, length)).transpose(0, 1) for each in (query, key, value)
        )
        scores = torch.matmul(q * scale, k.transpose(-1, -2))
        if sliding_window is not None and length > sliding_window:
            places = torch.arange(length)
            scores.masked_fill_((places[:, None] - places).abs() >= sliding_window, -torch.inf)
        weights = torch.softmax(scores, -1, dtype=torch.float32).to(v.dtype)
        # (count, heads, length, d) → (count · length, heads, d)
        outputs.append(torch.matmul(weights, v).transpose(1, 2).flatten(0, 1))
    return torch.cat(outputs)[None], None


AttentionInterface.register(ATTENTION, attend)


class LowPrecision:
    """A copy of an encoder's network whose linear layers are converted; all other weights are shared.

    Args:
        embedder: the network, whose first module must hold a transformer.
        precision: `bfloat16` or `int8`.
    """

    def __init__(self, embedder: Any, precision: Low) -> None:
        self.precision: Low = precision
        self._weights = [*embedder.parameters()]
        self._versions = self._now()
        model = embedder.model
        shared = [model.tokenizer, getattr(model[0], "processor", model.tokenizer), model.model_card_data]
        memo = {id(part): part for part in (*self._weights, *shared)}
        self._module = copy.deepcopy(embedder, memo).eval()
        self._rounding = TokenRounding()
        read = input_of(self._module.model)
        assert isinstance(read, TransformerInput)
        self._first, self._padding = read.first_position, read.padding
        self._replace(read.backbone, lambda layer: self._converted(layer, precision))
        for module in list(self._module.model)[1:]:
            self._replace(module, RowLinear)
        read.attend_with(ATTENTION)

    def _converted(self, layer: nn.Linear, precision: Low) -> nn.Module:
        if precision == "int8":
            return Int8Linear(layer, self._rounding, inner_type())
        return Bfloat16Linear(layer)

    def _replace(self, parent: nn.Module, other: Callable[[nn.Linear], nn.Module]) -> None:
        for name, child in parent.named_children():
            if type(child) is nn.Linear:
                setattr(parent, name, other(child))
            elif name == "embeddings":
                # A factorised table: all layers read what it gives, and it takes no time.
                self._replace(child, Bfloat16Linear)
            else:
                self._replace(child, other)

    def _now(self) -> list[tuple[int, int]]:
        return [(weight.data_ptr(), weight._version) for weight in self._weights]

    @property
    def is_current(self) -> bool:
        """Whether no weight was changed since; steps of an optimizer change them."""
        return self._now() == self._versions

    def vectors(self, columns: Sequence[str], rows: Sequence[NDArray[np.int32]], output: Output) -> Tensor:
        """Return output `sentence` or `pooled` `(B, D)` in float32 for tokens `(columns, length)`."""
        order = sorted(range(len(rows)), key=lambda i: rows[i].shape[1])
        features = packed([rows[i] for i in order], columns, self._first, self._padding)
        with torch.no_grad():
            found: Tensor = self._module(features, output).float()
        self._rounding.forget()
        return found[torch.tensor(order).argsort()]


def low_precision(embedder: Any, precision: Low) -> LowPrecision | str:
    """Return a converted copy of a network, or why it cannot be converted, as a probe of two texts finds."""
    read = input_of(embedder.model)
    if not isinstance(read, TransformerInput):
        return "a static encoder has no linear layers"
    try:
        network = LowPrecision(embedder, precision)
        columns, rows = probe_rows(read, max(_PROBED, read.window + 8))
        found = network.vectors(columns, rows, "pooled")
        alone = torch.cat([network.vectors(columns, [row], "pooled") for row in rows])
        with torch.no_grad():
            expected = embedder(read.padded(columns, rows), "pooled")
    except Exception as error:  # whatever a network raises that expects another layout or type
        return f"'{read.kind}' cannot read texts in one row: {first_line(error)}"
    if not torch.allclose(found, alone, rtol=1e-2, atol=1e-2 * float(alone.abs().mean())):
        return f"texts in one row change each other's vectors in '{read.kind}'"
    cosine = float(F.cosine_similarity(found, expected).min())
    if not cosine >= CLOSE:
        return f"vectors of a probe have a cosine of {cosine:.3f} to those in float32"
    return network
