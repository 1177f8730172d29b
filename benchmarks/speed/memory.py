"""How much memory this process and its tensors hold, and how much they held at most."""

import ctypes
import platform
import sys
import weakref
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from metasearch.training.hardware import peak_memory

MIB = 2**20


class LiveTensors(TorchDispatchMode):
    """Counts the bytes of tensors that are made inside of it, in this thread, for as long as they live.

    An allocator needs somewhat more: it rounds, and what is freed may lie where nothing fits. That of the C library
    holds on to much of it.

    Args:
        beside: tensors whose storages do not count, such as weights.

    Attributes:
        peak: the most bytes so far.
    """

    def __init__(self, beside: Iterable[Tensor]) -> None:
        super().__init__()
        self._seen = {tensor.untyped_storage()._cdata for tensor in beside}
        self._live = self.peak = 0

    def __torch_dispatch__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation, and note what it made."""
        made = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(made):
            if isinstance(tensor, Tensor) and tensor.layout == torch.strided:
                self._note(tensor.untyped_storage())
        return made

    def _note(self, storage: torch.UntypedStorage) -> None:
        key, size = storage._cdata, storage.nbytes()
        if key in self._seen:
            return
        self._seen.add(key)
        self._live += size
        self.peak = max(self.peak, self._live)
        weakref.finalize(storage, self._freed, key, size)

    def _freed(self, key: int, size: int) -> None:
        self._seen.discard(key)
        self._live -= size


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
