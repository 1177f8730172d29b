"""Arrays in one file, named by its hash and memory-mapped.

The file is one of safetensors: eight bytes with the length of the header, the header in JSON, then the arrays one after
another. Whoever opens one says which arrays it has to hold, so that a damaged header is never believed.
"""

import errno
import hashlib
import json
import math
import mmap
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from metasearch.errors import RunFolderError
from metasearch.io import atomic_write, digest, require_file

SUFFIX = ".safetensors"
NAME = re.compile(r"[0-9a-f]{64}")
WRONG = "its SHA-256 is not its name"
_TYPES = {
    "I8": np.int8, "U8": np.uint8, "I16": np.int16, "U16": np.uint16, "I32": np.int32, "U32": np.uint32,
    "I64": np.int64, "U64": np.uint64, "F16": np.float16, "F32": np.float32,
}  # fmt: skip
_NOT_OF_THE_FILE = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EACCES, errno.EPERM)
"""Errors of a process that has too many files open or may not read: the file may be sound."""
_LENGTH = 8
"""Bytes before the header, a number that says how many bytes that has."""
_REST = -1
"""Extent that the file says, in the shape of an array of `ArraySpec`."""

_AT_ONCE = 2**24
"""Bytes that are hashed at a time; a whole number of pages."""

ArraySpec = Mapping[str, tuple[type[np.generic], tuple[int, ...]]]
"""Arrays that a file has to hold: name → type and shape; an extent of -1 is any."""
LoadedArrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class ArrayFile:
    """An array file as listed in the manifest.

    Attributes:
        name: SHA-256 of the file in hexadecimal digits, which is its name, too.
        size: bytes of the file.
    """

    name: str
    size: int

    def path(self, folder: Path) -> Path:
        """Return the file's path, below the folder for its kind."""
        return folder / f"{self.name}{SUFFIX}"


@dataclass(frozen=True, eq=False)
class MappedArrays:
    """A memory-mapped file of arrays, which survives its removal.

    Attributes:
        path: of the file.
        stored: its name and size.
        content: the file.
        arrays: what is in it.
        remedy: what to do where it is damaged, for messages.
    """

    path: Path
    stored: ArrayFile
    content: mmap.mmap
    arrays: LoadedArrays
    remedy: str

    def check(self) -> None:
        """Raise `RunFolderError` where the file is not, to the bit, what was written."""
        # What is mapped beyond the end of a file that was cut off since must not be read.
        if self.content.size() != self.stored.size:
            raise damaged(
                self.path, f"it has {self.content.size():,} bytes instead of {self.stored.size:,}", self.remedy
            )
        found = hashlib.sha256()
        with memoryview(self.content) as view:
            for start in range(0, len(view), _AT_ONCE):
                part = view[start : start + _AT_ONCE]
                found.update(part)
                # The memory that it was read to is no use to this process until it is used.
                if hasattr(mmap, "MADV_DONTNEED"):
                    self.content.madvise(mmap.MADV_DONTNEED, start, len(part))
        if found.hexdigest() != self.stored.name:
            raise damaged(self.path, WRONG, self.remedy)


def write(folder: Path, arrays: Mapping[str, NDArray[Any]]) -> ArrayFile:
    """Write arrays to a file in a folder, atomically; `RunFolderError` on failure."""
    content = save({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    stored = ArrayFile(hashlib.sha256(content).hexdigest(), len(content))
    atomic_write(stored.path(folder), content)
    return stored


def open_arrays(folder: Path, stored: ArrayFile, wanted: ArraySpec, remedy: str) -> MappedArrays:
    """Return a memory-mapped file of arrays; unused parts are not read.

    Args:
        folder: of the file.
        stored: its name and size.
        wanted: which arrays it has to hold.
        remedy: what to do where it is damaged, for messages.

    Raises:
        RunFolderError: the file is missing, has another size, or holds other arrays.
    """
    path = stored.path(folder)
    try:
        require_file(path)
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size != stored.size:
                raise damaged(path, f"it has {size:,} bytes instead of {stored.size:,}", remedy)
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        whole = np.frombuffer(content, np.uint8)
        begins, header = _header(whole)
        arrays = {name: _array(whole[begins:], header[name], *wanted[name]) for name in wanted}
        return MappedArrays(path, stored, content, arrays, remedy)
    except OSError as error:
        raise _unread(path, error, remedy) from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise damaged(path, "checksum mismatch", remedy) from None


def check(folder: Path, stored: ArrayFile, remedy: str) -> None:
    """Raise `RunFolderError` where a file is not, to the bit, what was written."""
    path = stored.path(folder)
    try:
        found = digest(path)
    except OSError as error:
        raise _unread(path, error, remedy) from None
    if found != stored.name:
        raise damaged(path, WRONG, remedy)


class ArrayReadError(RunFolderError):
    """A file may be sound, and cannot be read here and now."""


def _unread(path: Path, error: OSError, remedy: str) -> RunFolderError:
    """Return the meaning of a system error: about the file's access, or damage."""
    if error.errno in _NOT_OF_THE_FILE:
        more = "; raise the limit with ulimit -n" if error.errno == errno.EMFILE else ""
        return ArrayReadError(f"{path} cannot be read: {error.strerror}{more}")
    return damaged(path, error.strerror or str(error), remedy)


def damaged(path: Path, what: str, remedy: str) -> RunFolderError:
    """Return the error for a damaged file, with a remedy."""
    return RunFolderError(f"{path}: {what}: {remedy}")


def json_array(value: Any) -> NDArray[np.uint8]:
    """Return a value's JSON text as a byte array, `(n,)`."""
    return np.frombuffer(json.dumps(value, ensure_ascii=False).encode(), np.uint8)


def _header(content: NDArray[np.uint8]) -> tuple[int, dict[str, Any]]:
    """Return the offset of the arrays, and each array's header entry."""
    if len(content) < _LENGTH:
        raise ValueError("no header")
    length = int.from_bytes(content[:_LENGTH].tobytes(), "little")
    if length > len(content) - _LENGTH:
        raise ValueError("no end of the header")
    return _LENGTH + length, json.loads(content[_LENGTH : _LENGTH + length].tobytes())


def _array(
    content: NDArray[np.uint8], said: Mapping[str, Any], kind: type[np.generic], shape: tuple[int, ...]
) -> NDArray[Any]:
    """Return an array that a header describes; `ValueError` where it is not the wanted one, or not in the file."""
    begin, end = said["data_offsets"]
    found = tuple(said["shape"])
    alike = len(found) == len(shape) and all(b in (a, _REST) for a, b in zip(found, shape, strict=True))
    if _TYPES.get(said["dtype"]) is not kind or not alike or not all(type(n) is int and n >= 0 for n in found):
        raise ValueError("another array")
    if not 0 <= begin <= end <= len(content) or end - begin != math.prod(found) * np.dtype(kind).itemsize:
        raise ValueError("beyond the file")
    return content[begin:end].view(kind).reshape(found)
