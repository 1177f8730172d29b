"""Text files for tests, packed where their names say so, and a disk that is full."""

import gzip
import resource
import signal
from contextlib import contextmanager


def write(path, content):
    """Write text or bytes to a file, packed where its name ends in `.gz`, and make its folder; returns the path."""
    data = content if isinstance(content, bytes) else content.encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def write_all(folder, contents):
    """Write the content of each name below a folder; returns the folder."""
    for name, content in contents.items():
        write(folder / name, content)
    return folder


@contextmanager
def largest_file(size):
    """Let no file grow beyond a size in bytes, as if the disk were full."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, ignored)
