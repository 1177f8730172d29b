"""How fast this CPU multiplies matrices in float32 and bfloat16, kept in the user's cache."""

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
_KINDS = "float32", "bfloat16"
TIMES = 3
"""Processes that measure, one after the other. Other work on the machine only lowers rates, so the highest count."""
_MEASURED = "measured"
_SLOW = 0.01
"""Seconds for a product of a few rows above which a kind is only emulated, and not timed further."""

Rates = Mapping[str, float]
"""Precision → GFLOP/s; 0 where this CPU or this build of torch cannot compute in it, or computes something else."""


@cache
def cpu_rates(keep: bool = True) -> Rates:
    """Return how fast this CPU is in each precision: the highest rates of the first processes that asked.

    The precision of an index must not change with other work on the machine. So the rates are kept for each kind of
    CPU, release of torch and number of threads, and stay after `TIMES` processes; `keep=False` writes nothing.
    """
    known, count = kept_rates()
    if count >= TIMES:
        return known
    found = {name: max(rate, known.get(name, 0.0)) for name, rate in measure().items()}
    if keep:
        remember(_file(), {**found, _MEASURED: count + 1})
    return found


def kept_rates() -> tuple[dict[str, float], int]:
    """Return the rates in the user's cache, and how many processes measured them; nothing and 0 without any.

    A file of an earlier release has no number, and counts as one measurement.
    """

    def read(found: Any) -> tuple[dict[str, float], int]:
        return {name: float(found[name]) for name in _KINDS}, int(found.get(_MEASURED, 1))

    return recall(_file(), read) or ({}, 0)


def _file() -> str:
    return f"cpu-{_about()}.json"


def fastest(keep: bool = True) -> str:
    """Return `bfloat16` where it is faster than float32 on this CPU, else `float32`."""
    rates = cpu_rates() if keep else cpu_rates(False)
    return "bfloat16" if rates["bfloat16"] > FASTER * rates["float32"] else "float32"


def measure() -> dict[str, float]:
    """Time a product in each precision, a few milliseconds each."""
    inputs, weights = torch.ones(ROWS, INPUTS), torch.ones(OUTPUTS, INPUTS)
    half = inputs.bfloat16(), weights.bfloat16()
    return {
        "float32": _rate(lambda rows: F.linear(inputs[:rows], weights)),
        "bfloat16": _rate(lambda rows: F.linear(half[0][:rows], half[1])),
    }


def _rate(product: Callable[[int], object]) -> float:
    """Return GFLOP/s of a product of so many rows, by the shortest of several times."""
    product(4)  # compiles the kernel
    if (seconds := min(timeit.repeat(lambda: product(4), number=1, repeat=3))) < _SLOW:
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
