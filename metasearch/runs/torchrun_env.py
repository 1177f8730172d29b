"""The process rank from torchrun's environment; needs no torch."""

import os
from dataclasses import dataclass

from metasearch.errors import ConfigError

_NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")


@dataclass(frozen=True)
class Rank:
    """One process of a run: its number from 0, the total, and its number on its machine. Process 0 writes."""

    number: int = 0
    count: int = 1
    local: int = 0


def rank() -> Rank:
    """Return this process's rank; a process started alone is the only one."""
    found = {name: os.environ.get(name, "") for name in _NAMES}
    if not found["RANK"] and found["WORLD_SIZE"] in ("", "1"):
        return Rank()
    if missing := [name for name, value in found.items() if not value]:
        raise ConfigError(
            f"the environment belongs to one of several processes but has no {', '.join(missing)}; start them with "
            "torchrun, or unset RANK and WORLD_SIZE for one process"
        )
    if wrong := [name for name in _NAMES[:3] if not found[name].isdecimal()]:
        raise ConfigError(f"{wrong[0]}={found[wrong[0]]}: the environment variable is not a number")
    number, count, local = (int(found[name]) for name in _NAMES[:3])
    return Rank(number, count, local)


def require_divides(count: int, shards: int, key: str) -> None:
    """Raise `ConfigError` where so many processes cannot share so many shards, both with the nearest right number."""
    if count == 1 or shards % count == 0:
        return
    if count & (count - 1):
        near = 1 << count.bit_length() - 1
        raise ConfigError(f"{count} processes: the number must be a power of two; start {near} or {2 * near} processes")
    raise ConfigError(
        f"{count} processes cannot share {shards} shard{'s' if shards > 1 else ''} ({key}={shards}); start "
        f"{shards} at most, or set {key}={count}"
    )


def require_alone(what: str) -> None:
    """Raise `ConfigError` if this is one of several processes but `what` needs a single one."""
    if rank().count > 1:
        raise ConfigError(f"{what} runs in one process; start it without torchrun")
