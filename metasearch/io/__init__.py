"""Safe input and output: file errors, atomic files and folders, and folder locks."""

import errno
import hashlib
import json
import logging
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from metasearch.errors import EncoderError, RunFolderError, nearest

NEW = ".new"
"""Suffix of a file while it is written."""
LOCK = ".lock"
"""Name of the file by which one process has a folder to itself."""

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_ENDLESS = {stat.S_IFIFO: "named pipe", stat.S_IFCHR: "device", stat.S_IFBLK: "device", stat.S_IFSOCK: "socket"}


class OutOfRoom(RunFolderError):
    """The disk, or its quota, is full."""


def require_file(path: Path) -> None:
    """Raise `OSError` for anything but a file or folder: reading a named pipe or a device may never end."""
    try:
        kind = stat.S_IFMT(path.stat().st_mode)
    except ValueError as error:  # a NUL character
        raise OSError(errno.EINVAL, str(error), str(path)) from None
    if kind in _ENDLESS:
        raise OSError(errno.EINVAL, f"it is a {_ENDLESS[kind]}, not a file", str(path))


def near(path: Path) -> str:
    """Return a hint at a file or folder beside a path with a similar name, or nothing."""
    try:
        hint = "" if path.exists() else nearest(path.name, os.listdir(path.parent))
    except (OSError, ValueError):
        return ""
    return f".{hint.partition(' Known: ')[0]}" if "Did you mean" in hint else ""


def read_bytes(path: Path) -> bytes:
    """Return a file's content; `OSError` as `require_file`, too."""
    require_file(path)
    return path.read_bytes()


def atomic_write(path: Path, content: str | bytes) -> None:
    """Write a file, whole or not at all, and make its folder; `RunFolderError` if that fails."""
    atomic_write_all({path: content})


def atomic_write_all(contents: Mapping[Path, str | bytes]) -> None:
    """Write files that belong together: first all beside their places, then each in its place; folders are made.

    If one cannot be written, such as on a full disk, former files stay unchanged.
    """
    beside = {path: path.with_name(f"{path.name}{NEW}") for path in contents}
    path = Path()
    try:
        for path, content in contents.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with beside[path].open("wb") as file:
                file.write(content.encode("utf-8") if isinstance(content, str) else content)
                file.flush()
                # Else a crash of the machine may leave an empty file in its place.
                os.fsync(file.fileno())
        for path, new in beside.items():
            move(new, path)
    # Ctrl-C too must leave nothing half written.
    except BaseException as error:
        for new in beside.values():
            with suppress(OSError):  # it may be in its place already
                new.unlink()
        if isinstance(error, OSError):
            raise write_error(path, error, sum(len(content) for content in contents.values())) from None
        raise


def move(source: Path, target: Path) -> None:
    """Rename a file or folder, in place of a file or an empty folder, and wait until it is on the disk."""
    source.replace(target)
    sync(target.parent)


def sync(path: Path) -> None:
    """Wait until a file's content, or a folder's list of names, is on the disk."""
    # Some systems flush no file that is open to read, and Windows opens no folder.
    if path.is_dir() and os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def digest(path: Path) -> str:
    """Return a file's SHA-256 in hexadecimal; `OSError` as `require_file`, too."""
    require_file(path)
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of_bytes(content: bytes) -> str:
    """Return the SHA-256 of bytes in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def share(folder: Path) -> None:
    """Give all files below a folder the mode of new files: safetensors makes its files private."""
    probe = folder / f".mode{NEW}"
    probe.touch()
    mode = probe.stat().st_mode & 0o777
    probe.unlink()
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink() and path.stat().st_mode & 0o777 != mode:
            path.chmod(mode)


def write_error(path: Path, error: Exception, needed: int | None = None) -> RunFolderError:
    """Return the error for a failed write; for a full disk, with bytes needed and free.

    Other libraries have error types of their own, so the text of the error also tells whether the disk is full.
    """
    full = next((code for code in _NO_ROOM if error.args[:1] == (code,) or os.strerror(code) in str(error)), None)
    if full is None:
        return RunFolderError(f"{path} cannot be written: {getattr(error, 'strerror', None) or error}")
    room = "" if needed is None else f". It needs {needed:,} bytes; {free_bytes(path):,} are free"
    return OutOfRoom(f"{path} cannot be written: {os.strerror(full)}{room}")


def require_room(path: Path, needed: int, what: str) -> None:
    """Raise `RunFolderError` if a path's disk lacks `needed` bytes for `what`, such as `two checkpoints`."""
    free = free_bytes(path)
    if free < needed:
        raise OutOfRoom(f"{path}: the disk is too full: {what} need at least {needed:,} bytes; {free:,} are free")


def free_bytes(path: Path) -> int:
    """Return the free bytes on a path's disk; the path need not exist."""
    place = next(folder for folder in (path.absolute(), *path.absolute().parents) if folder.is_dir())
    return shutil.disk_usage(place).free


def taken(path: Path, first: str) -> bool:
    """Return whether a path is a file, or a folder with anything in it; `RunFolderError` if it cannot be read.

    The lock and a half-written `first` file, which a killed process leaves, do not count.
    """
    try:
        return path.exists() and (not path.is_dir() or bool(set(os.listdir(path)) - {LOCK, f"{first}{NEW}"}))
    except OSError as error:
        raise RunFolderError(f"{path} cannot be read: {error.strerror}") from None


@contextmanager
def held(folder: Path, busy: str, patience: float = 0) -> Iterator[None]:
    """Create a folder and lock it against other processes; the lock ends with the process.

    `busy` is the error text if another process still holds it after `patience` seconds.
    """
    lock = FileLock(folder / LOCK, timeout=patience)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout:
        raise RunFolderError(busy) from None
    except OSError as error:
        raise write_error(folder, error) from None
    try:
        yield
    finally:
        lock.release()


VARIABLE = "METASEARCH_CACHE"
"""Environment variable that names another folder for the cache."""

_HASHES = "sha256.json"

log = logging.getLogger(__name__)


def cache_folder() -> Path:
    """Return the cache folder: `METASEARCH_CACHE`, or `metasearch` in the user's cache folder.

    `EncoderError` where neither a variable names one nor the user has a home.
    """
    if named := os.environ.get(VARIABLE):
        return Path(named)
    if around := os.environ.get("XDG_CACHE_HOME"):
        return Path(around) / "metasearch"
    try:
        return Path.home() / ".cache" / "metasearch"
    except RuntimeError:  # of a container that runs as a number
        raise EncoderError(f"this user has no home for the cache; set {VARIABLE} to a folder") from None


def cached(name: str, make: Callable[[Path], None], place: Path | None = None) -> Path:
    """Return a folder of a cache, by default the user's; a missing or changed one is made again by `make`.

    Processes that want it at the same time wait for the first one. A folder is there whole or not at all.
    """
    folder = (place or cache_folder()) / name
    if intact(folder, still=not place):
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_name(f"{name}.lock")):
            if not intact(folder, still=not place):
                _make(folder, make)
    except OSError as error:
        if place:
            raise write_error(place, error) from error
        raise EncoderError(
            f"the cache {folder.parent} cannot be written: {error.strerror or error}; free space there, or set "
            f"{VARIABLE} to another folder"
        ) from error
    return folder


def _make(folder: Path, make: Callable[[Path], None]) -> None:
    if folder.exists():
        log.warning("%s was changed or is incomplete: making it again", folder)
        shutil.rmtree(folder)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f"{folder.name}.") as place:
        new = Path(place) / folder.name
        new.mkdir()
        make(new)
        (new / _HASHES).write_text(json.dumps(_hashes(new), indent=2), encoding="utf-8")
        share(new)
        move(new, folder)


def intact(folder: Path, still: bool = False) -> bool:
    """Return whether a folder's files are unchanged.

    `still` reads no file of which the system says that it is as it was when it was read last.
    """
    try:
        known = json.loads(read_bytes(folder / _HASHES))
        found = digests(folder) if still else _hashes(folder)
        return bool(known == {name: each for name, each in found.items() if name != _HASHES})
    except (OSError, ValueError):
        return False


def _hashes(folder: Path) -> dict[str, str]:
    """Return every file's SHA-256 by path in the folder."""
    return {name: digest(path) for name, path in _files(folder).items()}


def _files(folder: Path) -> dict[str, Path]:
    """Return the files in a folder by path in the folder."""
    return {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}


_DIGESTS = "digests"
"""Folder in the cache with what `digests` remembers, a file for each folder."""
_SETTLED = 2 * 10**9
"""Nanoseconds after which a file that is changed again has another time: clocks of file systems are coarse."""


def digests(folder: Path) -> dict[str, str]:
    """Return every file's SHA-256 by path in a folder; `OSError` if one cannot be read.

    They are remembered in the user's cache as long as the system says that no file was written: the size, the inode and
    both times of each are the same. The time of the last change cannot be set by programs, and Windows has none, so
    there all files are read.
    """
    now, times = time.time_ns(), {name: _times(path) for name, path in _files(folder).items()}
    name = f"{_DIGESTS}/{sha256_of_bytes(os.fsencode(folder.resolve()))[:32]}.json"
    # A file that is missing or damaged remembers nothing.
    with suppress(EncoderError, OSError, ValueError, LookupError, TypeError, AttributeError):
        remembered = json.loads((cache_folder() / name).read_bytes())
        if os.name != "nt" and remembered["times"] == times:
            return {str(name): str(found) for name, found in remembered["digests"].items()}
    found = _hashes(folder)
    if all(max(each[-2:]) < now - _SETTLED for each in times.values()):
        try:
            atomic_write(cache_folder() / name, json.dumps({"times": times, "digests": found}))
        except (EncoderError, RunFolderError) as error:
            log.debug("%s is not remembered: %s", name, error)
    return found


def cache_key(about: object) -> str:
    """Return the name of a folder in a cache: a 16-digit hash of everything that its content depends on."""
    return sha256_of_bytes(json.dumps(about, sort_keys=True).encode())[:16]


def _times(path: Path) -> list[int]:
    found = path.stat()
    return [found.st_size, found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns]


def fingerprint_of(rows: Iterable[Sequence[str]], settings: str = "") -> str:
    """Return a 16-digit hexadecimal hash of `settings` and, after them, rows of texts."""
    digest = hashlib.sha256(settings.encode())
    for row in rows:
        # Unit and record separators, which no ordinary text holds: a word that moves to another column changes it.
        digest.update("\x1f".join(row).encode() + b"\x1e")
    return digest.hexdigest()[:16]
