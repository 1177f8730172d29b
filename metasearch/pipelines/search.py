"""Indexes and searches by the names of folders and encoders."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from metasearch.config import registry, yaml
from metasearch.config.index import IndexSettings
from metasearch.config.run import Device
from metasearch.encoders.encoder import Encoder
from metasearch.errors import ConfigError, EncoderError
from metasearch.pipelines import factory
from metasearch.retrieval.index import qdrant
from metasearch.retrieval.index.database import read_kind
from metasearch.retrieval.index.local import LocalStore
from metasearch.retrieval.index.qdrant import Address, QdrantStore, is_address
from metasearch.retrieval.index.qdrant_copy import CopyResult, copy_to_qdrant
from metasearch.retrieval.index.vectors_file import Precision, require_writable, write_vectors
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
    *,
    to: str | None = None,
    expand: bool = False,
    vectors: Path | None = None,
    precision: Precision = "float16",
) -> UpdateResult:
    """Make an index one of exactly these documents; see `metasearch.retrieval.search.update`.

    Then, if asked, copy it to a collection of Qdrant, sending only differences, or to a file of vectors.

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
        to: address of a collection of Qdrant, such as `qdrant://localhost:6333/help`.
        expand: copy expanded vectors to the collection, too, for `metasearch search --expand`.
        vectors: file that ends in `.parquet` (`metasearch.retrieval.index.vectors_file`).
        precision: of the vectors in the file.

    Raises:
        ConfigError: a key is unknown, a value is wrong or differs from the index, a document of the index is
            not named, or the index cannot be copied: a wrong address or name, a missing extra, `expand` without `to`.
        DataError: a document that is named cannot be read, or if `strict` anything at all; there is no document, or
            none with text; or too few passages for a neutral index.
        EncoderError: the encoder cannot be loaded, or the index or the collection has vectors of another one.
        RunFolderError: the folder is no index, is damaged, cannot be written, or another process writes it; or the
            server cannot be reached, or another program made the collection.
    """
    # What cannot be copied is an error before anything is encoded.
    target = Address.parse(to) if to is not None else None
    if target:
        qdrant.read_state(qdrant.connect(target), target)
    elif expand:
        raise ConfigError("--expand needs --to; a folder is expanded at the first `metasearch search --expand`")
    if vectors:
        require_writable(vectors)
    kind = read_kind(folder)
    before = kind.settings if kind else {}
    settings = yaml.check({**before, **(asked or {})}, IndexSettings, "settings of the index")
    name = encoder or (kind.encoder if kind else DEFAULT_ENCODER)
    loaded = factory.load_encoder(name, device=device, prompts=settings.prompts, trust_remote_code=trust_remote_code)
    # The same encoder may be named from another folder now; the index keeps the name that it has.
    same = kind is not None and kind.fingerprint == loaded.fingerprint
    known_as = kind.encoder if kind and same else _anywhere(name)
    result = update(folder, paths, loaded, settings, known_as, drop, strict, callback)
    if target or vectors:
        store = LocalStore.open(folder)
        copied = _copy(store, target, loaded, expand, callback) if target else None
        if vectors:
            write_vectors(store, vectors, precision, partial(callback.on_encode, "vectors"))
        result = replace(result, copied=copied)
    return result


def _copy(store: LocalStore, target: Address, encoder: Encoder, expand: bool, callback: Callback) -> CopyResult:
    if expand:
        give_expanded(store)
    return copy_to_qdrant(
        store, target, Searcher(store, encoder).cut_words, expand, partial(callback.on_encode, "copied")
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
            raise type(error)(f"{index}: the encoder that made it: {error}; pass its path with --encoder") from None
        raise
    return Searcher(store, loaded, factory.load_reranker(rerank, device, trust_remote_code) if rerank else None)


def _anywhere(name: str) -> str:
    """Return the name of an encoder that means the same from every folder."""
    local = name not in registry.names("encoders") and Path(name).is_dir()
    return str(Path(name).resolve()) if local else name
