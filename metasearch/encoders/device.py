"""The device that an encoder runs on."""

from functools import cache
from pathlib import Path

import torch

from metasearch.errors import ConfigError
from metasearch.runs.torchrun_env import rank


def device_of(name: str) -> torch.device:
    """Return a device by name, `auto` for the best one; several processes have a GPU each.

    `ConfigError` if it is not available, or not for this process.
    """
    available = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        name = next(kind for kind in ("cuda", "mps", "cpu") if available[kind])
    if not available.get(name):
        raise ConfigError(
            f"--device {name}: not available; available: {', '.join(k for k, v in available.items() if v)}"
        )
    own = rank()
    if own.count == 1 or name == "cpu":
        return torch.device(name)
    if name == "mps":
        raise ConfigError("--device mps: supports one process; use --device cpu for several")
    if own.local >= (there := torch.cuda.device_count()):
        raise ConfigError(
            f"--device cuda: process {own.local} of this machine has no GPU; there are {there}. Start torchrun with "
            f"--nproc-per-node {there} at most, or take --device cpu"
        )
    torch.cuda.set_device(own.local)
    return torch.device("cuda", own.local)


@cache
def fast_in_bfloat16() -> bool:
    """Return whether this CPU multiplies faster in bfloat16 than in float32; False where the system does not say.

    AMX, AMD's AVX-512 and ARM's instructions do. Intel's AVX-512 does not; a virtual machine may have it without AMX.
    """
    listed = Path("/proc/cpuinfo")
    words = set(listed.read_text(encoding="utf-8").split()) if listed.is_file() else set[str]()
    return not words.isdisjoint({"amx_bf16", "bf16"}) or {"AuthenticAMD", "avx512_bf16"} <= words
