"""Writes an index in a folder.

Passages stay once `upsert` returns, however the process ends: the next writer finds them by their keys. Readers see the
new documents all at once, after `finish`.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from metasearch.errors import NonFiniteError, RunFolderError
from metasearch.io import held, taken
from metasearch.search.documents.languages import path_without_language
from metasearch.search.documents.pages import Blocks
from metasearch.search.documents.passage import Passage
from metasearch.search.index.base import (
    KEY_BYTES,
    FilePlaces,
    Keys,
    Kind,
    Rows,
    SourceFile,
    fields_to_json,
    find_sorted,
    key_words,
)
from metasearch.search.index.database import (
    ARRAYS,
    FILE,
    INNER,
    ROW,
    Block,
    Database,
    exists,
)
from metasearch.search.index.exact_search import Quantised, to_int8
from metasearch.search.index.local import LocalStore
from metasearch.search.index.plan import SearchPlan

ROWS = 4096
"""Passages of a block at most."""
_SMALL, _SMALL_BLOCKS = 512, 8
"""Blocks with fewer than `_SMALL` passages are joined if there are more than `_SMALL_BLOCKS`."""
_DEAD = 0.25
"""Share of deleted passages above which a block is rewritten."""


@contextmanager
def writing(folder: Path, kind: Kind) -> Iterator["IndexWriter"]:
    """Open a new or existing index for writing, locked against other processes.

    Raises:
        RunFolderError: another process writes it, it is damaged, or the folder holds something else.
        EncoderError: it has vectors of another encoder.
        ConfigError: it was made with other settings.
    """
    if not exists(folder) and taken(folder, FILE):
        its = f". Its index is {folder / INNER}" if exists(folder / INNER) else ""
        raise RunFolderError(f"{folder} exists and is no index; choose another folder with -o{its}")
    with held(folder, f"{folder}: another process writes this index; wait for it to end"):
        database = Database(folder, write=True)
        try:
            yield IndexWriter(folder, database, kind)
        finally:
            database.close()


class IndexWriter(LocalStore):
    """A store that can be written; `writing` gives it."""

    def __init__(self, folder: Path, database: Database, kind: Kind) -> None:
        state = database.state()
        if not state:
            state = database.new_state(asdict(kind))
        before = Kind(**state["kind"])
        before.require_same(folder, kind)
        self.outdated = before.settings.get("detect") != kind.settings.get("detect")
        """Whether languages were detected otherwise, so that unchanged documents are read again."""
        super().__init__(folder, database, {**state, "kind": asdict(before.with_free(kind))})

    def known(self, keys: Keys) -> NDArray[np.bool_]:
        """Return which keys `(n, 16)` have a vector, `(n,)`."""
        return self._find(keys) >= 0

    @cached_property
    def places_by_file(self) -> dict[str, FilePlaces]:
        """The index's passages by file path."""
        keys = self.row_keys()[self._contents.rows_of(self._contents.ids)]
        lines = self._contents.lines
        pages = [self._page(number) for number in range(len(self._contents.files))]
        return {
            file.path: FilePlaces(file, keys[part], lines[part], *page)
            for (file, part), page in zip(self._contents.parts(), pages, strict=True)
        }

    def rename(self, rename: Callable[[str], str]) -> None:
        """Give the documents of before other names, which `finish` writes; before `files` is used."""
        files = [_renamed(file, rename(file.path)) for file in self._contents.files]
        self._contents = replace(self._contents, files=files)
        self.__dict__.pop("files", None)

    def change(self, facts: Mapping[str, Any], rows: Mapping[int, bytes] = MappingProxyType({})) -> None:
        """Change facts that belong to no vector, and write rows of the table of state, all at once."""
        with self._database.transaction():
            self._database.write("state", ((number, [value]) for number, value in rows.items()))
            self._database.write_state({**self.state, **facts})
        self.state = {**self.state, **facts}

    def write_plan(self, plan: SearchPlan) -> None:
        """Search the index by another plan, of the same projection and ranking."""
        self.change({"arrays": True}, {ARRAYS: save(plan.record)})
        self.plan = plan

    def _page(self, number: int) -> tuple[str, Blocks | None]:
        language, blocks, headings = self._database.row("page", number, "the list of documents")
        page = Blocks(language.decode(), np.frombuffer(blocks, np.uint64)) if blocks else None
        return headings.decode(), page

    @property
    def _all_blocks(self) -> Block:
        return np.concatenate([np.zeros(0, ROW), *self._blocks.values()])

    def sample(self, files: Sequence[FilePlaces], most: int) -> dict[str, Rows]:
        """Return language → where the stored vectors of its passages in some documents are, at most so many.

        They are those with the first keys, in their order. So the sample depends on the documents alone, and not on the
        order in which passages came.
        """
        blocks = self._all_blocks
        words = key_words(blocks["key"])
        live = (blocks["id"] >= 0) & np.isin(words, key_words(np.concatenate([each.keys for each in files])))
        order = np.flatnonzero(live)[np.argsort(words[live])]
        tags = np.array(self.state["languages"])[blocks["language"][order]]
        return {str(tag): order[tags == tag][:most] for tag in np.unique(tags)}

    def texts_at(self, places: Rows) -> list[str]:
        """Return the texts of passages at places of `sample`."""
        read = self._database.rows_at("passage", self._all_blocks["id"][places].tolist(), "passage")
        return [text.decode() for _, text, _ in read]

    def stored_of(self, keys: Keys) -> NDArray[np.float32]:
        """Return the stored vectors of passages in the index by key, `(n, D)`."""
        blocks = self._all_blocks
        live = np.flatnonzero(blocks["id"] >= 0)
        words = key_words(blocks["key"][live])
        order = np.argsort(words)
        return self.stored_at(find_sorted(words[order], live[order], key_words(keys)))

    def stored_at(self, places: Rows) -> NDArray[np.float32]:
        """Return the stored vectors at places of `sample`, `(n, D)`."""
        found, start = np.empty((len(places), self.kind.dimension), np.float32), 0
        for number, block in self._blocks.items():
            inside = np.flatnonzero((places >= start) & (places < start + len(block)))
            if len(inside):
                found[inside] = Quantised(self._codes(number, block), block["step"]).take(places[inside] - start)
            start += len(block)
        return found

    def upsert(self, vectors: NDArray[np.float32], passages: Sequence[Passage], keys: Keys) -> int:
        """Keep passages with their vectors; return how many had none yet. When it returns, they stay in.

        Vectors have the shape `(n, D)`; keys `(n, 16)` are hashes of text, language and fields. `finish` says where
        passages stand, and from then on they are found.

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
        _, first = np.unique(key_words(keys), return_index=True)
        new = np.sort(first[~self.known(keys[first])])
        for start in range(0, len(new), ROWS):
            part = new[start : start + ROWS]
            self._add(vectors[part], [passages[i] for i in part.tolist()], keys[part])
        return len(new)

    def finish(
        self,
        files: Sequence[FilePlaces],
        plan: SearchPlan | None = None,
        unknown: Mapping[str, str] | None = None,
    ) -> LocalStore:
        """Set the index's documents, in the order in which hits of equal scores come; delete all other passages.

        `plan` is how they are searched, and `unknown` languages that the encoder hardly knows, with the
        reasons; by default those of before. Return the index as readers see it from now on; nothing more can be
        written. `RunFolderError` if it cannot be written; the index stays as it was.
        """
        keys = np.concatenate([np.zeros((0, KEY_BYTES), np.uint8), *(each.keys for each in files)])
        ids = self._find(keys)
        ends = np.cumsum([len(each.keys) for each in files])[:-1]
        if (ids < 0).any():
            raise ValueError("a passage has no vector; call upsert first")
        content = hashlib.sha256(keys.tobytes())
        facts = [[*vars(each.file).values(), each.lines.tolist(), each.headings] for each in files]
        content.update(json.dumps(facts).encode())
        own = (plan or self.plan).record
        state = {**self.state, "files": len(files), "contents": content.hexdigest(), "arrays": bool(own)}
        state |= {} if unknown is None else {"unknown": dict(unknown)}
        blocks = dict(self._blocks)
        with self._database.transaction():
            for table in ("file", "page"):
                self._database.delete(table, range(len(files), self.state["files"] or 0))
            self._database.write("file", enumerate(map(_file_row, files, np.split(ids, ends))))
            self._database.write("page", enumerate(map(_page_row, files)))
            self._compact(blocks, ids)
            self._database.write_state(state)
            if plan is not None:
                self._database.delete("state", [ARRAYS])
                self._database.write("state", [(ARRAYS, [save(own)])] if own else [])
        self._database.shrink()
        return LocalStore(self.folder, self._database, state)

    @cached_property
    def _known(self) -> tuple[NDArray[np.bytes_], Rows, dict[bytes, int]]:
        """Keys of the passages when the index was opened, ascending; their numbers; and the numbers of later keys."""
        blocks = self._all_blocks
        live = blocks[blocks["id"] >= 0]
        words = key_words(live["key"])
        order = np.argsort(words)
        return words[order], live["id"][order], {}

    def _find(self, keys: Keys) -> Rows:
        """Return each key's passage number, or -1."""
        words, numbers, later = self._known
        found = find_sorted(words, numbers, key_words(keys))
        lacking = np.flatnonzero(found < 0).tolist()
        found[lacking] = [later.get(keys[i].tobytes(), -1) for i in lacking]
        return found

    def _add(self, vectors: NDArray[np.float32], passages: Sequence[Passage], keys: Keys) -> None:
        tags = list(dict.fromkeys([*self.state["languages"], *(each.language for each in passages)]))
        state = {**self.state, "languages": tags}
        numbers = {tag: i for i, tag in enumerate(tags)}
        block = np.zeros(len(passages), ROW)
        codes, block["step"] = to_int8(vectors)
        block["id"], block["key"] = self._next_id + np.arange(len(block)), keys
        block["language"] = [numbers[each.language] for each in passages]
        blocks, ids = dict(self._blocks), block["id"].tolist()
        with self._database.transaction():
            self._database.write_state(state)
            self._write_block(blocks, block, codes)
            texts = (list[str | bytes]([each.language, each.text, fields_to_json(each.fields)]) for each in passages)
            self._database.write("passage", zip(ids, texts, strict=True))
        self.state = state
        self._blocks.update(blocks)
        self._next_id += len(block)
        self._known[2].update(zip((key.tobytes() for key in keys), ids, strict=True))

    @cached_property
    def _next_id(self) -> int:
        return 1 + max((int(block["id"].max(initial=-1)) for block in self._blocks.values()), default=-1)

    def _compact(self, blocks: dict[int, Block], kept: Rows) -> None:
        """Delete all passages but those with some numbers; join small blocks, and blocks with many deleted passages."""
        stays = np.zeros(self._next_id, np.bool_)
        stays[kept] = True
        live = {number: (block["id"] >= 0) & stays[block["id"]] for number, block in blocks.items()}
        small = [number for number, there in live.items() if there.sum() < _SMALL]
        rewritten = set(small if len(small) > _SMALL_BLOCKS else ())
        waiting, codes = np.zeros(0, ROW), np.zeros((0, self.kind.dimension), np.int8)
        for number, there in live.items():
            block = blocks[number]
            gone = block["id"][~there & (block["id"] >= 0)].tolist()
            self._database.delete("passage", gone)
            if number in rewritten or there.sum() < (1 - _DEAD) * len(block):
                waiting = np.concatenate([waiting, block[there]])
                codes = np.concatenate([codes, self._codes(number, block)[there]])
                del blocks[number]
                self._database.delete("block", [number])
                self._database.delete("codes", [number])
            elif gone:
                blocks[number] = block = block.copy()
                block["id"][~there] = -1
                self._database.write("block", [(number, [block.tobytes()])])
            if len(waiting) >= ROWS:
                self._write_block(blocks, waiting[:ROWS], codes[:ROWS])
                waiting, codes = waiting[ROWS:], codes[ROWS:]
        if len(waiting):
            self._write_block(blocks, waiting, codes)

    def _write_block(self, blocks: dict[int, Block], block: Block, codes: NDArray[np.int8]) -> None:
        number = max(blocks, default=-1) + 1
        self._database.write("block", [(number, [block.tobytes()])])
        self._database.write("codes", [(number, [codes.tobytes()])])
        blocks[number] = block


def _renamed(file: SourceFile, path: str) -> SourceFile:
    """Return a file with another path; the group of a path changes with it."""
    by_path = file.group == path_without_language(file.path)
    return replace(file, path=path, group=path_without_language(path) if by_path else file.group)


def _page_row(each: FilePlaces) -> list[str | bytes]:
    page = each.blocks
    return [page.language, page.hashes.tobytes(), each.headings] if page else ["", b"", each.headings]


def _file_row(each: FilePlaces, ids: Rows) -> list[str | bytes]:
    facts = json.dumps(vars(each.file), ensure_ascii=False)
    return [facts, ids.tobytes(), each.lines.astype(np.int32).tobytes()]
