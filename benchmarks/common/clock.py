"""The two clocks of all timings."""

import time

import numpy as np
from numpy.typing import NDArray

Seconds = NDArray[np.float64]
"""By the clock on the wall and by the processor `(2,)`; the second says more where other work shares the machine."""


def clock() -> Seconds:
    """Return the present time, of which differences count."""
    return np.array([time.perf_counter(), time.process_time()])
