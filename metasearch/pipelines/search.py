"""Indexes and searches by the names of folders and encoders."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from metasearch.config import registry, yaml
from metasearch.config.index import IndexSettings
from metasearch.config.run import Device
from metasearch.errors import ConfigError, EncoderError
from metasearch.pipelines import factory
from metasearch.retrieval.index.local import LocalStore, read_kind
from metasearch.retrieval.search.searcher import Searcher
from metasearch.retrieval.search.update import UpdateResult, update
from metasearch.runs.callbacks import SILENT, Callback

DEFAULT_ENCODER = "mini"


def index_documents(
    paths: Sequence[str | Path],
    folder: Path,
    encoder: str | None = None,
    asked: Mapping[str, Any] | None = None,
    device: Device = "auto",
    trust_remote_code: bool = False,
    drop: bool = False,
    strict: bool = False,
    callback: Callback = SILENT,
) -> UpdateResult:
    """Make an index one of exactly these documents; see `metasearch.retrieval.search.update`.

    Args:
        paths: files and folders.
        folder: of the index, new or there already.
        encoder: built-in name, local folder or hub name; by default that of the index, or of a new one `mini`.
        asked: keys of `IndexSettings`; what is not asked is as in the index, or of a new one the default.
        device: where the encoder runs.
        trust_remote_code: run Python code that comes with the encoder.
        drop: whether documents of the index that are still there, and were not named, leave it.
        strict: whether a document, row or language that cannot be read is an error; else a warning.
        callback: hears of the progress.

    Raises:
        ConfigError: a key is unknown, a value is wrong or another than that of the index, or a document of the index is
            not named.
        DataError: a document that is named cannot be read, or if `strict` anything at all; there is no document, or
            none with text; or too few passages for a neutral index.
        EncoderError: the encoder cannot be loaded, or the index has vectors of another one.
        RunFolderError: the folder is no index, is damaged, cannot be written, or another process writes it.
    """
    kind = read_kind(folder)
    before = kind.settings if kind else {}
    settings = yaml.check({**before, **(asked or {})}, IndexSettings, "settings of the index")
    name = encoder or (kind.encoder if kind else DEFAULT_ENCODER)
    loaded = factory.load_encoder(name, device=device, prompts=settings.prompts, trust_remote_code=trust_remote_code)
    # The same encoder may be named from another folder now; the index keeps the name that it has.
    same = kind is not None and kind.fingerprint == loaded.fingerprint
    known_as = kind.encoder if kind and same else _anywhere(name)
    return update(folder, paths, loaded, settings, known_as, drop, strict, callback)


def open_searcher(
    folder: Path, device: Device = "auto", encoder: str | None = None, trust_remote_code: bool = False
) -> Searcher:
    """Open an index with the encoder that made it.

    Args:
        folder: of the index.
        device: where the encoder runs.
        encoder: where the encoder is, if no longer where it was.
        trust_remote_code: run Python code that comes with the encoder.

    Raises:
        RunFolderError: the folder is no index, was never finished, or is damaged.
        EncoderError: the encoder cannot be loaded, or is another one.
    """
    store = LocalStore.open(folder)
    settings = yaml.check(dict(store.kind.settings), IndexSettings, f"settings of {folder}")
    try:
        loaded = factory.load_encoder(
            encoder or store.kind.encoder, device=device, prompts=settings.prompts, trust_remote_code=trust_remote_code
        )
    except (EncoderError, ConfigError) as error:
        if encoder is None:
            raise type(error)(f"{folder}: the encoder that made it: {error}; say with --encoder where it is") from None
        raise
    return Searcher(store, loaded)


def _anywhere(name: str) -> str:
    """Return the name of an encoder that means the same from every folder."""
    local = name not in registry.names("encoders") and Path(name).is_dir()
    return str(Path(name).resolve()) if local else name
