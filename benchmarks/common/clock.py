"""The two clocks of all timings."""

import time

import numpy as np
import torch
from numpy.typing import NDArray

Seconds = NDArray[np.float64]
"""By the clock on the wall and by the processor `(2,)`; the second says more where other work shares the machine."""


def clock(device: torch.device | None = None) -> Seconds:
    """Return the present time, of which differences count; of a GPU once all that it was given is done."""
    if device is not None and device.type == "cuda":
        torch.cuda.synchronize(device)
    return np.array([time.perf_counter(), time.process_time()])
