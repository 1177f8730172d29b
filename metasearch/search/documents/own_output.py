"""Recognise output of metasearch by its content, so that it is not indexed."""

import re
from collections.abc import Callable, Collection
from pathlib import Path

from metasearch.io import require_file

_RUN_LINE = re.compile(rb"(?:\xef\xbb\xbf)?\S+ Q0 \S+ \d+ \S+ \S+\r?\n")
"""First line of a TREC run file."""
_HEAD = 2**16
"""Bytes of a file that are compared."""


def _contains(*parts: bytes) -> Callable[[bytes], bool]:
    return lambda head: all(part in head for part in parts)


_FOLDERS: dict[str, tuple[str, Callable[[bytes], bool]]] = {
    "index.sqlite": ("an index", _contains(b"SQLite format 3\0", b"CREATE TABLE passage", b"CREATE TABLE codes")),
    "study.yaml": ("a study", _contains(b"cells:", b"config:")),
    "config.yaml": ("a run", _contains(b"data_fingerprint:", b"config:")),
    "modules.json": ("an encoder", _contains(b'"path"', b'"type"')),
    "metasearch.json": ("an encoder", _contains(b'"metasearch-onnx"')),
    "tables.json": ("a report", _contains(b'"key"', b'"heads"', b'"columns"')),
    "dataset_info.json": ("a parallel corpus", _contains(b'"source_language"', b'"target_language"', b'"corpus"')),
}
"""File in a folder → the folder's kind, and whether the beginning of the file says so."""


def folder_kind(folder: Path, names: Collection[str]) -> str:
    """Return the kind of metasearch output in a folder with these files, such as `a run`; empty for other folders."""
    return next((kind for name, (kind, says) in _FOLDERS.items() if name in names and says(_head(folder / name))), "")


def is_run(path: Path) -> bool:
    """Return whether a file is a TREC run."""
    return path.suffix.lower() == ".txt" and bool(_RUN_LINE.match(_head(path)))


def _head(path: Path) -> bytes:
    try:
        require_file(path)
        with path.open("rb") as file:
            return file.read(_HEAD)
    except OSError:
        return b""
