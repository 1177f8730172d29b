"""The random numbers of torch: a process has one generator, so its threads draw in turn."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

import torch

_TURN = RLock()


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Draw random numbers from a seed while entered, and restore the generator; other threads wait until then."""
    with _TURN, torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield
