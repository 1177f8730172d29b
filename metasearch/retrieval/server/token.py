"""The token that requests must bring, read from a file."""

import logging
import os
import stat
from pathlib import Path

from metasearch.errors import ConfigError
from metasearch.io import read_bytes

log = logging.getLogger(__name__)

_SHORTEST = 16


def read_token(path: Path) -> str:
    """Return the token of a file of one line; a line warns where others than its owner may read the file.

    Raises:
        ConfigError: it cannot be read, or its content is no token: too short, or not of visible ASCII characters.
    """
    try:
        token = read_bytes(path).decode("ascii").strip()
        mode = stat.S_IMODE(path.stat().st_mode)
    except UnicodeDecodeError:
        raise ConfigError(f"--token-file {path}: expected one line of ASCII characters") from None
    except OSError as error:
        raise ConfigError(f"--token-file {path}: cannot be read: {error.strerror}") from None
    if len(token.split()) != 1 or not token.isprintable():
        raise ConfigError(f"--token-file {path}: expected one line with a token that has no spaces")
    if len(token) < _SHORTEST:
        hint = f"make one with: openssl rand -hex 32 > {path}"
        raise ConfigError(f"--token-file {path}: {len(token)} characters can be guessed, {_SHORTEST} at least; {hint}")
    if os.name == "posix" and mode & (stat.S_IRGRP | stat.S_IROTH):
        log.warning("%s: others can read the token (mode %03o); chmod 600 %s keeps it to you", path, mode, path)
    return token
