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
from urllib.parse import quote

from metasearch.errors import ConfigError
from metasearch.search.documents.passage import Passage
from metasearch.search.settings import parse_site

ROOT, ENCODER, SITE = "root", "encoder_beside", "site"
"""Keys in the state of an index."""
_IN_FRAGMENT = "/?:@!$&'()*+,;="
"""What a fragment may have beside letters, digits and `-._~` (RFC 3986, section 3.5)."""


def roots(state: Mapping[str, Any], index: Path) -> list[Path]:
    """Return where the root of an index may be, best first; nothing for an index of an earlier release."""
    if ROOT not in state:
        return []
    return [Path(os.path.normpath(index.resolve() / state[ROOT]["from_index"])), Path(state[ROOT]["path"])]


def find_root(state: Mapping[str, Any], index: Path) -> Path | None:
    """Return the root of an index; where none exists, the one that was written."""
    known = roots(state, index)
    return next((root for root in known if root.is_dir()), known[-1] if known else None)


def passage_url(passage: Passage, site: str, canonical: str = "") -> str:
    """Return the address of a passage: its page, and its anchor if it has one; empty where the page has no address.

    Args:
        passage: from an index.
        site: address of the root of the documents, or empty.
        canonical: address that the page names as its own, or empty.
    """
    page = canonical or (f"{site}{quote(passage.file)}" if site else "")
    return f"{page}#{quote(passage.anchor, safe=_IN_FRAGMENT)}" if page and passage.anchor else page


def place_facts(
    index: Path, root: Path | None = None, site: str | None = None, encoder: str | None = None
) -> dict[str, Any]:
    """Return places as the state of an index keeps them; None changes nothing.

    Args:
        index: folder of the index.
        root: folder to which paths of documents are relative.
        site: address of the root; `ConfigError` if it is none.
        encoder: name, which is kept where it is in the same folder, as in a tuning.
    """
    found: dict[str, Any] = {}
    if root is not None:
        found[ROOT] = {"path": root.as_posix(), "from_index": Path(os.path.relpath(root, index.resolve())).as_posix()}
    if encoder is not None:
        beside = os.path.isabs(encoder) and Path(encoder).parent == index.resolve().parent
        found[ENCODER] = Path(encoder).name if beside else ""
    if site is not None:
        try:
            found[SITE] = parse_site(site)
        except ValueError as error:
            raise ConfigError(f"--site: {error} (got '{site}')") from None
    return found


def find_encoder(state: Mapping[str, Any], index: Path) -> str:
    """Return the encoder of an index: beside the index where it was made so, or by its name."""
    beside = index.resolve().parent / state.get(ENCODER, "")
    return str(beside) if state.get(ENCODER) and beside.is_dir() else str(state["kind"]["encoder"])


def shown(path: Path) -> str:
    """Return a path as a user opens it from the current folder: relative if it is below, else unchanged."""
    with suppress(OSError, ValueError):  # the current folder is gone; the path is not below
        return path.relative_to(Path.cwd()).as_posix()
    return path.as_posix()
