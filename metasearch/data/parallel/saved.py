"""Saved corpora: parallel text in a folder that `datasets.Dataset.save_to_disk` wrote, read through a memory map.

The tokens of each pair are counted once for each tokenizer, into `lengths/`. A folder that an earlier version of
metasearch wrote also has the SHA-256 of its data file, in `report.json`.
"""

import hashlib
import logging
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from metasearch.config.extras import import_extra
from metasearch.config.languages import normalise_tag
from metasearch.data.formats.arrow_files import read_batches
from metasearch.data.formats.blank import normalise
from metasearch.data.formats.rows import data_files, read_key
from metasearch.data.parallel.names import is_saved_table
from metasearch.errors import ConfigError, DataError, RunFolderError
from metasearch.io import atomic_write, digest

COLUMNS = ("source", "target", "source_language", "target_language", "corpus")
"""Columns of a saved corpus, all of them text."""
_REPORT, _INFO, _LENGTHS = "report.json", "dataset_info.json", "lengths"

log = logging.getLogger(__name__)


def is_saved_corpus(folder: Path) -> bool:
    """Return whether a folder is a saved table with `COLUMNS`."""
    if not is_saved_table(folder) or not (folder / _INFO).is_file():
        return False
    features = read_key(folder / _INFO, "features", dict)
    return all("string" in str(features.get(name)) for name in COLUMNS)


def find_saved_corpus(paths: Sequence[Path]) -> Path | None:
    """Return the given saved corpus; None if files are given."""
    folders = [path for path in map(Path, paths) if is_saved_corpus(path)]
    if folders and len(paths) > 1:
        raise ConfigError(
            f"--corpus {folders[0]}: a saved corpus cannot be combined with other files; save all texts in one folder"
        )
    return folders[0] if folders else None


class TokenCounter(NamedTuple):
    """Counts tokens.

    Attributes:
        count_tokens: texts `N` → tokens of each `(N,)`.
        key: identifies tokenizer, prompt and limit, so that counts can be stored.
    """

    count_tokens: Callable[[Sequence[str]], ArrayLike]
    key: str


class SavedTable:
    """A saved table, mapped into memory."""

    def __init__(self, folder: Path, normalised: bool = False) -> None:
        self.folder, self._normalised = folder, normalised
        files = data_files(folder)
        stamps = tuple((path.stat().st_size, path.stat().st_mtime_ns) for path in files)
        self._table, found = _open(folder, tuple(files), stamps)
        self.digest = f"{found}{' normalised' * normalised}"
        """Hash of the data files, and of how texts are read."""

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def texts(self, rows: NDArray[Any]) -> Iterator[tuple[str, str]]:
        """Yield source and target of some rows, in their order."""
        source, target = self._table["source"], self._table["target"]
        for row in map(int, rows):  # a list of all rows may be large
            yield self._read(source[row].as_py()), self._read(target[row].as_py())

    def columns(self, *names: str) -> Iterator[tuple[list[str], ...]]:
        """Yield columns batch by batch."""
        for path in data_files(self.folder):
            for batch in read_batches(path):
                yield tuple([self._read(text) for text in batch.column(name).to_pylist()] for name in names)

    def source_numbers(self) -> NDArray[np.int64]:
        """Return a hash of the source of each row, equal within a process for equal sources `(N,)`."""
        hashes = (hash(text) for (texts,) in self.columns("source") for text in texts)
        return np.fromiter(hashes, np.int64, len(self))

    def characters(self) -> NDArray[np.int32]:
        """Return the characters of the longer side of each row `(N,)`."""
        longer = (max(len(a), len(b)) for both in self.columns("source", "target") for a, b in zip(*both, strict=True))
        return np.fromiter(longer, np.int32, len(self))

    def origins(self) -> tuple[NDArray[np.int16], list[tuple[str, ...]]]:
        """Return a number for each row, `(N,)`, and the corpus and languages of each number, in canonical form."""
        known: dict[tuple[str, ...], int] = {}
        names = ("corpus", "source_language", "target_language")
        keys = (key for batch in self.columns(*names) for key in zip(*batch, strict=True))
        numbers = np.fromiter((known.setdefault(key, len(known)) for key in keys), np.int16, len(self))
        return numbers, [(corpus, normalise_tag(source), normalise_tag(target)) for corpus, source, target in known]

    def lengths(self, counter: TokenCounter) -> NDArray[Any]:
        """Return the tokens of the longer side of each row `(N,)`, from a file or counted."""
        key = hashlib.sha256(f"{self.digest} {counter.key}".encode()).hexdigest()[:16]
        path = self.folder / _LENGTHS / f"{key}.i32"
        if path.is_file() and path.stat().st_size == 4 * len(self) > 0:
            return np.memmap(path, "<i4", "r")
        counts = [np.zeros(0, np.int32)]
        for source, target in self.columns("source", "target"):
            both = np.asarray(counter.count_tokens([*source, *target]), np.int32).reshape(2, -1)
            counts.append(both.max(0))
        found = np.concatenate(counts).astype("<i4")
        try:
            atomic_write(path, found.tobytes())
        except RunFolderError as error:
            log.info("tokens are counted at every start: %s", error)
        return found

    def _read(self, text: str | None) -> str:
        return normalise(text or "") if self._normalised else text or ""


@lru_cache(4)
def _open(folder: Path, files: tuple[Path, ...], stamps: tuple[tuple[int, int], ...]) -> tuple[Any, str]:
    """Return the table in memory-mapped files and a hash of them, compared once in the life of a process."""
    arrow = import_extra("pyarrow", "corpora", f"--corpus {folder}")
    known = read_key(folder / _REPORT, "sha256", dict) if (folder / _REPORT).is_file() else {}
    tables, hashes = [], []
    for path in files:
        try:
            hashes.append(digest(path))
            if known.get(path.name, hashes[-1]) != hashes[-1]:
                raise RunFolderError(
                    f"{path}: checksum mismatch: the file has changed since it was written. Restore it, or delete "
                    f"{folder / _REPORT} if you changed it on purpose"
                )
            tables.append(arrow.ipc.open_stream(arrow.memory_map(str(path))).read_all())
        except (arrow.ArrowException, OSError) as error:
            raise DataError(f"{path}: damaged or unreadable: {str(error).splitlines()[0]}") from None
    table = arrow.concat_tables(tables).select(list(COLUMNS))
    return table, hashlib.sha256(" ".join(hashes).encode()).hexdigest()
