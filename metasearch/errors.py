"""Errors for users, each with an exit code; `docs/exit-codes.md` lists them.

Everything metasearch raises on purpose derives from `MetasearchError`; the command line prints its message as one
line and ends with its `exit_code`. Any other exception is a bug and ends with code 1.
"""

import difflib
import shlex
from collections.abc import Iterable
from pathlib import Path


class MetasearchError(Exception):
    """Base class for user errors; `exit_code` is the exit code of the command line."""

    exit_code = 1


class ConfigError(MetasearchError):
    """A name, flag or declaration is wrong."""

    exit_code = 2


class DataError(MetasearchError):
    """Data is missing, damaged or too small for what was asked."""

    exit_code = 3


class NonFiniteError(MetasearchError):
    """A loss, gradient or score is NaN or infinite."""

    exit_code = 4


class RunFolderError(MetasearchError):
    """A run folder exists already, cannot be written, or holds files that are damaged or were changed."""

    exit_code = 5


class EncoderError(MetasearchError):
    """An encoder cannot be found, loaded or used."""

    exit_code = 6


class CellsFailed(MetasearchError):
    """Runs of a study failed and the others are done."""

    exit_code = 7


class OutOfMemory(MetasearchError):
    """Memory does not suffice for an outer step, even in its smallest parts."""

    exit_code = 8


class HubError(MetasearchError):
    """A model hub cannot be reached, or refuses the request."""

    exit_code = 9


class ProcessLost(MetasearchError):
    """Another process of the run has ended; the saved state can be resumed."""

    exit_code = 10


class Interrupted(MetasearchError):
    """The user stopped the run; finished work is saved."""

    exit_code = 130


class Terminated(Interrupted):
    """SIGTERM stopped the run, such as a scheduler's; finished work is saved."""

    exit_code = 143


def quoted(path: Path | str) -> str:
    """Return a path quoted for the shell."""
    # A program would take a leading dash for a flag.
    return shlex.quote(f"./{path}" if str(path).startswith("-") else str(path))


def to_resume(folder: Path) -> str:
    """Return the command that resumes a run or study."""
    return f"metasearch resume {quoted(folder)}"


def nearest(name: str, choices: Iterable[str]) -> str:
    """Return a hint for a wrong name: `" Did you mean 'maml'?"`, or the list of choices when none is near."""
    known = sorted(choices)
    for text in (name, name.lower()):
        longer = [each for each in known if each.startswith(f"{text}-")]
        for close in longer or difflib.get_close_matches(text, known, n=1, cutoff=0.5):
            return f" Did you mean '{close}'? Known: {', '.join(known)}."
    return f" Known: {', '.join(known) or 'none'}."


def require_known(what: str, name: str, choices: Iterable[str]) -> None:
    """Raise `ConfigError` with the nearest choice for an unknown name; `what` is the kind of name."""
    known = tuple(choices)
    if name not in known:
        raise ConfigError(f"unknown {what} '{name}'.{nearest(name, known)}")


def first_line(error: BaseException) -> str:
    """Return the first line of another library's error and, if it ends with a colon, the next one; else its type."""
    if isinstance(error, KeyError):  # its text is the key alone
        return f"there is no {error}"
    first, *others = str(error).strip().splitlines() or [type(error).__name__]
    return f"{first} {others[0].strip()}" if first.endswith(":") and others else first
