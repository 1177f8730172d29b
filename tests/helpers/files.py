"""Text files for tests, packed where their names say so."""

import gzip


def write(path, content):
    """Write text or bytes to a file, packed where its name ends in `.gz`; returns the path."""
    data = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def unsealed(path):
    """Return the text of a file without the hash in its last line, as earlier releases wrote it, to be changed."""
    text, mark, _ = path.read_text(encoding="utf-8").rpartition("sha256: ")
    assert mark
    return text
