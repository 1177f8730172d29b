"""How fast this CPU multiplies matrices in float32, bfloat16 and int8: measured once, and kept in the user's cache."""

import hashlib
import os
import timeit
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as F

from metasearch.io import recall, remember
from metasearch.runs.versions import processor

ROWS, INPUTS, OUTPUTS = 256, 384, 1536
"""The product that is timed: tokens by the first layer of a feed-forward block of multilingual-e5-small."""
FASTER = 1.2
"""bfloat16 must be so many times as fast as float32 to be taken; its other costs are the same."""
_KINDS = "float32", "bfloat16", "int8"
_SLOW = 0.01
"""Seconds for a product of a few rows above which a kind is only emulated, and not timed further."""

Rates = Mapping[str, float]
"""Precision → GFLOP/s; 0 where this CPU or this build of torch cannot compute in it, or computes something else."""


@cache
def cpu_rates(keep: bool = True) -> Rates:
    """Return how fast this CPU is in each precision, as found when it was asked first.

    What an index is made in must not change with what else the machine does, so the first answer is kept for each
    kind of CPU, release of torch and number of threads; `keep=False` writes nothing.
    """
    name = f"cpu-{_about()}.json"
    if known := recall(name, lambda found: {kind: float(found[kind]) for kind in _KINDS}):
        return known
    measured = measure()
    if keep:
        remember(name, measured)
    return measured


def fastest(keep: bool = True) -> str:
    """Return `bfloat16` where it is faster than float32 on this CPU, else `float32`; int8 is never taken unasked."""
    rates = cpu_rates(keep)
    return "bfloat16" if rates["bfloat16"] > FASTER * rates["float32"] else "float32"


def measure() -> dict[str, float]:
    """Time a product in each precision, a few milliseconds each."""
    inputs, weights = torch.ones(ROWS, INPUTS), torch.ones(OUTPUTS, INPUTS)
    half = inputs.bfloat16(), weights.bfloat16()
    return {
        "float32": _rate(lambda rows: F.linear(inputs[:rows], weights)),
        "bfloat16": _rate(lambda rows: F.linear(half[0][:rows], half[1])),
        "int8": _int8_rate(),
    }


def _int8_rate() -> float:
    """Return the rate in int8, or 0 if there is no kernel, or it saturates sums of two products in 16 bits."""
    inputs = torch.full((ROWS, INPUTS), 255, dtype=torch.uint8)
    try:
        weights = int8_weights(torch.full((OUTPUTS, INPUTS), 127, dtype=torch.int8))
        steps = torch.ones(OUTPUTS)
        if not (int8_product(inputs[:2], weights, steps, torch.float32) == INPUTS * (255 - 128) * 127).all():
            return 0.0
    except (AttributeError, NotImplementedError, RuntimeError):
        return 0.0
    return _rate(lambda rows: int8_product(inputs[:rows], weights, steps, torch.float32))


def int8_weights(integers: torch.Tensor) -> Any:
    """Return int8 weights `(outputs, inputs)` in the layout that oneDNN multiplies by."""
    return torch.ops.onednn.qlinear_prepack(integers, None)


def int8_product(inputs: torch.Tensor, weights: Any, steps: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return `steps · Σ (inputs − 128) · weights`, summed in 32-bit integers; `inputs` are uint8 `(…, inputs)`."""
    zero = torch.zeros(len(steps), dtype=torch.int64)
    product: torch.Tensor = torch.ops.onednn.qlinear_pointwise(
        inputs, 1.0, 128, weights, steps, zero, None, 1.0, 0, dtype, "none", [], ""
    )
    return product


def _rate(product: Callable[[int], object]) -> float:
    """Return GFLOP/s of a product of so many rows, by the shortest of five times."""
    product(4)  # compiles the kernel
    if (seconds := timeit.timeit(lambda: product(4), number=1)) < _SLOW:
        product(ROWS)
        rows, seconds = ROWS, min(timeit.repeat(lambda: product(ROWS), number=1, repeat=5))
    else:
        rows = 4
    return round(2e-9 * rows * INPUTS * OUTPUTS / seconds, 1)


def _about() -> str:
    """Return a hash of what the rates depend on."""
    listed = Path("/proc/cpuinfo")
    lines = listed.read_text(encoding="utf-8").splitlines() if listed.is_file() else ()
    # The name of a virtual CPU hides what it can do.
    flags = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    about = (processor(), flags, torch.__version__, torch.get_num_threads(), os.environ.get("ONEDNN_MAX_CPU_ISA"))
    return hashlib.sha256(repr(about).encode()).hexdigest()[:12]
