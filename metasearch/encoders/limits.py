"""Which numbers a compressed encoder can have: columns of its word table, and layers that run."""

from metasearch.errors import ConfigError

DEEPER = 4
"""Layers may run so many times as often as the encoder is deep; more is taken for a typing error."""


def check_fewer(name: str, value: object, present: int, size: str) -> None:
    """Raise `ConfigError` unless a value is a whole number from 1 to one less than what is present."""
    _check_whole(name, value)
    if not 1 <= value < present:  # type: ignore[operator]  # a whole number
        fewer = f"choose a number from 1 to {present - 1}" if present > 1 else "there cannot be fewer"
        raise ConfigError(f"{name} {value}: {size}; {fewer}")


def check_repeats(depth: int, recurrent: int | None, repeats: int | None) -> int | None:
    """Return how often M layers run: as asked for, or so often (L/M) that the depth L stays; None where all stay.

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
    fitting = " or ".join(str(m) for m in range(1, depth + 1) if depth % m == 0)
    if not 1 <= recurrent <= depth:
        raise ConfigError(f"recurrent {recurrent}: the encoder has {depth} layers; choose {fitting}")
    if repeats is None:
        if depth % recurrent:
            raise ConfigError(
                f"recurrent {recurrent}: {depth} layers are no multiple of it; choose {fitting}, "
                "or say with repeats how often they run"
            )
        return depth // recurrent
    most = DEEPER * depth // recurrent
    if not 1 <= repeats <= most:
        raise ConfigError(
            f"repeats {repeats}: the encoder has {depth} layers, and at most {DEEPER} times as many may run; with "
            f"{recurrent} recurrent ones choose a number from 1 to {most}"
        )
    return repeats


def _check_whole(name: str, value: object) -> None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise ConfigError(f"{name} {value!r}: expected a whole number")
