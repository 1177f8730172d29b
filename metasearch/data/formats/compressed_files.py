"""Files that may be packed with gzip or Zstandard, by their names."""

import gzip
import io
import zlib
from pathlib import Path
from typing import Any, BinaryIO, cast

from metasearch.config.extras import install_line
from metasearch.errors import DataError
from metasearch.io import require_file

SUFFIXES = (".gz", ".zst")


def unpacked(name: str) -> str:
    """Return a file's name without what says how it is packed: `pairs.tsv` for `pairs.tsv.gz`."""
    return next((name.removesuffix(suffix) for suffix in SUFFIXES if name.endswith(suffix)), name)


def open_packed(path: Path) -> BinaryIO:
    """Open a file to read its content, unpacked where its name ends in `.gz` or `.zst`."""
    require_file(path)
    if path.suffix == ".gz":
        # Lines are cut faster by a buffered reader than by the gzip file itself.
        return io.BufferedReader(cast(io.RawIOBase, gzip.open(path)))
    if path.suffix == ".zst":
        zstd = _zstd()
        if zstd is None:
            raise DataError(f"{path}: .zst needs the package backports.zstd: {install_line('corpora')}")
        return io.BufferedReader(zstd.open(path))
    return path.open("rb")


def damage() -> tuple[type[Exception], ...]:
    """Return the errors that reading a damaged packed file gives."""
    zstd = _zstd()
    return (EOFError, gzip.BadGzipFile, zlib.error, *(() if zstd is None else (zstd.ZstdError,)))


def _zstd() -> Any:
    """Return the Zstandard module, from Python 3.14 or a package; None if missing."""
    try:
        from compression import zstd
    except ImportError:
        try:
            from backports import zstd
        except ImportError:
            return None
    return zstd
