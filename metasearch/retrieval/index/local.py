"""An index in a folder: passages and vectors in SQLite, and an exact search of all vectors in memory.

What a call of `upsert` kept stays, however the process ends: the next writer finds it by its keys. Readers see the
documents change in one moment, when `finish` has written them all.
"""

import hashlib
import json
import logging
import shutil
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save

from metasearch.data.documents.passage import Passage
from metasearch.errors import ConfigError, NonFiniteError, RunFolderError, nearest
from metasearch.io import LOCK, held, read_bytes
from metasearch.retrieval.index.base import KEY_BYTES, FilePlaces, Keys, Kind, Rows, Scores, SourceFile
from metasearch.retrieval.index.database import FILE, FORMAT, ROW, SCHEMA, WHOLE, Block, Database
from metasearch.retrieval.index.exact_search import Groups, processors, search_int8
from metasearch.retrieval.index.quantise import Quantised, Queries, to_int8

ROWS = 4096
"""Passages of a block at most."""
_SMALL, _SMALL_BLOCKS = 512, 8
"""Blocks of fewer passages are joined when there are more than so many."""
_DEAD = 0.25
"""Share of the passages of a block that may be deleted before it is written anew."""
_EMPTY: dict[str, Any] = {"files": None, "contents": "", "languages": [], "arrays": False}
"""How many files the documents are, None before they are finished; hash of all places; and whether there are arrays."""
_OLD_FILE, _OLD_FOLDERS = "manifest.json", ("segments", "locations", "arrays")
"""Files of the format before SQLite."""

log = logging.getLogger(__name__)


def exists(folder: Path) -> bool:
    """Return whether a folder is an index, also one of an earlier format."""
    return (folder / FILE).exists() or (folder / _OLD_FILE).exists()


def read_kind(folder: Path) -> Kind | None:
    """Return what an index, also one of an earlier format, was made with; None where there is none.

    Raises:
        RunFolderError: it is damaged.
    """
    if not exists(folder):
        return None
    if (folder / FILE).exists():
        state = read_state(folder)
        return Kind(**state["kind"]) if state else None
    try:
        kind = json.loads(read_bytes(folder / _OLD_FILE))["kind"]
        return Kind(kind["encoder"], kind["fingerprint"], kind["dimension"], kind["settings"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunFolderError(
            f"{folder / _OLD_FILE}: the index has an earlier format, and its settings cannot be read ({error}); make "
            "an index in another folder"
        ) from None


def read_state(folder: Path) -> dict[str, Any]:
    """Return the facts of an index as they are on the disk now; empty where a writer died before its first word.

    Raises:
        RunFolderError: it is no index, damaged, or of another schema.
    """
    _require_index(folder)
    database = Database(folder / FILE)
    try:
        return _state(database)
    finally:
        database.close()


@contextmanager
def writing(folder: Path, kind: Kind) -> Iterator["LocalStore"]:
    """Give the store of an index, new or there already, that no other process writes meanwhile.

    Args:
        folder: of the index.
        kind: the encoder and the settings of the vectors.

    Raises:
        RunFolderError: another process writes it, it is damaged, or the folder holds something else.
        EncoderError: it has vectors of another encoder.
        ConfigError: it was made with other settings.
    """
    if folder.exists() and not exists(folder):
        others = sorted(set(path.name for path in folder.iterdir()) - {LOCK}) if folder.is_dir() else [""]
        if others:
            raise RunFolderError(f"{folder} exists and is no index; choose another folder with -o")
    with held(folder, f"{folder}: another process writes this index; wait for it to end"):
        if not (folder / FILE).exists() and (folder / _OLD_FILE).exists():
            log.warning("%s has an earlier format: it is made anew from the documents that are named", folder)
        database = Database(folder / FILE, write=True)
        try:
            yield LocalStore(folder, database, kind)
        finally:
            database.close()


@dataclass(frozen=True, eq=False)
class _Contents:
    """The passages of the documents: R rows at P places, files in their order.

    Attributes:
        files: of the documents.
        ends: file i has the places from `ends[i - 1]` up to `ends[i]`.
        lines: of each place, `(P,)`.
        ids: number of the passage at each place, `(P,)`.
        sorted: numbers of the passages, ascending, `(R,)`.
        rows: row of each of `sorted`, `(R,)`.
        first: first place of each row, `(R,)`.
        counts: how many places each row has, `(R,)`.
    """

    files: Sequence[SourceFile]
    ends: Rows
    lines: NDArray[np.int32]
    ids: Rows
    sorted: Rows
    rows: Rows
    first: Rows
    counts: Rows

    @classmethod
    def read(cls, database: Database, count: int) -> "_Contents":
        found = database.files()
        if len(found) != count:
            raise database.damaged("the list of documents", WHOLE)
        ids = np.concatenate([np.zeros(0, np.int64), *(part for _, part, _ in found)])
        lines = np.concatenate([np.zeros(0, np.int32), *(part for *_, part in found)])
        numbers, first, counts = np.unique(ids, return_index=True, return_counts=True)
        order = np.argsort(first)
        rows = np.empty(len(order), np.int64)
        rows[order] = np.arange(len(order))
        ends = np.cumsum([len(part) for _, part, _ in found], dtype=np.int64)
        return cls([file for file, *_ in found], ends, lines, ids, numbers, rows, first[order], counts[order])

    def rows_of(self, ids: Rows) -> Rows:
        """Return the row of each passage, -1 of one that has no place."""
        if not len(self.sorted):
            return np.full(len(ids), -1, np.int64)
        place = np.minimum(np.searchsorted(self.sorted, ids), len(self.sorted) - 1)
        return np.where(self.sorted[place] == ids, self.rows[place], -1)


class LocalStore:
    """An index in a folder; several threads may search at once. `open` gives a reader, `writing` a writer.

    Rows are numbered from 0 in the order of the documents. A row is a text in a language: what several places of the
    documents have is one row, at the first of them.

    Args:
        folder: of the index.
        database: its file.
        kind: the encoder and settings of a writer; None of a reader.
        threads: that search at once; by default as many as this process has processors.
    """

    def __init__(self, folder: Path, database: Database, kind: Kind | None = None, threads: int | None = None) -> None:
        self.folder = folder
        self.threads = threads or processors()
        self._database = database
        self.state = _state(database)
        if kind and not self.state:
            self.state = json.loads(json.dumps({"format": FORMAT, "schema": SCHEMA, "kind": asdict(kind), **_EMPTY}))
        self.kind = Kind(**self.state["kind"])
        if kind:
            self.kind.require_encoder(folder, kind.fingerprint, kind.dimension, kind.encoder)
            self.kind.require_settings(folder, kind)
        content = database.arrays()
        if bool(content) != self.state["arrays"]:
            raise database.damaged("the index", WHOLE)
        self.arrays: Mapping[str, NDArray[Any]] = load(content) if content else {}
        """Arrays that belong to the vectors, such as a map that all of them went through."""
        self._last: tuple[tuple[frozenset[str], ...], Groups] | None = None
        self.expanded: Quantised | None = None
        """Second vectors of all rows, which `metasearch.retrieval.search.expansion` gives."""

    @classmethod
    def open(cls, folder: Path, *, threads: int | None = None) -> "LocalStore":
        """Open an index to be searched, as it is now; all that a search scores is read and compared with its checksum.

        Args:
            folder: of the index.
            threads: that search at once; by default as many as this process has processors.

        Raises:
            RunFolderError: it is no index, never finished, damaged, or of another release's schema.
        """
        _require_index(folder)
        database = Database(folder / FILE)
        try:
            if _state(database).get("files") is None:
                raise RunFolderError(
                    f"{folder / FILE}: the index was never finished; call metasearch index with its documents again"
                )
            store = cls(folder, database, threads=threads)
            assert store.quantised
            return store
        except BaseException:
            database.close()
            raise

    # Reading.

    def __len__(self) -> int:
        """Return how many rows there are."""
        return len(self._contents.first)

    @property
    def contents(self) -> str:
        """Hash of all rows and places: of equal ones texts and their order are the same."""
        return str(self.state["contents"])

    @property
    def places(self) -> int:
        """How many places the documents have, each with the text of a row."""
        return len(self._contents.ids)

    @cached_property
    def files(self) -> dict[str, SourceFile]:
        """The files of the documents, by path."""
        return {file.path: file for file in self._contents.files}

    @cached_property
    def languages(self) -> dict[str, int]:
        """How many rows each language has, most first."""
        tags = self.state["languages"]
        found = Counter(np.asarray(tags, object)[self._row_languages].tolist()) if len(self) else Counter[str]()
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))

    def changed(self) -> bool:
        """Return whether another writer has changed the index; `RunFolderError` where it is gone or damaged."""
        return read_state(self.folder) != self.state

    def reopen(self) -> "LocalStore":
        """Return the index as it is on the disk now; errors are those of `open`."""
        return LocalStore.open(self.folder, threads=self.threads)

    def verify(self) -> None:
        """Compare everything with its checksum; `RunFolderError` names all that is damaged."""
        problems = [str(error) for error in self._damaged_blocks().values()]
        if problems:
            raise RunFolderError("; ".join(problems))

    def search(
        self,
        vectors: NDArray[np.float32],
        top: int = 10,
        groups: Sequence[Collection[str]] = ((),),
        expanded: bool = False,
    ) -> list[tuple[Rows, Scores]]:
        """Return for each group of languages the best rows and their scores, best first, `(q, K)` each.

        Exact, but for the rounding of vectors to eight bits. Of equal scores the lower row comes first. K is `top`, or
        fewer where there are fewer rows.

        Args:
            vectors: of queries, `(q, D)`.
            top: how many rows are wanted for each.
            groups: languages whose rows are ranked apart; an empty one has all languages.
            expanded: whether the second vectors of the rows are searched.

        Raises:
            ConfigError: no row is in one of the languages, or `top` is below 1.
            NonFiniteError: a vector is not finite.
            ValueError: a language is in two of the groups.
        """
        if vectors.ndim != 2 or vectors.shape[1] != self.kind.dimension:
            raise ValueError(f"expected vectors (q, {self.kind.dimension}), got {vectors.shape}")
        if not np.isfinite(vectors).all():
            raise NonFiniteError("the vector of a query is not finite")
        if top < 1:
            raise ConfigError(f"top {top}: expected 1 or more")
        chosen = self.groups(groups)
        sizes = [sum(self.languages[tag] for tag in set(languages) or self.languages) for languages in groups]
        wanted = [min(top, size) for size in sizes]
        if not any(wanted) or not len(vectors):
            return [(np.zeros((len(vectors), w), np.int64), np.zeros((len(vectors), w), np.float32)) for w in wanted]
        searched = self.expanded if expanded else self.quantised
        assert searched is not None
        found = search_int8(searched, chosen, Queries.of(vectors), wanted, self.threads)
        return [(np.stack(best.rows), np.stack(best.scores)) for best in found]

    def groups(self, groups: Sequence[Collection[str]]) -> Groups:
        """Return the number of the group of each row's language, -1 of one that is in none, `(R,)`.

        Raises:
            ConfigError: no row is in one of the languages.
            ValueError: a language is in two of the groups.
        """
        # Read once: another thread may search other groups meanwhile.
        key, last = tuple(map(frozenset, groups)), self._last
        if last and last[0] == key:
            return last[1]
        for language in sorted({tag for languages in groups for tag in languages} - self.languages.keys()):
            raise ConfigError(f"no passage is in language '{language}'.{nearest(language, self.languages)}")
        named = [tag for tags in groups for tag in set(tags or self.languages)]
        if len(set(named)) < len(named):
            raise ValueError(f"a language is in two of the groups {list(map(list, groups))}")
        inside = [[i for i, tags in enumerate(groups) if tag in tags or not tags] for tag in self.state["languages"]]
        of_tag = np.array([own[0] if own else -1 for own in inside], np.int16)
        found = of_tag[self._row_languages]
        self._last = key, found
        return found

    def rows_in(self, languages: Collection[str]) -> NDArray[np.bool_]:
        """Return which rows are in some languages, `(R,)`; `ConfigError` for a language that no row is in."""
        return np.asarray(self.groups([languages]) >= 0)

    def vectors(self) -> NDArray[np.float32]:
        """Return the vectors of all rows as they are stored, `(R, D)`."""
        return self.quantised.codes * self.quantised.steps[:, None]

    def passages(self, rows: Sequence[int] | Rows) -> list[tuple[Passage, int]]:
        """Return the passages of rows at their first places, and how many places each has.

        Raises:
            RunFolderError: the text of a passage is damaged.
        """
        return [(self._passage(row, int(self._contents.first[row])), int(self._contents.counts[row])) for row in rows]

    def row_keys(self) -> Keys:
        """Return the key of each row, `(R, 16)`."""
        found = np.zeros((len(self), KEY_BYTES), np.uint8)
        for number, rows in self._rows.items():
            found[rows[rows >= 0]] = self._blocks[number]["key"][rows >= 0]
        return found

    def texts(self) -> Iterator[str]:
        """Yield the texts of all rows, in their order; `RunFolderError` where one is damaged."""
        yield from (self._database.text(int(number)) for number in self._contents.ids[self._contents.first])

    def _passage(self, row: int, place: int) -> Passage:
        own = self._contents
        file = own.files[int(np.searchsorted(own.ends, place, side="right"))]
        tag = self.state["languages"][int(self._row_languages[row])]
        return Passage(self._database.text(int(own.ids[place])), file.path, int(own.lines[place]), tag)

    @cached_property
    def _contents(self) -> _Contents:
        return _Contents.read(self._database, self.state["files"] or 0)

    @cached_property
    def _rows(self) -> dict[int, Rows]:
        """Rows of the passages of each block, -1 of one that has no place."""
        return {number: self._contents.rows_of(block["id"]) for number, block in self._blocks.items()}

    @cached_property
    def _row_languages(self) -> NDArray[np.int32]:
        """Number of the language of each row, `(R,)`."""
        found = np.full(len(self), -1, np.int32)
        for number, rows in self._rows.items():
            found[rows[rows >= 0]] = self._blocks[number]["language"][rows >= 0]
        if (found < 0).any():
            raise self._database.damaged("a block")
        return found

    @cached_property
    def _blocks(self) -> dict[int, Block]:
        """The blocks by number; the first damaged one is an error."""
        found = {}
        for number, block in self._database.blocks():
            if isinstance(block, RunFolderError):
                raise block
            found[number] = block
        return found

    @cached_property
    def quantised(self) -> Quantised:
        """The vectors of all rows; `RunFolderError` where some are damaged."""
        assert len(self._row_languages) == len(self)
        codes, steps = np.empty((len(self), self.kind.dimension), np.int8), np.empty(len(self), np.float32)
        for number, rows in self._rows.items():
            block = self._blocks[number]
            there: slice | Rows = np.flatnonzero(rows >= 0)
            target: slice | Rows = rows[there]
            if not len(rows[there]):
                continue
            if len(rows[there]) == len(rows) and (np.diff(rows) == 1).all():
                there, target = slice(None), slice(rows[0], rows[0] + len(rows))  # copies less than lists of rows do
            codes[target], steps[target] = self._codes(number, block)[there], block["step"][there]
        return Quantised(codes, steps)

    def _codes(self, number: int, block: Block) -> NDArray[np.int8]:
        return self._database.codes(number).reshape(len(block), self.kind.dimension)

    def _damaged_blocks(self) -> dict[int, RunFolderError]:
        """Return the blocks that are not what was written, or whose passages are not."""
        sound, found = self._database.sound_passages(), {}
        for number, block in self._database.blocks():
            try:
                if isinstance(block, RunFolderError):
                    raise block
                self._codes(number, block)
                live = block["id"][block["id"] >= 0]
                if missing := np.setdiff1d(live, sound, assume_unique=True).tolist():
                    raise self._database.damaged(f"passage {missing[0]}")
            except RunFolderError as error:
                found[number] = error
        return found

    # Writing.

    def known(self, keys: Keys) -> NDArray[np.bool_]:
        """Return which keys `(n, 16)` have a vector, `(n,)`."""
        return self._find(keys) >= 0

    @cached_property
    def places_by_file(self) -> dict[str, FilePlaces]:
        """The passages of each file as the index has them, by path."""
        blocks = np.concatenate([np.zeros(0, ROW), *self._written.values()])
        blocks = blocks[np.argsort(blocks["id"], kind="stable")]
        keys = blocks["key"][np.searchsorted(blocks["id"], self._contents.ids)]
        parts = np.split(np.arange(len(keys)), self._contents.ends[:-1])
        lines = self._contents.lines
        each = zip(self._contents.files, parts, strict=True)
        return {file.path: FilePlaces(file, keys[part], lines[part]) for file, part in each}

    def keep(self, own: Mapping[str, NDArray[Any]]) -> None:
        """Keep arrays that belong to the vectors, such as a map that all of them go through.

        Raises:
            RunFolderError: the index has vectors, which were made with what it keeps now; or it cannot be written.
        """
        if self._written:
            raise RunFolderError(f"{self.folder}: the index has vectors already; make another one in another folder")
        state = {**self.state, "arrays": True}
        with self._database.transaction():
            self._database.write_state(state)
            self._database.write_arrays(save(dict(own)))
        self.state, self.arrays = state, dict(own)

    def upsert(self, vectors: NDArray[np.float32], passages: Sequence[Passage], keys: Keys) -> int:
        """Keep passages with their vectors; return how many had none yet. When it returns, they stay in.

        Args:
            vectors: of the passages, `(n, D)`.
            passages: texts and languages; `finish` says where they stand, and from then on they are found.
            keys: hashes of what each vector depends on, the language included, `(n, 16)`.

        Raises:
            NonFiniteError: a vector has a number that is not finite.
            RunFolderError: the file cannot be written.
        """
        if vectors.shape != (len(passages), self.kind.dimension) or keys.shape != (len(passages), KEY_BYTES):
            raise ValueError(f"{len(passages)} passages with vectors {vectors.shape} and keys {keys.shape}")
        finite = np.isfinite(vectors).all(axis=1)
        if not finite.all():
            wrong = passages[int(np.argmin(finite))]
            raise NonFiniteError(f"{wrong.file}:{wrong.line}: the vector of the passage there is not finite")
        _, first = np.unique(_words(keys), return_index=True)
        once = np.zeros(len(keys), np.bool_)
        once[first] = True
        new = np.flatnonzero(once & ~self.known(keys))
        for start in range(0, len(new), ROWS):
            part = new[start : start + ROWS]
            self._add(vectors[part], [passages[i] for i in part.tolist()], keys[part])
        return len(new)

    def finish(self, files: Sequence[FilePlaces]) -> None:
        """Make these the documents of the index; all passages that stand in none of them are deleted.

        Args:
            files: all files of the documents, in the order in which hits of equal scores come.

        Raises:
            RunFolderError: it cannot be written; the index stays as it was.
        """
        keys = np.concatenate([np.zeros((0, KEY_BYTES), np.uint8), *(each.keys for each in files)])
        ids = self._find(keys)
        ends = np.cumsum([0, *(len(each.keys) for each in files)])
        if (ids < 0).any():
            place = int(np.argmin(ids))
            number = int(np.searchsorted(ends, place, side="right")) - 1
            line = files[number].lines[place - ends[number]]
            raise ValueError(f"{files[number].file.path}:{line}: no vector was kept for the passage there")
        content = hashlib.sha256(keys.tobytes())
        content.update(json.dumps([[*asdict(each.file).values(), each.lines.tolist()] for each in files]).encode())
        state = {**self.state, "files": len(files), "contents": content.hexdigest()}
        blocks, kept = dict(self._written), np.unique(ids)
        with self._database.transaction():
            self._database.write_files(
                (each.file, ids[start:end], each.lines.astype(np.int32))
                for each, start, end in zip(files, ends, ends[1:], strict=False)
            )
            self._remove(blocks, kept)
            self._repack(blocks)
            self._database.write_state(state)
        for name in _OF_CONTENTS:
            self.__dict__.pop(name, None)
        self.state, self._last = self._database.state(), None
        self._database.shrink()
        (self.folder / _OLD_FILE).unlink(missing_ok=True)
        for name in _OLD_FOLDERS:
            shutil.rmtree(self.folder / name, ignore_errors=True)

    def delete(self, keys: Keys) -> None:
        """Remove passages from all documents; keys `(n, 16)` that are not there are ignored."""
        gone, left = _words(keys), []
        for each in self.places_by_file.values():
            stay = ~np.isin(_words(each.keys), gone)
            left.append(FilePlaces(each.file, each.keys[stay], each.lines[stay]))
        self.finish(left)

    @cached_property
    def sound(self) -> bool:
        """Whether everything is as it was written; damaged blocks are dropped, with a warning for each.

        The passages of a damaged block are known no more, so that their files are read, and they are encoded, again.
        """
        found = self._damaged_blocks()
        if found:
            with self._database.transaction():
                for number, error in found.items():
                    log.warning("%s; the vectors of its passages are made again", error)
                    self._database.delete_block(number)
                ids = [block["id"] for block in self._blocks.values()]
                self._database.delete_other_passages(np.unique(np.concatenate([np.zeros(0, np.int64), *ids])))
        return not found

    @cached_property
    def _written(self) -> dict[int, Block]:
        """The blocks that a writer may rely on, by number."""
        assert self.sound is not None
        return self._blocks

    @cached_property
    def _known(self) -> tuple[NDArray[np.bytes_], Rows, dict[bytes, int]]:
        """Keys of the passages when the index was opened, ascending, their numbers; and what was added since."""
        blocks = np.concatenate([np.zeros(0, ROW), *self._written.values()])
        live = blocks[blocks["id"] >= 0]
        words = _words(np.ascontiguousarray(live["key"]))
        order = np.argsort(words)
        return words[order], live["id"][order], {}

    def _find(self, keys: Keys) -> Rows:
        """Return the number of the passage of each key, -1 of one that is not there."""
        words, ids, added = self._known
        wanted = _words(keys)
        found = np.full(len(keys), -1, np.int64)
        if len(words):
            place = np.minimum(np.searchsorted(words, wanted), len(words) - 1)
            found = np.where(words[place] == wanted, ids[place], found)
        if added:
            lacking = np.flatnonzero(found < 0)
            found[lacking] = [added.get(keys[i].tobytes(), -1) for i in lacking.tolist()]
        return found

    def _add(self, vectors: NDArray[np.float32], passages: Sequence[Passage], keys: Keys) -> None:
        tags = list(dict.fromkeys([*self.state["languages"], *(each.language for each in passages)]))
        state = {**self.state, "languages": tags}
        numbers = {tag: i for i, tag in enumerate(tags)}
        block = np.zeros(len(passages), ROW)
        codes, block["step"] = to_int8(vectors)
        block["id"], block["key"] = self._next_id + np.arange(len(block)), keys
        block["language"] = [numbers[each.language] for each in passages]
        blocks, ids = dict(self._written), block["id"].tolist()
        with self._database.transaction():
            self._database.write_state(state)
            self._write_block(blocks, block, codes)
            self._database.write_passages((i, each.language, each.text) for i, each in zip(ids, passages, strict=True))
        self.state = state
        self._written.update(blocks)
        self._next_id += len(block)
        self._known[2].update(zip((key.tobytes() for key in keys), ids, strict=True))

    @cached_property
    def _next_id(self) -> int:
        # Also above those of a damaged block that was dropped, which places have still.
        numbers = [self._contents.ids, *(block["id"] for block in self._written.values())]
        return 1 + max(int(part.max(initial=-1)) for part in numbers)

    def _remove(self, blocks: dict[int, Block], kept: Rows) -> None:
        """Delete all passages but some, whose numbers are given in ascending order."""
        for number, block in blocks.items():
            gone = (block["id"] >= 0) & ~_is_in(block["id"], kept)
            if gone.any():
                self._database.delete_passages(block["id"][gone].tolist())
                blocks[number] = block = block.copy()
                block["id"][gone] = -1
                self._database.write_block(number, block)

    def _repack(self, blocks: dict[int, Block]) -> None:
        """Write anew the blocks with many deleted passages, and small ones where there are many."""
        live = {number: int((block["id"] >= 0).sum()) for number, block in blocks.items()}
        small = {number for number, count in live.items() if count < _SMALL}
        chosen = {number for number, count in live.items() if count < (1 - _DEAD) * len(blocks[number])}
        waiting, codes = np.zeros(0, ROW), np.zeros((0, self.kind.dimension), np.int8)
        for number in sorted(chosen | small if len(small) > _SMALL_BLOCKS else chosen):
            block = blocks.pop(number)
            there = block["id"] >= 0
            waiting = np.concatenate([waiting, block[there]])
            codes = np.concatenate([codes, self._codes(number, block)[there]])
            self._database.delete_block(number)
            if len(waiting) >= ROWS:
                self._write_block(blocks, waiting[:ROWS], codes[:ROWS])
                waiting, codes = waiting[ROWS:], codes[ROWS:]
        if len(waiting):
            self._write_block(blocks, waiting, codes)

    def _write_block(self, blocks: dict[int, Block], block: Block, codes: NDArray[np.int8]) -> None:
        number = max(blocks, default=-1) + 1
        self._database.write_block(number, block)
        self._database.write_codes(number, codes)
        blocks[number] = block


_OF_CONTENTS = (
    "files", "languages", "quantised", "_contents", "_rows", "_row_languages", "_blocks", "_written", "_known",
    "_next_id", "places_by_file",
)  # fmt: skip
"""Cached properties of a store that change with its documents."""


def _require_index(folder: Path) -> None:
    if (folder / FILE).exists():
        return
    if (folder / _OLD_FILE).exists():
        raise RunFolderError(
            f"{folder}: the index has an earlier format; make it anew from its documents with metasearch index DOCS "
            f"-o {folder}"
        )
    what = f"is no index: it has no {FILE}" if folder.exists() else "does not exist"
    raise RunFolderError(f"{folder} {what}; make one with metasearch index DOCS -o {folder}")


def _state(database: Database) -> dict[str, Any]:
    """Return the facts of an index; `RunFolderError` where another release wrote them."""
    found = database.state()
    if found and (found.get("format"), found.get("schema")) != (FORMAT, SCHEMA):
        raise RunFolderError(
            f"{database.path}: it has schema {found.get('schema')}, and this release of metasearch reads schema "
            f"{SCHEMA}; take the release that made it, or make the index anew in another folder"
        )
    return found


def _words(keys: Keys) -> NDArray[np.bytes_]:
    """Return keys as one word each, which can be sorted and compared, `(n,)`."""
    words: NDArray[np.bytes_] = np.ascontiguousarray(keys).view(f"S{KEY_BYTES}").reshape(len(keys))
    return words


def _is_in(ids: Rows, among: Rows) -> NDArray[np.bool_]:
    """Return which of some numbers are among others, which ascend, `(n,)`."""
    if not len(among):
        return np.zeros(len(ids), np.bool_)
    return np.asarray(among[np.minimum(np.searchsorted(among, ids), len(among) - 1)] == ids)
