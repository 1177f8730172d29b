"""What a run ran on and what it used."""

import os
import platform
import resource
import sys
from pathlib import Path
from typing import Any

import torch


def used(seconds: float, device: torch.device) -> dict[str, Any]:
    """Return time, peak memory and hardware of this process, as JSON.

    Args:
        seconds: since the start or the last resume.
        device: where the encoder is.
    """
    facts = {
        "seconds": round(seconds, 3),
        "peak_memory_mib": round(peak_memory() / 2**20, 1),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "threads": torch.get_num_threads(),
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
    return held if sys.platform == "darwin" else 1024 * held


def _processor() -> str:
    """Return the processor's name; `platform` does not know it on Linux."""
    listed = Path("/proc/cpuinfo")
    for line in listed.read_text(encoding="utf-8").splitlines() if listed.is_file() else ():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
