"""`python -m metasearch` is the command `metasearch`; both begin here."""

import gc
import sys

from metasearch.runs import signals

_STARTUP_OBJECTS = 700_000
"""Objects after which garbage is collected for the first time: about as many as importing torch and transformers makes.

They stay, and the collector would walk through them again and again, for a third of the time that a command takes to
start.
"""


def main() -> None:
    """Run a command."""
    signals.listen()
    gc.callbacks.append(_collect_as_usual)
    gc.set_threshold(_STARTUP_OBJECTS)
    try:
        from metasearch.cli import main as commands
    except KeyboardInterrupt:
        print("metasearch: error: stopped", file=sys.stderr)  # noqa: T201
        sys.exit(128 + signals.received())
    commands(prog_name="metasearch")


def _collect_as_usual(phase: str, info: object, usual: int = gc.get_threshold()[0]) -> None:
    """From the first collection on, collect as often as Python does, and pass over all that is there by then."""
    gc.callbacks.remove(_collect_as_usual)
    gc.freeze()
    gc.set_threshold(usual)


if __name__ == "__main__":
    main()
