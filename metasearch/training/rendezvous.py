"""Rendezvous of a run's processes, and the choice of one process to report why the run ended."""

import time
from datetime import timedelta
from functools import cache

from torch.distributed.distributed_c10d import Store
from torch.distributed.rendezvous import rendezvous

from metasearch.runs.torchrun_env import rank

_MEET = timedelta(minutes=10)
"""Longest to wait for the process that keeps the store."""
_GRACE_SECONDS = 5.0
"""How long another process waits for the first one to say an error that both may have."""
_CODE, _CLAIM = "metasearch/code", "metasearch/claim"


@cache
def store() -> Store:
    """Return the store that torchrun, or the first process, keeps for all."""
    found, _, _ = next(rendezvous("env://", timeout=_MEET))
    return found  # type: ignore[no-any-return]


def ended_before(code: int) -> int | None:
    """Return the exit code of the first failed process; None if it is this one, which then reports the error.

    The first process has priority over others that fail at the same time. Without the store, it alone reports.
    """
    first = rank().number == 0
    try:
        shared = store()
        until = time.monotonic() + (0 if first else _GRACE_SECONDS)
        while time.monotonic() < until and not shared.check([_CODE]):
            time.sleep(0.05)
        if shared.add(_CLAIM, 1) == 1:
            shared.set(_CODE, str(code))
            return None
        return int(shared.get(_CODE))
    except (RuntimeError, ValueError):  # torch's own errors of a store that has ended are RuntimeErrors
        return None if first else code
