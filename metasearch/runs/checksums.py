"""`SHA256SUMS` in a finished run: hashes of the files with results, also for `sha256sum --check`."""

import re
from collections.abc import Mapping
from pathlib import Path

from metasearch.errors import RunFolderError, quoted
from metasearch.io import atomic_write, digest, read_bytes, sha256_of_bytes

SUMS = "SHA256SUMS"
_LINE = re.compile(r"([0-9a-f]{64})  (.+)")
_COVERED = ("config.yaml", "results.jsonl", "log.jsonl", "facts.json", "queries/*.npz")


def write_checksums(folder: Path, report: str) -> None:
    """Write hashes of a run's files, and of its final report; `RunFolderError` on failure."""
    paths = sorted(path for pattern in _COVERED for path in folder.glob(pattern))
    hashes = {path.relative_to(folder).as_posix(): digest(path) for path in paths}
    hashes["report.md"] = sha256_of_bytes(report.encode())
    atomic_write(folder / SUMS, "".join(f"{each}  {name}\n" for name, each in hashes.items()))


def require_unchanged(folder: Path) -> None:
    """Raise `RunFolderError` if a file in a finished run has changed; readers report missing ones."""
    for name, expected in _read(folder / SUMS).items():
        path = folder / name
        if path.is_file() and digest(path) != expected:
            raise RunFolderError(
                f"{path}: checksum mismatch: it was changed since the run wrote it, or damaged; its hash is in "
                f"{quoted(folder / SUMS)}. Restore the file, or delete {SUMS} if you changed it on purpose"
            )


def _read(path: Path) -> Mapping[str, str]:
    """Return file name → hash; empty if there is no such file."""
    if not path.exists():
        return {}
    try:
        lines = read_bytes(path).decode().removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise RunFolderError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    known: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if not (found := _LINE.fullmatch(line)):
            raise RunFolderError(f"{path}:{number}: expected a SHA-256 and a file's name. The file is damaged")
        known[found[2]] = found[1]
    return known
