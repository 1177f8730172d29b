"""How much memory this process holds, and how much it held at most."""

import ctypes
import platform
import sys
from pathlib import Path

from metasearch.training.machine import peak_memory

MIB = 2**20


def reset_peak() -> int:
    """Give free memory back, let the peak begin anew where Linux allows it, and return the memory held, in bytes."""
    if platform.libc_ver()[0] == "glibc":
        ctypes.CDLL(None).malloc_trim(0)
    if sys.platform == "linux":
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return _held("VmRSS")


def peak() -> int:
    """Return the highest memory since `reset_peak`, in bytes."""
    return _held("VmHWM")


def _held(entry: str) -> int:
    """Return an entry of this process's status in bytes; without one, the highest peak there ever was."""
    status = Path("/proc/self/status")
    lines = status.read_text(encoding="utf-8").splitlines() if status.is_file() else []
    for line in lines:
        if line.startswith(f"{entry}:"):
            return 1024 * int(line.split()[1])
    return peak_memory()
