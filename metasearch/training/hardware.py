"""Time, memory and hardware facts."""

import platform
import resource
import sys
from typing import Any

import torch

from metasearch.runs.torchrun_env import rank
from metasearch.runs.versions import cores, processor


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
