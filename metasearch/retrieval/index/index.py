"""An index as its reader has it: the best passages for vectors of queries.

What a reader has opened stays as it was: a writer makes new files and a new manifest, and a file that is removed is
there for whoever has it open.
"""

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metasearch.data.documents.passage import Passage
from metasearch.errors import ConfigError, NonFiniteError, RunFolderError, nearest
from metasearch.retrieval.index import arrays
from metasearch.retrieval.index.contents import Contents
from metasearch.retrieval.index.hit import Hit
from metasearch.retrieval.index.locations import Locations
from metasearch.retrieval.index.manifest import Manifest
from metasearch.retrieval.index.quantise import Queries
from metasearch.retrieval.index.scan import Rows, Scores, all_scores, processors, search_int8
from metasearch.retrieval.index.segment import Segment

_TRIES = 5


class Index:
    """Passages and their vectors, opened to be read; several threads may search at once.

    Rows are numbered from 0 in the order of the documents. A row is a text in a language: what several places of the
    documents have is one row, at the first of them.

    Args:
        folder: of the index.
        manifest: what belongs to it.
        checked: whether the segments are compared with their hashes before they are read for the first time.
        threads: that search at once; by default as many as this process has processors.

    Raises:
        RunFolderError: it was never finished, or a file is missing or damaged.
    """

    def __init__(self, folder: Path, manifest: Manifest, checked: bool = True, threads: int | None = None) -> None:
        if manifest.locations is None:
            raise RunFolderError(
                f"{folder}: the index was never finished; call metasearch index with its documents again"
            )
        self.folder = folder
        self.manifest = manifest
        self.kind = manifest.kind
        self.threads = threads or processors()
        segments = [Segment.open(folder, part.stored, part.rows, self.kind.dimension) for part in manifest.segments]
        self._contents = Contents(segments, Locations.open(folder, manifest.locations, manifest.sizes))
        self.arrays: Mapping[str, NDArray[Any]] = arrays.read_own(folder, manifest.arrays)
        """The caller's own arrays, such as a map of the vectors."""
        self._unchecked = checked
        self._checking = Lock()

    @classmethod
    def open(cls, folder: Path, *, checked: bool = True, threads: int | None = None) -> "Index":
        """Open an index. Its manifest and locations are checked, and of the segments their sizes and headers.

        Args:
            folder: of the index.
            checked: whether all segments are compared with their hashes when the first of them is read, which reads
                all of them once; without it a damaged segment may give wrong results.
            threads: that search at once; by default as many as this process has processors.

        Raises:
            RunFolderError: it is no index, never finished, damaged, or of another release's schema.
        """
        manifest = Manifest.read(folder)
        for _ in range(_TRIES):
            try:
                return cls(folder, manifest, checked, threads)
            except RunFolderError:
                # A writer may have removed what this manifest names, after it wrote the next one.
                now = Manifest.read(folder)
                if now == manifest:
                    raise
                manifest = now
        return cls(folder, manifest, checked, threads)

    def __len__(self) -> int:
        """Return how many rows there are."""
        return len(self._contents)

    @property
    def languages(self) -> dict[str, int]:
        """How many rows each language has, most first."""
        self._check()
        return self._contents.languages

    @property
    def contents_name(self) -> str:
        """Hash of all rows and places: of equal ones texts and their order are the same."""
        stored = [part.stored for part in self.manifest.segments] + [self.manifest.locations]
        return hashlib.sha256("\n".join(each.name for each in stored if each).encode()).hexdigest()

    @property
    def files(self) -> int:
        """How many files the documents are."""
        return len(self._contents.locations.files)

    @property
    def places(self) -> int:
        """How many places the documents have, each with the text of a row."""
        return len(self._contents.locations)

    def require(self, fingerprint: str, dimension: int, name: str) -> None:
        """Raise `EncoderError` where vectors of queries would be those of another encoder than the index's.

        Args:
            fingerprint: of the encoder.
            dimension: of its vectors.
            name: of it, for the message.
        """
        self.kind.require_encoder(self.folder, fingerprint, dimension, name)

    def verify(self) -> None:
        """Compare every file with its hash; `RunFolderError` names all that are damaged."""
        with ThreadPoolExecutor(self.threads) as workers:
            found = [*workers.map(lambda each: arrays.problem(self.folder / each[0], each[1]), self.manifest.files)]
        now = Manifest.read(self.folder)
        if any(found) and now != self.manifest:  # a writer has finished meanwhile, and removed files of before
            Index.open(self.folder).verify()
        elif any(found):
            raise RunFolderError("; ".join(filter(None, found)))

    def search(
        self, vectors: NDArray[np.float32], top: int = 10, languages: Collection[str] = ()
    ) -> tuple[Rows, Scores]:
        """Return the best rows and their scores, best first, `(q, K)` each; K is `top`, or fewer where there are fewer.

        Exact, but for the rounding of vectors to eight bits. Of equal scores the lower row comes first.

        Args:
            vectors: of queries, `(q, D)`.
            top: how many rows are wanted for each.
            languages: of the rows to search; by default all.

        Raises:
            ConfigError: no row is in one of the languages, or `top` is below 1.
            NonFiniteError: a vector is not finite.
            RunFolderError: a segment is damaged.
        """
        return self.search_each(vectors, top, [languages])[0]

    def search_each(
        self, vectors: NDArray[np.float32], top: int, groups: Sequence[Collection[str]]
    ) -> list[tuple[Rows, Scores]]:
        """Return what `search` finds in each of some groups of languages; `ValueError` where one is in two."""
        self._require_vectors(vectors)
        if top < 1:
            raise ConfigError(f"top {top}: expected 1 or more")
        for languages in groups:
            self._require_languages(languages)
        there = [sum(self.languages[tag] for tag in set(languages) or self.languages) for languages in groups]
        wanted = [min(top, rows) for rows in there]
        if not any(wanted) or not len(vectors):
            return [(np.zeros((len(vectors), w), np.int64), np.zeros((len(vectors), w), np.float32)) for w in wanted]
        queries, searched = Queries.of(vectors), self._contents.searched(groups)
        found = search_int8(searched, queries, wanted, self.threads)
        if not all(best.whole for best in found):
            raise RunFolderError(
                f"{self.folder}: scores are not finite: a segment is damaged; Index.verify() says which"
            )
        return [(np.stack(best.rows), np.stack(best.scores)) for best in found]

    def scores(self, vectors: NDArray[np.float32]) -> Scores:
        """Return the score of every row for queries `(q, D)`, `(R, q)`, by eight bits; errors are those of `search`."""
        self._require_vectors(vectors)
        self._check()
        return all_scores(self._contents.searched(), Queries.of(vectors), len(self))

    def vectors(self) -> NDArray[np.float32]:
        """Return the vectors of all rows as they are stored, `(R, D)`; `RunFolderError` where a segment is damaged."""
        self._check()
        found = np.empty((len(self), self.kind.dimension), np.float32)
        for part in self._contents.searched():
            there = part.rows >= 0
            found[part.rows[there]] = part.codes[there] * part.steps[there, None]
        return found

    def hits(self, rows: Sequence[int] | Rows, scores: Sequence[float] | Scores) -> list[Hit]:
        """Return rows `(K,)` and their scores `(K,)` as hits; `RunFolderError` where a segment is damaged."""
        places = self._contents.places
        return [
            Hit(float(score), self.passage(int(row)), int(places[row])) for row, score in zip(rows, scores, strict=True)
        ]

    def passage(self, row: int) -> Passage:
        """Return the passage of a row at its first place; `RunFolderError` where a segment is damaged."""
        self._check()
        return self._contents.passage(row)

    def all_places(self, row: int) -> list[Passage]:
        """Return the passage of a row at each of its places; `RunFolderError` where a segment is damaged."""
        self._check()
        return self._contents.all_places(row)

    def texts(self) -> Iterator[str]:
        """Yield the texts of all rows, in their order; `RunFolderError` where a segment is damaged."""
        self._check()
        yield from map(self._contents.text, range(len(self)))

    def rows_in(self, languages: Collection[str]) -> NDArray[np.bool_]:
        """Return which rows are in some languages, `(R,)`; `ConfigError` for a language that no row is in."""
        self._require_languages(languages)
        found = np.zeros(len(self), np.bool_)
        for part in self._contents.searched([languages]):
            found[part.rows[part.groups >= 0]] = True
        return found

    def _require_vectors(self, vectors: NDArray[np.float32]) -> None:
        if vectors.ndim != 2 or vectors.shape[1] != self.kind.dimension:
            raise ValueError(f"expected vectors (q, {self.kind.dimension}), got {vectors.shape}")
        if not np.isfinite(vectors).all():
            raise NonFiniteError("the vector of a query is not finite")

    def _require_languages(self, languages: Collection[str]) -> None:
        for language in sorted(set(languages) - self.languages.keys()):
            raise ConfigError(f"no passage is in language '{language}'.{nearest(language, self.languages)}")

    def _check(self) -> None:
        """Compare all segments with their hashes, once."""
        with self._checking:
            if self._unchecked:
                with ThreadPoolExecutor(self.threads) as workers:
                    list(workers.map(Segment.check, self._contents.segments))
                self._unchecked = False
