"""A row of the table: bad input, the command line that meets it, and how that ends."""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

Given = Callable[[Path], object] | Mapping[str, str | bytes | None]
"""Writes the input to a folder, or name → content of its files; None is a folder in place of a file."""


@dataclass(frozen=True)
class Row:
    """Bad input and what is said of it.

    Attributes:
        what: is wrong with the input.
        line: of the command, without the program's name; `TMP` stands for the folder with the input.
        code: the exit code.
        says: a regular expression that is found in the error.
        given: the input that is no part of the command line.
        base: a sound folder that is copied to `TMP` under its name before it is spoilt; see `bases`.
        lines: of the error, one a problem.
    """

    what: str
    line: str
    code: int
    says: str
    given: Given = lambda folder: None
    base: str = ""
    lines: int = 1

    @property
    def name(self) -> str:
        """Name of the test."""
        return f"{self.line.split()[0]}: {self.what}"

    def write(self, folder: Path) -> None:
        """Write the input."""
        if callable(self.given):
            self.given(folder)
            return
        for name, content in self.given.items():
            put(folder / name, content)

    def args(self, folder: Path) -> list[str]:
        """Return the command line as a list."""
        return [part.replace("TMP", str(folder)) for part in shlex.split(self.line)]


def put(path: Path, content: str | bytes | None) -> None:
    """Write a file and its folders; None makes a folder of its name in place of a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if content is None:
        path.unlink(missing_ok=True)
        path.mkdir()
    else:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def spoil(name: str, change: Callable[[str], str] | str | bytes | None) -> Callable[[Path], None]:
    """Return what gives a file other content: a text, or one that is made of its own; None makes it a folder."""

    def spoilt(folder: Path) -> None:
        path = folder / name
        put(path, change(path.read_text(encoding="utf-8")) if callable(change) else change)

    return spoilt


def without(name: str) -> Callable[[Path], None]:
    """Return what removes a file."""
    return lambda folder: (folder / name).unlink()


def swap(name: str, old: str, new: str) -> Callable[[Path], None]:
    """Return what replaces the first occurrence of a text in a file."""

    def swapped(text: str) -> str:
        assert old in text, f"{name} has no {old}"
        return text.replace(old, new, 1)

    return spoil(name, swapped)
