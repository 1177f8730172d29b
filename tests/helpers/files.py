"""Text files for tests, packed where their names say so."""

import gzip


def write(path, content):
    """Write text or bytes to a file, packed where its name ends in `.gz`; returns the path."""
    data = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path
