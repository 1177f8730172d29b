"""Indexes and searches by the names of folders and encoders."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from metasearch.config import registry, yaml
from metasearch.config.index import IndexSettings
from metasearch.config.run import Device
from metasearch.errors import ConfigError, EncoderError
from metasearch.pipelines import factory
from metasearch.retrieval.index.folder import read_kind
from metasearch.retrieval.index.local import LocalStore
from metasearch.retrieval.index.qdrant import Address, QdrantStore, is_address
from metasearch.retrieval.index.qdrant_copy import CopyResult, copy_to_qdrant
from metasearch.retrieval.search.expansion import expand as give_expanded
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


def copy_index(
    folder: Path,
    address: str,
    expand: bool = False,
    device: Device = "auto",
    encoder: str | None = None,
    trust_remote_code: bool = False,
    callback: Callback = SILENT,
) -> CopyResult:
    """Make a collection of Qdrant a copy of an index; only what differs is sent.

    Args:
        folder: of the index.
        address: of the collection, such as `qdrant://localhost:6333/help`.
        expand: whether the collection has expanded vectors, too, for `metasearch search --expand`.
        device: where the encoder runs, whose tokenizer cuts texts into words.
        encoder: where the encoder is, if no longer where it was.
        trust_remote_code: run Python code that comes with the encoder.
        callback: hears of the progress.

    Raises:
        ConfigError: the address is wrong, the extra `qdrant` is not installed, or the index cannot be expanded.
        EncoderError: the collection has vectors of another encoder.
        RunFolderError: the index is damaged, the server cannot be reached, or another program made the collection.
    """
    target, searcher = Address.parse(address), open_searcher(folder, device, encoder, trust_remote_code)
    store = searcher.store
    if not isinstance(store, LocalStore):
        raise ConfigError(f"{folder}: expected the folder of an index to copy")
    if expand:
        give_expanded(store)
    return copy_to_qdrant(
        store, target, searcher.cut_words, expand, lambda done, total: callback.on_encode("copied", done, total)
    )


def open_searcher(
    index: str | Path,
    device: Device = "auto",
    encoder: str | None = None,
    trust_remote_code: bool = False,
    rerank: str | None = None,
) -> Searcher:
    """Open an index with the encoder that made it.

    Args:
        index: folder of the index, or the address of a collection of Qdrant such as `qdrant://localhost:6333/help`.
        device: where the encoder runs.
        encoder: where the encoder is, if no longer where it was.
        trust_remote_code: run Python code that comes with the encoder or the cross-encoder.
        rerank: local folder or hub name of a cross-encoder, for `search(..., rerank=100)`.

    Raises:
        ConfigError: the address is wrong, or the extra `qdrant` is not installed.
        RunFolderError: the folder is no index, was never finished, or is damaged; or the server cannot be reached.
        EncoderError: the encoder or the cross-encoder cannot be loaded, or the encoder is another one.
    """
    store = QdrantStore(Address.parse(str(index))) if is_address(str(index)) else LocalStore.open(Path(index))
    settings = yaml.check(dict(store.kind.settings), IndexSettings, f"settings of {index}")
    try:
        loaded = factory.load_encoder(
            encoder or store.kind.encoder, device=device, prompts=settings.prompts, trust_remote_code=trust_remote_code
        )
    except (EncoderError, ConfigError) as error:
        if encoder is None:
            raise type(error)(f"{index}: the encoder that made it: {error}; say with --encoder where it is") from None
        raise
    return Searcher(store, loaded, factory.load_reranker(rerank, device, trust_remote_code) if rerank else None)


def _anywhere(name: str) -> str:
    """Return the name of an encoder that means the same from every folder."""
    local = name not in registry.names("encoders") and Path(name).is_dir()
    return str(Path(name).resolve()) if local else name
