"""How a process holds memory: the allocator that its tensors are from, and its settings."""

import ctypes
import os
import platform
from ctypes.util import find_library
from pathlib import Path

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENAS = -1, -3, -8
"""Parameters of glibc's `mallopt`: two in bytes, and how many arenas threads have."""
_MMAP_THRESHOLDS = (2**28, 2**25)
"""More than most activations and many word tables take; the most that glibc before 2.35 can be told."""
_RETURNED = 2**20
"""Less than most activations take."""
ALLOCATOR_VARIABLES = (
    "LD_PRELOAD",
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_TRIM_THRESHOLD_",
    "MALLOC_ARENA_MAX",
    "GLIBC_TUNABLES",
)
"""Variables by which a user chooses how memory is held."""
PRELOADED = ("tcmalloc_minimal", "tcmalloc", "jemalloc", "mimalloc")
"""Allocators that may take the place of glibc's, in the order of advice (`docs/memory.md`)."""


def keep_memory() -> bool:
    """Let this process keep what tensors give back, for the ones to come; return whether it does.

    glibc hands large blocks back to the system as soon as they are free, and the system clears their pages anew each
    time. Every inner step of the reference allocates and frees blocks of the size of the word table: with 250,002 × 128
    weights that is a third of its time, and keeping the blocks takes a third more memory. Fast gradients gain a few per
    cent with wide layers. Blocks that one thread freed can be taken by another only where all have one arena.

    Only processes that train or score and then end should call it. Nothing is changed without glibc, or where the
    environment chooses an allocator.
    """
    if not _may_choose():
        return False
    mallopt = ctypes.CDLL(None).mallopt
    # `mallopt` returns 0 for a size that it refuses; the first that it takes is the last to be tried.
    raised = any(mallopt(_MMAP_THRESHOLD, size) for size in _MMAP_THRESHOLDS)
    # 2³¹ − 1 is the most that its argument, an int, can hold.
    return bool(raised and mallopt(_TRIM_THRESHOLD, 2**31 - 1) and mallopt(_ARENAS, 1))


def return_memory() -> bool:
    """Let this process hand blocks of a MiB and more back as soon as they are free; return whether it does.

    Where layers are computed again on the way back, tensors of many sizes come and go between gradients that stay, and
    glibc finds no place for the next ones in what it kept: with layers of 384 columns the process holds 3.7 times as
    much as with blocks that are handed back, which take a quarter more time of the processor. It undoes `keep_memory`
    for these blocks, and changes nothing where that would not.
    """
    if not _may_choose():
        return False
    libc = ctypes.CDLL(None)
    chosen = bool(libc.mallopt(_MMAP_THRESHOLD, _RETURNED))
    libc.malloc_trim(0)
    return chosen


def _may_choose() -> bool:
    """Return whether the allocator is glibc's, and the environment leaves it to us."""
    return platform.libc_ver()[0] == "glibc" and not any(os.environ.get(name) for name in ALLOCATOR_VARIABLES)


def allocator_in_use() -> str:
    """Return what this process allocates from: a preloaded library, such as `libjemalloc.so.2`, or `glibc`."""
    maps = Path("/proc/self/maps")
    loaded = {Path(line.split()[-1]).name for line in maps.read_text().splitlines()} if maps.exists() else set()
    found = sorted(name for name in loaded if name.startswith(tuple(f"lib{kind}.so" for kind in PRELOADED)))
    return found[0] if found else platform.libc_ver()[0] or f"that of {platform.system()}"


def allocator_to_preload() -> str | None:
    """Return the file name of the first of `PRELOADED` that this system has, which `LD_PRELOAD` finds by it."""
    return next((found for kind in PRELOADED if (found := find_library(kind))), None)
