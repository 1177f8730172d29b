"""How much memory there is, and how much a second-order step keeps."""

from pathlib import Path

import torch

from metasearch.fast.transfer import Objective, Weights

_CGROUP = Path("/sys/fs/cgroup")
_UNKNOWN = 4 * 2**30
"""What is taken to be free where nothing says."""


def kept(objective: Objective, start: Weights) -> int:
    """Return the bytes that an inner step in graph form keeps until the way back, found out by making one.

    Args:
        objective: loss of the step.
        start: weights, which stay as they are.
    """
    found: dict[int, int] = {}

    def note(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        found[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        leaves = [weight.detach().requires_grad_() for weight in start]
        # The graph must live until all is counted, or memory that it frees would be counted under one address.
        alive = torch.autograd.grad(objective(leaves), leaves, create_graph=True, allow_unused=True)
    del alive
    return sum(found.values())


def available(device: torch.device) -> int:
    """Return the bytes that can be had on a device, within the limit of a container."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    free = _meminfo()
    limit, used = (_number(_CGROUP / name) for name in ("memory.max", "memory.current"))
    return free if limit is None or used is None else min(free, max(limit - used, 0))


def _meminfo() -> int:
    path = Path("/proc/meminfo")
    for line in path.read_text(encoding="ascii").splitlines() if path.is_file() else ():
        if line.startswith("MemAvailable:"):
            return 1024 * int(line.split()[1])
    return _UNKNOWN


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):  # no container, or one without a limit
        return None
