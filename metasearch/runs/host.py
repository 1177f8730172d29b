"""How many cores and how much memory this process may use."""

import os
from pathlib import Path

# The limit as a container with cgroup v2 sees it; the root group of a host has no such file.
_CGROUP = Path("/sys/fs/cgroup/memory.max")


def cores() -> int | None:
    """Return the cores that this process may use, in a container fewer than there are; None where nobody knows."""
    # macOS does not say which it may.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def memory() -> int:
    """Return the bytes of memory that the machine has, or a container allows."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = _CGROUP.read_text(encoding="ascii").strip() if _CGROUP.is_file() else "max"
    return total if limit == "max" else min(total, int(limit))
