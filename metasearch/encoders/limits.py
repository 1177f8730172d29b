"""How much smaller an encoder can be made: which numbers fit its word table and its layers."""

import logging

from metasearch.errors import ConfigError

DEEPER = 4
"""Layers may run so many times as often as the encoder is deep; what is deeper is a slip of the hand."""

log = logging.getLogger(__name__)


def check_width(bottleneck: int | None, width: int) -> None:
    """Raise `ConfigError` unless a bottleneck is narrower than the table of this width."""
    if bottleneck is None:
        return
    _check_whole("bottleneck", bottleneck)
    if not 1 <= bottleneck < width:
        raise ConfigError(
            f"bottleneck {bottleneck}: the word table has {width} columns; choose a number from 1 to {width - 1}"
        )


def check_feed_forward(neurons: int, present: int) -> None:
    """Raise `ConfigError` unless a feed-forward block gets fewer neurons than the ones that are present."""
    _check_whole("feed-forward", neurons)
    if not 1 <= neurons < present:
        raise ConfigError(
            f"feed-forward {neurons}: a layer has {present} neurons; choose a number from 1 to {present - 1}"
        )


def check_repeats(depth: int, recurrent: int | None, repeats: int | None) -> int | None:
    """Return how often M layers run, by default so often that the depth L stays.

    Args:
        depth: L.
        recurrent: M; none for a model that keeps all layers.
        repeats: as asked for.

    Raises:
        ConfigError: there are fewer layers than M, L is no multiple of M, a number is below 1, or more than 4·L layers
            would run.
    """
    _check_whole("repeats", repeats)
    if recurrent is None:
        if repeats is not None:
            raise ConfigError(f"repeats {repeats}: which layers? Say how many recurrent ones to keep, too")
        return None
    _check_whole("recurrent", recurrent)
    fitting = [str(m) for m in range(1, depth + 1) if depth % m == 0]
    if not 1 <= recurrent <= depth:
        raise ConfigError(f"recurrent {recurrent}: the encoder has {depth} layers; choose {' or '.join(fitting)}")
    if repeats is not None:
        return _fitting_repeats(depth, recurrent, repeats)
    if depth % recurrent:
        raise ConfigError(
            f"recurrent {recurrent}: {depth} layers are no multiple of it; choose {' or '.join(fitting)}, "
            "or say with repeats how often they run"
        )
    return depth // recurrent


def warn_if_wider(bottleneck: int | None, words: int, width: int) -> None:
    """Log a warning where a bottleneck makes a word table larger: `V·K + K·H ≥ V·H` weights.

    Args:
        bottleneck: K; none leaves the table whole.
        words: V.
        width: H.
    """
    if bottleneck is not None and bottleneck * (words + width) >= words * width:
        log.warning(
            "bottleneck %d saves nothing: the two factors have %s weights and the table itself has %s; "
            "below V*H/(V+H) = %.1f columns it gets smaller",
            bottleneck,
            f"{bottleneck * (words + width):,}",
            f"{words * width:,}",
            words * width / (words + width),
        )


def _fitting_repeats(depth: int, recurrent: int, repeats: int) -> int:
    if repeats < 1:
        raise ConfigError(f"repeats {repeats}: layers must run once at least")
    most = DEEPER * depth // recurrent
    if repeats > most:
        raise ConfigError(
            f"repeats {repeats}: the encoder has {depth} layers, and at most {DEEPER} times as many may run; with "
            f"{recurrent} recurrent ones repeats can be {most} at most"
        )
    return repeats


def _check_whole(name: str, value: object) -> None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise ConfigError(f"{name} {value!r}: expected a whole number")
