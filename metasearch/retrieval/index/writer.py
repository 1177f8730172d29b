"""Writes an index: vectors in segments as they come, then which of them the documents have, and where.

What a call of `add` or `flush` said to be in stays in, however the process ends: the next writer knows it by its keys.
What readers see changes in one moment, when `finish` puts a new manifest in the place of the old one.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metasearch.data.documents.passage import Passage
from metasearch.data.formats.arrays import ArrayReadError, write
from metasearch.errors import NonFiniteError, RunFolderError
from metasearch.io import NEW, held
from metasearch.retrieval.index import arrays
from metasearch.retrieval.index.compact import MOST_ROWS, compacted, merged, parts_of
from metasearch.retrieval.index.locations import FilePlaces, Locations, SourceFile, located
from metasearch.retrieval.index.manifest import FILE, Kind, Manifest
from metasearch.retrieval.index.segment import KEY_BYTES, Keys, Rows, as_words, sound

ROWS = 4096
"""Vectors of a segment as they are added: so many at most are lost when a process is killed."""
_FRESH = 64
"""Segments that are added before they become one."""
_OURS = {FILE, f"{FILE}{NEW}", ".lock", arrays.SEGMENTS, arrays.LOCATIONS, arrays.OWN}

log = logging.getLogger(__name__)


@contextmanager
def writing(folder: Path, kind: Kind, rows: int = ROWS) -> Iterator["Writer"]:
    """Give the writer of an index, new or there already, that no other process writes meanwhile.

    What it has not flushed at the end is left out.

    Args:
        folder: of the index.
        kind: what it is of.
        rows: vectors of a segment as they are added.

    Raises:
        RunFolderError: another process writes it, its manifest is damaged, or the folder holds something else.
        EncoderError: it has vectors of another encoder.
        ConfigError: it was made with other settings.
    """
    if folder.exists() and not (folder / FILE).exists():
        others = sorted(path.name for path in folder.iterdir() if path.name not in _OURS) if folder.is_dir() else [""]
        if others:
            raise RunFolderError(f"{folder} exists and is no index; choose another folder with -o")
    with held(folder, f"{folder}: another process writes this index; wait for it to end"):
        yield Writer(folder, kind, rows)


def compact(folder: Path) -> None:
    """Write anew what has many dead rows or is small, where that is worth it, and remove what no manifest names.

    Raises:
        RunFolderError: it is no index, another process writes it, or it is damaged.
    """
    with writing(folder, Manifest.read(folder).kind) as writer:
        writer.finish([writer.places(path) for path in writer.files])


class Writer:
    """Writes an index of which it holds the lock; `writing` makes one.

    Args:
        folder: of the index.
        kind: what it is of.
        rows: vectors of a segment as they are added.
    """

    def __init__(self, folder: Path, kind: Kind, rows: int = ROWS) -> None:
        self.folder = folder
        self.rows = rows
        self.manifest = Manifest.read(folder) if (folder / FILE).exists() else Manifest(kind)
        self.manifest.kind.require_encoder(folder, kind.fingerprint, kind.dimension, kind.encoder)
        self.manifest.kind.require_settings(folder, kind)
        self.arrays: Mapping[str, NDArray[Any]] = arrays.read_own(folder, self.manifest.arrays)
        """The caller's own arrays, such as a map of the vectors."""
        self._waiting: list[Rows] = []
        self._waiting_keys: set[bytes] = set()
        dimension = self.manifest.kind.dimension
        self._segments = [sound(folder, part.stored, part.rows, dimension) for part in self.manifest.segments]
        self._settled = 0  # what follows is in no list of locations, and may be merged
        self.before: dict[str, SourceFile] = {}
        """The files of the documents when it was opened, with damaged segments, too; none where their list is."""
        self._locations = self._located()
        self._clean()

    @cached_property
    def files(self) -> dict[str, SourceFile]:
        """The files of the documents as the index has them, by path; none where a part of it was damaged."""
        return {file.path: file for file in self._locations.files}

    def places(self, path: str) -> FilePlaces:
        """Return the passages of a file as the index has them; `KeyError` for a path that is not in `files`."""
        self.files[path]
        number = self._file_numbers[path]
        part = self._locations.part(number)
        segments, rows = self._locations.segments[part], self._locations.rows[part]
        keys = np.zeros((len(rows), KEY_BYTES), np.uint8)
        for i, segment in enumerate(self._segments):
            if segment is not None and (own := segments == i).any():
                keys[own] = segment.arrays["keys"][rows[own]]
        return FilePlaces(self._locations.files[number], keys, self._locations.lines[part])

    def known(self, keys: Keys) -> NDArray[np.bool_]:
        """Return which keys `(n, 16)` have a vector that was added, by this writer or before, `(n,)`."""
        waiting = np.array([key.tobytes() in self._waiting_keys for key in keys], np.bool_)
        return (self._find(keys)[0] >= 0) | waiting

    def keep(self, own: Mapping[str, NDArray[Any]]) -> None:
        """Keep arrays of the caller with the index, such as a map of the vectors.

        Raises:
            RunFolderError: the index has vectors, which were made with what it keeps now; or it cannot be written.
        """
        if self.manifest.segments or self._waiting:
            raise RunFolderError(f"{self.folder}: the index has vectors already; make another one in another folder")
        self._commit(replace(self.manifest, arrays=write(self.folder / arrays.OWN, own)))
        self.arrays = dict(own)

    def add(self, vectors: NDArray[np.float32], passages: Sequence[Passage], keys: Keys) -> int:
        """Add passages with their vectors; return how many had none yet.

        Each time that there are `rows` of them they are written; the others wait for `flush`.

        Args:
            vectors: of the passages, `(n, D)`.
            passages: what is found; where it is says `finish`.
            keys: hashes of what each vector depends on, the language included, `(n, 16)`.

        Raises:
            NonFiniteError: a vector has a number that is not finite.
            RunFolderError: a segment cannot be written.
        """
        if vectors.shape != (len(passages), self.manifest.kind.dimension) or keys.shape != (len(passages), KEY_BYTES):
            raise ValueError(f"{len(passages)} passages with vectors {vectors.shape} and keys {keys.shape}")
        finite = np.isfinite(vectors).all(axis=1)
        if not finite.all():
            wrong = passages[int(np.argmin(finite))]
            raise NonFiniteError(f"{wrong.file}:{wrong.line}: the vector of the passage there is not finite")
        _, first = np.unique(as_words(keys), return_index=True)
        once = np.zeros(len(keys), np.bool_)
        once[first] = True
        new = np.flatnonzero(once & ~self.known(keys)).tolist()
        texts, languages = [passages[i].text for i in new], [passages[i].language for i in new]
        self._waiting.append(Rows.of(vectors[new], keys[new], texts, languages))
        self._waiting_keys.update(key.tobytes() for key in keys[new])
        if len(self._waiting_keys) >= self.rows:
            self.flush()
        return len(new)

    def flush(self) -> None:
        """Write what was added: when it returns, that stays in; `RunFolderError` where it cannot be written."""
        if not self._waiting_keys:
            return
        waiting = Rows.joined(self._waiting)
        for start in range(0, len(waiting), self.rows):
            segment = waiting.part(start, start + self.rows).save(self.folder)
            self._commit(replace(self.manifest, segments=(*self.manifest.segments, *parts_of([segment]))))
            self._segments.append(segment)
            if len(self._segments) - self._settled >= _FRESH:
                self._merge()
        self._waiting, self._waiting_keys = [], set()

    def _merge(self) -> None:
        """Make few segments of those that were added: each is a file that stays open, of which a process has few."""
        fresh = merged(self.folder, filter(None, self._segments[self._settled :]))
        parts = (*self.manifest.segments[: self._settled], *parts_of(fresh))
        self._commit(replace(self.manifest, segments=parts))
        self._segments[self._settled :] = fresh
        self._settled += sum(len(segment) == MOST_ROWS for segment in fresh)
        self._clean()

    def finish(self, files: Iterable[FilePlaces]) -> None:
        """Make these the documents of the index: passages of other files are found no more.

        Args:
            files: all files of the documents, in the order in which hits of equal scores come.

        Raises:
            RunFolderError: it cannot be written; the index stays as it was.
        """
        self.flush()
        locations = located((each.file, *self._require(each), each.lines) for each in files)
        segments, locations = compacted(self.folder, self._segments, locations)
        stored = locations.save(self.folder)
        self._commit(replace(self.manifest, segments=parts_of(segments), locations=stored))
        self._segments, self._locations, self._settled = list(segments), locations, len(segments)
        for name in ("files", "_file_numbers"):
            self.__dict__.pop(name, None)
        self._clean()

    @cached_property
    def _file_numbers(self) -> dict[str, int]:
        return {file.path: number for number, file in enumerate(self._locations.files)}

    def _require(self, each: FilePlaces) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the segment and row of each passage of a file; `ValueError` where one was never added."""
        segments, rows = self._find(each.keys)
        if (segments < 0).any():
            line = each.lines[int(np.argmin(segments))]
            raise ValueError(f"{each.file.path}:{line}: no vector was added for the passage there")
        return segments, rows

    def _find(self, keys: Keys) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the segment and row of each key, -1 of one that is not there."""
        found, rows = np.full(len(keys), -1, np.int32), np.full(len(keys), -1, np.int32)
        for number, segment in enumerate(self._segments):
            if segment is None:
                continue
            own = segment.find(keys)
            found, rows = np.where(own >= 0, number, found), np.where(own >= 0, own, rows)
        return found, rows

    def _commit(self, manifest: Manifest) -> None:
        manifest.write(self.folder)
        self.manifest = manifest

    def _located(self) -> Locations:
        """Return the locations; none where they, or segments, are damaged, so that all files are read again."""
        if self.manifest.locations is None:
            return Locations.none()
        try:
            found = Locations.open(self.folder, self.manifest.locations, self.manifest.sizes)
        except ArrayReadError:
            raise
        except RunFolderError as error:
            log.warning("%s; all files are read again, and documents that are not named now leave the index", error)
            self._settled = len(self._segments)
            return Locations.none()
        self._settled = int(found.segments.max(initial=-1)) + 1
        self.before = {file.path: file for file in found.files}
        return Locations.none() if None in self._segments else found

    def _clean(self) -> None:
        """Remove the files that the manifest does not name, such as those that a killed process left."""
        arrays.clean(self.folder, {stored.name for _, stored in self.manifest.files})
