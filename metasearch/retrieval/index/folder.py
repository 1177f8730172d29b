"""An index folder: whether it exists, and its kind."""

import json
from pathlib import Path
from typing import Any

from metasearch.errors import RunFolderError
from metasearch.io import read_bytes
from metasearch.retrieval.index.base import Kind
from metasearch.retrieval.index.database import FILE, FORMAT, SCHEMA, Database

OLD_FILE, OLD_FOLDERS = "manifest.json", ("segments", "locations", "arrays")
"""Files of the format before SQLite."""


def exists(folder: Path) -> bool:
    """Return whether a folder is an index, in any format."""
    return (folder / FILE).exists() or (folder / OLD_FILE).exists()


def read_kind(folder: Path) -> Kind | None:
    """Return the kind of an index, in any format, or None.

    Raises:
        RunFolderError: it is damaged.
    """
    if not exists(folder):
        return None
    if (folder / FILE).exists():
        state = read_state(folder)
        return Kind(**state["kind"]) if state else None
    try:
        kind = json.loads(read_bytes(folder / OLD_FILE))["kind"]
        return Kind(kind["encoder"], kind["fingerprint"], kind["dimension"], kind["settings"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunFolderError(
            f"{folder / OLD_FILE}: the index has an earlier format, and its settings cannot be read ({error}); make "
            "an index in another folder"
        ) from None


def read_state(folder: Path) -> dict[str, Any]:
    """Return an index's current facts on disk; empty where a writer died before its first word.

    Raises:
        RunFolderError: it is no index, damaged, or of another schema.
    """
    require_index(folder)
    database = Database(folder / FILE)
    try:
        return checked_state(database)
    finally:
        database.close()


def require_index(folder: Path) -> None:
    """Raise `RunFolderError` unless a folder is an index in this format."""
    if (folder / FILE).exists():
        return
    if (folder / OLD_FILE).exists():
        raise RunFolderError(
            f"{folder}: the index has an earlier format; make it again from its documents with metasearch index DOCS "
            f"-o {folder}"
        )
    what = f"is no index: it has no {FILE}" if folder.exists() else "does not exist"
    raise RunFolderError(f"{folder} {what}; make one with metasearch index DOCS -o {folder}")


def checked_state(database: Database) -> dict[str, Any]:
    """Return an index's facts; `RunFolderError` if another release wrote them."""
    found = database.state()
    if found and (found.get("format"), found.get("schema")) != (FORMAT, SCHEMA):
        raise RunFolderError(
            f"{database.path}: it has schema {found.get('schema')}, and this release of metasearch reads schema "
            f"{SCHEMA}; use the release that made it, or make the index again in another folder"
        )
    return found
