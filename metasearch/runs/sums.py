"""`SHA256SUMS` of a run folder: the hash of each file that results are read from, as `sha256sum --check` reads it.

While a run is at work the file holds the hash of `results.jsonl` alone: beside that of the content that is there, that
of the content which is about to take its place, as a crash may leave either. When the run finishes, it holds that of
every file. Folders of earlier releases have none, and are read unchecked.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from metasearch.errors import RunFolderError, quoted
from metasearch.files import digest, read_bytes, write_whole

SUMS = "SHA256SUMS"
_LINE = re.compile(r"([0-9a-f]{64})  (.+)")
_RESULTS = "results.jsonl"
_SEALED = (_RESULTS, "log.jsonl", "facts.json", "queries/*.npz")


def announce(folder: Path, content: str) -> None:
    """Write down the hash of what `results.jsonl` will hold, beside that of what it holds, before it is written."""
    path = folder / _RESULTS
    hashes = ([digest(path)] if path.is_file() else []) + [_hash(content)]
    write_whole(folder / SUMS, "".join(f"{each}  {_RESULTS}\n" for each in hashes))


def seal(folder: Path, report: str) -> None:
    """Write down the hashes of a run's files, and that of the report which is about to finish it.

    Raises:
        RunFolderError: it cannot be written.
    """
    paths = sorted(path for pattern in _SEALED for path in folder.glob(pattern))
    hashes = {path.relative_to(folder).as_posix(): digest(path) for path in paths} | {"report.md": _hash(report)}
    write_whole(folder / SUMS, "".join(f"{each}  {name}\n" for name, each in hashes.items()))


def require_unchanged(folder: Path, name: str = "") -> None:
    """Raise `RunFolderError` where a file is not as its run wrote it; what is not there is left to who reads it.

    Args:
        folder: of the run.
        name: of the file, relative to the folder; by default all that are known are held against their hashes.
    """
    known = _read(folder / SUMS)
    for each in [name] if name else known:
        path = folder / each
        if each not in known or not path.is_file():
            continue
        if digest(path) not in known[each]:
            raise RunFolderError(
                f"{path}: it was changed or damaged since the run wrote it: its hash is not the one in "
                f"{quoted(folder / SUMS)}. Put the file back; what was meant to change is read without {SUMS}"
            )


def _read(path: Path) -> Mapping[str, set[str]]:
    """Return the hashes of each file by its name; none where there is no file of hashes."""
    if not path.exists():
        return {}
    known: dict[str, set[str]] = {}
    try:
        lines = read_bytes(path).decode().removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise RunFolderError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    for number, line in enumerate(lines, 1):
        if not (found := _LINE.fullmatch(line)):
            raise RunFolderError(f"{path}:{number}: expected a SHA-256 and a file's name. The file is damaged")
        known.setdefault(found[2], set()).add(found[1])
    return known


def _write(folder: Path, known: Mapping[str, Iterable[str]]) -> None:
    lines = (f"{each}  {name}\n" for name, hashes in known.items() for each in hashes)
    write_whole(folder / SUMS, "".join(lines))


def _hash(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()
