"""Opens an index by folder or address. A database is a plug-in: `STORE` in this folder, or an entry point."""

import logging
from pathlib import Path
from typing import Protocol, Self

from metasearch.config import registry
from metasearch.errors import ConfigError
from metasearch.search.index.base import CopyResult, OnCount, Store, Words
from metasearch.search.index.database import INNER, exists
from metasearch.search.index.local import LocalStore
from metasearch.search.settings import without_password

_FORMER = ("qdrant", "qdrants")
"""Schemes of Qdrant, in which earlier releases kept copies."""
log = logging.getLogger(__name__)


class Database(Store, Protocol):
    """A copy of a local index on a server, by its address `NAME://...`; NAME is the plug-in."""

    @classmethod
    def check(cls, address: str) -> None:
        """Raise an error if an index cannot be copied to an address, before anything is encoded."""

    @classmethod
    def copy(cls, index: LocalStore, address: str, words: Words, on_sent: OnCount) -> CopyResult:
        """Make a new or existing copy equal to a local index, for `metasearch index --to`.

        Args:
            index: the local index; `row_keys` name its rows, `quantised.take` gives their vectors.
            address: as the user wrote it.
            words: splits texts for `search_words`.
            on_sent: is told how many of how many passages are sent.
        """
        ...

    @classmethod
    def open(cls, address: str) -> Self:
        """Open a copy; `RunFolderError` if there is none, or an incomplete one."""
        ...


def is_address(index: str | Path) -> bool:
    """Return whether a text is an address such as `postgresql://localhost/shop/help` rather than a folder."""
    name, colon, rest = str(index).partition(":")
    return bool(colon) and (rest.startswith("//") or name in registry.names("stores"))


def is_index(name: str) -> bool:
    """Return whether a name is an index, a tuning with one, or the address of a copy, and no encoder."""
    folder = Path(name)
    return name not in registry.names("encoders") and (is_address(name) or exists(folder) or exists(folder / INNER))


def database(address: str) -> type[Database]:
    """Return the plug-in of an address; `ConfigError` names the nearest one, or what to use in place of Qdrant."""
    name, colon, _ = address.partition(":")
    if not colon:
        raise ConfigError(f"'{address}': expected an address such as postgresql://localhost/shop/help")
    if name in _FORMER and name not in registry.names("stores"):
        instead = "use PostgreSQL (docs/postgresql.md), or a store of your own (CONTRIBUTING.md#a-store)"
        raise ConfigError(f"{without_password(address)}: unknown store '{name}'. Copies in Qdrant are gone: {instead}")
    found: type[Database] = registry.load("stores", name).STORE
    return found


def open_store(index: str | Path) -> Store:
    """Open a folder, the index in the folder of a tuning, or an address for searching."""
    if is_address(index):
        return database(str(index)).open(str(index))
    return LocalStore.open(index_folder(index))


def index_folder(index: str | Path) -> Path:
    """Return the folder of an index, also inside a tuning; an address is an error."""
    if is_address(index):
        raise ConfigError(f"{index}: expected the folder of an index, not the address of a copy in a database")
    folder = Path(index)
    if not exists(folder) and exists(folder / INNER):
        log.info("%s: its index is %s", folder, folder / INNER)
        folder /= INNER
    return folder
