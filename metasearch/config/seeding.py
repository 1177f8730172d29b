"""Independent random streams, named by purpose.

A stream depends on its seed and its names alone: not on what was drawn before, on the process, or on
`PYTHONHASHSEED`. So episode i can be drawn without drawing episodes 0 to i-1, and a run resumes to the same bits.
"""

import hashlib

import numpy as np


def seed_of(seed: int, *names: str | int) -> int:
    """Return a 63-bit seed for the stream with these names, such as `("meta-train", 17)`."""
    # A separator that no name has: ("a", 11) and ("a1", 1) are two streams.
    key = "\x1f".join([str(seed), *map(str, names)])
    # 63 bits fit the signed integers that some libraries take as seeds.
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") >> 1


def stream(seed: int, *names: str | int) -> np.random.Generator:
    """Return a numpy generator for the stream with these names."""
    return np.random.default_rng(seed_of(seed, *names))
