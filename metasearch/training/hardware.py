"""Time, memory and hardware facts."""

import logging
import platform
import resource
import sys
import timeit
from typing import Any

import torch

from metasearch.runs.torchrun_env import rank
from metasearch.runs.versions import cores, processor

log = logging.getLogger(__name__)


def warn_if_bf16_is_slow(device: torch.device) -> None:
    """Warn where matrix products in bfloat16 take longer than in float32, as on CPUs that only emulate them."""
    if device.type == "cpu" and (times := _seconds(torch.bfloat16) / _seconds(torch.float32)) > 1:
        log.warning("bfloat16: matrix products take %.1f times as long as in float32 on this CPU; use float32", times)


def _seconds(kind: torch.dtype) -> float:
    """Return the shortest time out of three for multiplying 256 vectors by a square layer."""
    vectors, layer = torch.ones(256, 384, dtype=kind), torch.ones(384, 384, dtype=kind)
    return min(timeit.repeat(lambda: vectors @ layer, number=1, repeat=3))


def used(seconds: float, device: torch.device) -> dict[str, Any]:
    """Return time, peak memory and hardware of this process, as JSON; seconds are since the start or last resume."""
    facts = {
        "seconds": round(seconds, 3),
        "peak_memory_mib": round(peak_memory() / 2**20, 1),
        "processor": processor(),
        "cores": cores(),
        "threads": torch.get_num_threads(),
        "processes": rank().count,
        "system": f"{platform.system()} {platform.machine()}",
        "device": device.type,
    }
    if device.type == "cuda":
        facts["device"] = torch.cuda.get_device_name(device)
        facts["peak_device_memory_mib"] = round(torch.cuda.max_memory_allocated(device) / 2**20, 1)
    return facts


def peak_memory() -> int:
    """Return the most memory that this process ever held, in bytes."""
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # In bytes on macOS, in KiB on Linux.
    return held if sys.platform == "darwin" else 1024 * held
