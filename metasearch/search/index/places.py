"""Where the documents and the encoder of an index are, so that folders can move, and the addresses of documents.

An index names documents relative to a root. It keeps the root as an absolute path and as seen from the folder of the
index: the second one counts where it exists, so that index and documents can move together. The site
of an index is the address of its root.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from metasearch.errors import ConfigError
from metasearch.search.settings import parse_site

_ROOT, _ENCODER, SITE = "root", "encoder_beside", "site"
"""Keys in the state of an index."""


def roots(state: Mapping[str, Any], index: Path) -> list[Path]:
    """Return where the root of an index may be, best first."""
    return [Path(os.path.normpath(index.resolve() / state[_ROOT]["from_index"])), Path(state[_ROOT]["path"])]


def place_facts(
    index: Path, root: Path | None = None, site: str | None = None, encoder: str | None = None
) -> dict[str, Any]:
    """Return places as the state of an index keeps them; None changes nothing.

    The encoder is kept where it is in the same folder, as in a tuning. `ConfigError` if the site is no address.
    """
    found: dict[str, Any] = {}
    if root is not None:
        found[_ROOT] = {"path": root.as_posix(), "from_index": Path(os.path.relpath(root, index.resolve())).as_posix()}
    if encoder is not None:
        beside = os.path.isabs(encoder) and Path(encoder).parent == index.resolve().parent
        found[_ENCODER] = Path(encoder).name if beside else ""
    if site is not None:
        try:
            found[SITE] = parse_site(site)
        except ValueError as error:
            raise ConfigError(f"--site: {error} (got '{site}')") from None
    return found


def find_encoder(state: Mapping[str, Any], index: Path) -> str:
    """Return the encoder of an index: beside the index where it was made so, or by its name."""
    beside = index.resolve().parent / state.get(_ENCODER, "")
    return str(beside) if state.get(_ENCODER) and beside.is_dir() else str(state["kind"]["encoder"])


def shown(path: Path) -> str:
    """Return a path as a user opens it from the current folder: relative if it is below, else unchanged."""
    with suppress(OSError, ValueError):  # the current folder is gone; the path is not below
        return path.relative_to(Path.cwd()).as_posix()
    return path.as_posix()
