"""The rate of each outer step, as a pure function of the step, so that a resumed run has the same rates."""

import math

from metasearch.spec.recipe import Outer


def rate(step: int, total: int, settings: Outer) -> float:
    """Return what the rate of a step is multiplied by, above 0 and at most 1.

    It rises in a line over the w steps of the warm-up: 1/w, 2/w, ... 1. Then it falls, in a line or as half a cosine,
    so that it would be 0 at the step after the last. So no step is taken in vain.

    Args:
        step: counted from 1.
        total: steps of the whole training.
        settings: shape and length of the warm-up and of the decay.
    """
    warmup = round(settings.warmup * total)
    if step < warmup:
        return step / warmup
    top = max(warmup, 1)
    past = (step - top) / (total + 1 - top)
    if settings.decay == "linear":
        return 1 - past
    if settings.decay == "cosine":
        return (1 + math.cos(math.pi * past)) / 2
    return 1.0
