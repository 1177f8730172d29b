"""Python's collector of garbage while a command loads its libraries.

What torch and transformers bring stays until the end of a process. The collector walks through it again and again while
it comes, for up to a third of the processor time in which a command begins. A command that needs neither of the two
leaves it at that: it is looked through once in a million new objects.
"""

import gc

_RARELY = 1_000_000
"""New objects after which it runs: once or twice while libraries are loaded."""
_usual: list[tuple[int, int, int]] = []


def run_rarely() -> None:
    """Let it run rarely until `run_as_usual`; for the beginning of a process that is a command."""
    if not _usual:
        _usual.append(gc.get_threshold())
        gc.set_threshold(_RARELY, *_usual[0][1:])


def run_as_usual() -> None:
    """Let it run as it did before `run_rarely`, and pass over all that is there now; otherwise nothing is changed."""
    if _usual:
        gc.freeze()
        gc.set_threshold(*_usual.pop())
