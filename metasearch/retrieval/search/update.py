"""Update an index to some documents: encode new ones, remove missing ones, keep the rest."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from metasearch.config.index import IndexSettings
from metasearch.config.languages import is_known
from metasearch.data.documents.chunking import Settings
from metasearch.data.documents.source import sources
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.neutral import NeutralMap
from metasearch.errors import DataError
from metasearch.retrieval.index.base import Kind, passage_keys
from metasearch.retrieval.index.qdrant_copy import CopyResult
from metasearch.retrieval.index.writer import IndexWriter, writing
from metasearch.retrieval.search.neutral import SAMPLE, estimated, of_arrays, through, to_arrays, warn_of_outside
from metasearch.retrieval.search.passages import ROLE, cutting, encoding, resolved
from metasearch.retrieval.search.plan import Plan, new_passages, plan
from metasearch.runs.callbacks import SILENT, Callback
from metasearch.runs.signals import interrupted

log = logging.getLogger(__name__)

_AT_ONCE = 1024
"""Passages that are encoded, and then written, at a time."""


@dataclass(frozen=True)
class UpdateResult:
    """An index's size and changes.

    Attributes:
        documents: there are.
        passages: there are, each place counted.
        languages: texts by language, most first; one that several places have is counted once.
        encoded: texts that got a vector.
        added: documents that are new.
        changed: documents whose content is another than before.
        dropped: documents that are gone.
        skipped: documents and folders that cannot be read.
        kept: documents that stay as indexed before because they cannot be read.
        skipped_rows: rows that cannot be read, in documents that are new or changed.
        copied: what a copy to a collection of Qdrant did.
    """

    documents: int
    passages: int
    languages: dict[str, int]
    encoded: int
    added: int
    changed: int
    dropped: int
    skipped: int
    kept: int
    skipped_rows: int
    copied: CopyResult | None = None


def update(
    folder: Path,
    paths: Sequence[str | Path],
    encoder: Encoder,
    settings: IndexSettings,
    name: str = "",
    drop: bool = False,
    strict: bool = False,
    callback: Callback = SILENT,
) -> UpdateResult:
    """Make a new or existing index contain exactly these documents.

    A killed process has saved what it encoded, and the next call encodes the rest. Readers see the old documents
    until all is done. With `drop`, existing documents that are not named leave the index; with `strict`, everything
    unreadable is an error. `name` is the name under which the index remembers the encoder.
    """
    settings = resolved(settings, encoder)
    cut = cutting(settings, encoder)
    stored = settings.model_dump(mode="json")
    kind = Kind(name or encoder.name, encoder.fingerprint, encoder.dimension(), stored)
    unreadable: dict[str, str] = {}
    documents = sources(paths, settings.names, unreadable)
    if settings.column != "text" and not any(each.reader == "rows" for each in documents):
        log.warning("column '%s' has no effect: no document has rows, such as .jsonl and .csv", settings.column)
    if settings.detect and is_known(settings.language or ""):
        log.warning("detect has no effect: texts without a language get the language '%s'", settings.language)
    with writing(folder, kind) as store:
        store.verify()
        before = store.files
        sampled = SAMPLE if settings.neutral and not store.arrays else 0
        found = plan(
            store,
            documents,
            cut,
            unreadable=unreadable,
            sampled=sampled,
            drop=drop,
            strict=strict,
            heard=callback.on_read,
        )
        if not any(len(each.keys) for each in found.files):
            raise DataError(f"{folder}: no document has text")
        neutral = _map(store, encoder, found, callback) if settings.neutral else None
        _encode(store, encoder, neutral, found, cut, callback)
        store.finish(found.files)
        passages, languages = store.places, store.languages
    files = {each.file.path: each.file.sha256 for each in found.files}
    return UpdateResult(
        documents=len(files),
        passages=passages,
        languages=languages,
        encoded=len(found.new),
        added=len(files.keys() - before.keys()),
        changed=sum(before[path].sha256 != digest for path, digest in files.items() if path in before),
        dropped=len(before.keys() - files.keys()),
        skipped=found.skipped,
        kept=found.kept,
        skipped_rows=found.rows,
    )


def _map(store: IndexWriter, encoder: Encoder, found: Plan, callback: Callback) -> NeutralMap:
    neutral = of_arrays(store.arrays)
    if neutral is None:
        neutral = estimated(encoder, found.sample, callback)
        store.keep(to_arrays(neutral))
    else:
        warn_of_outside(neutral, found.languages)
    return neutral


def _encode(
    store: IndexWriter, encoder: Encoder, neutral: NeutralMap | None, found: Plan, cut: Settings, callback: Callback
) -> None:
    done, source, new = 0, through(encoder, neutral), new_passages(found.changed, cut)
    try:
        while passages := list(islice(new, _AT_ONCE)):
            with encoding(encoder, "passages", callback, done, len(found.new)):
                vectors = source.encode([passage.text for passage in passages], ROLE)
            store.upsert(vectors, passages, passage_keys(passages))
            done += len(passages)
    except KeyboardInterrupt:
        kept = f"{done:,} of {len(found.new):,} new texts are encoded and kept; run the same command again to continue"
        raise interrupted(f"stopped; {kept}") from None
