"""Indexes and searches by the names of folders and encoders."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from metasearch.config import yaml
from metasearch.config.precision import EncodingPrecision
from metasearch.config.run import DEFAULT_ENCODER, Device
from metasearch.data.locate import absolute_encoder
from metasearch.encoders.device import fast_in_bfloat16
from metasearch.encoders.encoder import Encoder
from metasearch.errors import ConfigError, DataError, EncoderError, RunFolderError
from metasearch.runs.callbacks import SILENT, Callback
from metasearch.search.index.adapters import IN_USE, AdapterFacts, read_adapter, require_adapter
from metasearch.search.index.base import Kind
from metasearch.search.index.database import exists, read_state
from metasearch.search.index.local import LocalStore
from metasearch.search.index.places import SITE, find_encoder, place_facts
from metasearch.search.index.plan import Learned
from metasearch.search.index.stores import database, open_store
from metasearch.search.index.writer import writing
from metasearch.search.inference.open import load_reader
from metasearch.search.query.roots import known_root
from metasearch.search.query.searcher import QUERY, Searcher
from metasearch.search.query.update import UpdateResult, update
from metasearch.search.settings import IndexSettings, RankingSettings, without_password

log = logging.getLogger(__name__)

LEAST_QUERIES = 5
"""Queries below which nothing is learned: the mean of fewer says more about their subject."""


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
    ranking: Mapping[str, Any] | None = None,
    root: Path | None = None,
    site: str | None = None,
) -> UpdateResult:
    """Make an index of exactly these documents; then, if asked, copy it to a database.

    Args:
        paths: files and folders.
        folder: folder of the index, new or existing.
        encoder: built-in name, local folder or hub name; by default the index's encoder, else `DEFAULT_ENCODER`.
        asked: keys of `IndexSettings`; other settings stay, or are the defaults in a new index.
        device: device of the encoder.
        trust_remote_code: run Python code that comes with the encoder.
        drop: remove documents of the index that still exist but were not named.
        strict: raise an error for a document, row or language that cannot be read, instead of a warning.
        callback: called after each document and encoded batch.
        to: address in a database, such as `postgresql://localhost/shop/help`; see `metasearch ls stores`.
        ranking: keys of `RankingSettings`: how the index is searched unless told otherwise; other keys stay.
        root: folder to which paths of documents are relative; by default the index's root, or in a new index the
            folder that is named, or the common parent of all.
        site: address of the root, such as `https://help.example.org/`, from which hits get their addresses; by default
            the index's site. The empty text removes it.

    Raises:
        ConfigError: a key is unknown, a value is wrong or differs from the index, the site is no absolute address, a
            document of the index is not named or outside the root, or the index cannot be copied: a wrong address or
            name, a missing extra.
        DataError: a document that is named cannot be read, or if `strict` anything at all; there is no document, or
            none with text; or `neutral` is asked for and there are too few passages.
        EncoderError: the encoder cannot be loaded, or the index or its copy has vectors of another one.
        RunFolderError: the folder is no index, is damaged, cannot be written, or another process writes it; or the
            server cannot be reached, or another program made the table.
    """
    # What cannot be copied is an error before anything is encoded.
    target = database(to) if to is not None else None
    state = read_state(folder) if exists(folder) else {}
    ranked = _ranking(state, ranking)
    place_facts(folder, site=site)  # raises an error for a wrong one
    if target and to:
        if ranked.get("expand"):
            raise ConfigError(f"--to {without_password(to)}: copies in databases have no --expand; add --no-expand")
        target.check(to)
    kind = replace(Kind(**state["kind"]), encoder=find_encoder(state, folder)) if state else None
    before = kind.settings if kind else {}
    wanted = {key: value for key, value in (asked or {}).items() if (key, value) != ("precision", "auto")}
    settings = yaml.check({**before, **wanted}, IndexSettings, "settings of the index")
    name = encoder or (kind.encoder if kind else DEFAULT_ENCODER)
    loaded = load_reader(name, device, settings.prompts, trust_remote_code)
    # The same encoder may be named from another folder now; the index keeps the name that it has.
    same = kind is not None and kind.fingerprint == loaded.fingerprint
    loaded.choose_precision(settings.precision, tried=same)
    known_as = kind.encoder if kind and same else absolute_encoder(name)
    result = update(folder, paths, loaded, settings, known_as, drop, strict, callback, ranked, root, site)
    if target and to:
        store = LocalStore.open(folder)
        words, heard = Searcher(store, loaded).cut_words, partial(callback.on_encode, "copied")
        result = replace(result, copied=target.copy(store, to, words, heard))
    return result


def change_index(
    folder: Path, ranking: Mapping[str, Any] | None = None, root: Path | None = None, site: str | None = None
) -> dict[str, str]:
    """Change how an index is searched, or where its documents are, without reading them; return all of it.

    Args:
        folder: folder of the index.
        ranking: keys of `RankingSettings`; other keys stay.
        root: folder to which the documents have moved.
        site: address of the root; the empty text removes it.

    Raises:
        ConfigError: a key is unknown or a value wrong, or no document is below the root.
        RunFolderError: the folder is no finished index, is damaged or cannot be written.
    """
    state = read_state(folder)
    if state.get("files") is None:
        raise RunFolderError(f"{folder}: the index is incomplete; run metasearch index with its documents again")
    with writing(folder, Kind(**state["kind"])) as store:
        facts: dict[str, Any] = {"ranking": _ranking(store.state, ranking)}
        facts |= place_facts(folder, None if root is None else known_root(store, root), site)
        store.change(facts)
        ranked = RankingSettings(**facts["ranking"]).options
        places = {"root": str(store.root), "site": store.site or "none"}
        return {"search": " ".join(ranked) or "as by default", **places}


def list_adapters(folder: Path) -> tuple[list[AdapterFacts], str]:
    """Return the query adapters of an index, the oldest first, and the name of the one in use, or the empty text.

    `RunFolderError` if the folder is no index.
    """
    state = read_state(folder)
    return AdapterFacts.all_in(state), str(state.get(IN_USE, ""))


def use_adapter(folder: Path, name: str | None) -> None:
    """Search an index with one of its query adapters, or with none.

    Raises:
        ConfigError: the index has no adapter with this name.
        RunFolderError: the folder is no index, or cannot be written.
    """
    state = read_state(folder)
    if not state:
        raise RunFolderError(f"{folder}: the index is incomplete; run metasearch index with its documents again")
    if name is not None:
        require_adapter(state, name, folder)
    with writing(folder, Kind(**state["kind"])) as store:
        store.change({IN_USE: name or ""})
        read_adapter(store)  # warns of one that was learned on other vectors


def learn_queries(
    folder: Path, queries: Sequence[str], device: Device, encoder: str | None, trust_remote_code: bool
) -> Learned:
    """Move the centre of queries of an index towards the mean of real queries, distinct texts; return all so far.

    The index keeps their number and the sum of their vectors from the encoder. So they still count after the projection
    of the index is estimated again.

    Raises:
        DataError: there are fewer than 5 queries, or the index has no centre of queries.
        RunFolderError: the index cannot be written.
    """
    if len(queries) < LEAST_QUERIES:
        raise DataError(f"{len(queries)} different queries; the mean of queries needs {LEAST_QUERIES} or more")
    searcher = open_searcher(folder, device, encoder, trust_remote_code)
    store = searcher.store
    if store.plan.centre is None:
        why = "it was made with --no-neutral, or has too few passages"
        raise DataError(f"{store.name}: no centre of queries: {why}; run metasearch index with its documents again")
    vectors = searcher.encoder.encode(queries, QUERY)
    learned = Learned.of(vectors, datetime.now(UTC).isoformat(timespec="seconds"))
    with writing(folder, store.kind) as writer:
        if writer.plan.learned:
            learned = writer.plan.learned.plus(learned)
        writer.write_plan(replace(writer.plan, learned=learned))
    return learned


def forget_queries(folder: Path) -> None:
    """Return the centre of queries of an index to the estimate without real queries."""
    with writing(folder, LocalStore.open(folder).kind) as writer:
        writer.write_plan(replace(writer.plan, learned=None))


def _ranking(state: Mapping[str, Any], asked: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return how an index is to be searched: as before, but for the keys that are asked for."""
    tree = {**state.get("ranking", {}), **(asked or {})}
    return yaml.check(tree, RankingSettings, "ranking of the index").model_dump(exclude_none=True)


def open_searcher(
    index: str | Path,
    device: Device = "auto",
    encoder: str | None = None,
    trust_remote_code: bool = False,
    rerank: str | None = None,
    precision: EncodingPrecision = "auto",
    site: str | None = None,
) -> Searcher:
    """Open an index with the encoder that made it.

    Args:
        index: folder of the index or of a tuning with one, or the address of one in a database such as
            `postgresql://localhost/shop/help`.
        device: device of the encoder.
        encoder: new place of the encoder, if it has moved.
        trust_remote_code: run Python code that comes with the encoder or the cross-encoder.
        rerank: local folder or hub name of a cross-encoder, for `search(..., rerank=100)`.
        precision: what queries are encoded in; `auto` is that of the index where this machine is fast in it, else
            float32.
        site: address of the root of the documents, for the addresses of hits; by default the index's site.

    Raises:
        ConfigError: the address or the site is wrong, the extra of the database is not installed, or this machine
            cannot compute in the precision.
        RunFolderError: the folder is no finished index, or is damaged; or the server cannot be reached.
        EncoderError: the encoder or the cross-encoder cannot be loaded, or the encoder is another one.
    """
    site = place_facts(Path(), site=site).get(SITE)
    store = open_store(index)
    settings = yaml.check(store.kind.settings, IndexSettings, f"settings of {store.name}")
    try:
        loaded = load_reader(encoder or store.kind.encoder, device, settings.prompts, trust_remote_code)
    except (EncoderError, ConfigError) as error:
        if encoder is None:
            raise type(error)(
                f"{store.name}: the encoder that made it: {error}; pass its path with --encoder"
            ) from None
        raise
    _choose_precision(loaded, precision, settings.precision, store.name)
    reranker = None
    if rerank:
        from metasearch.encoders.cross_encoder import open_reranker

        reranker = open_reranker(rerank, loaded.device, trust_remote_code)
    searcher = Searcher(store, loaded, reranker, site)
    if options := searcher.ranking.options:
        log.info("%s: searched with %s unless told otherwise", store.name, " ".join(options))
    if store.plan.adapter:
        log.info("%s: searched with its adapter '%s'", store.name, store.plan.adapter.name)
    return searcher


def _choose_precision(encoder: Encoder, asked: EncodingPrecision, stored: EncodingPrecision, index: str) -> None:
    """Let queries be encoded as asked, by default as the passages were where this machine is fast in that."""
    if asked != "auto":
        encoder.choose_precision(asked)
        return
    if stored == "bfloat16" and not (encoder.device.type == "cpu" and fast_in_bfloat16()):
        stored = "float32"  # which is close to it
    try:
        encoder.choose_precision(stored, tried=True)
    except ConfigError as error:
        log.warning("%s: queries are encoded in float32, its passages were in %s: %s", index, stored, error)
