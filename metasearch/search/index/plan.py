"""How an index is searched, as one value: what vectors go through, and how passages become ranked pages.

It is estimated in `metasearch.search.query.estimate`, stored as one record beside the vectors, and taken by all
that searches: `search`, `serve`, `adapt`, `tune`, `export`, and copies in databases. Stored vectors do not depend on
it, so that a new plan needs no text to be encoded again.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from metasearch.encoders.maps import Exact, Projection
from metasearch.search.index.labelled_queries import LabelledQueries
from metasearch.search.index.maps import mapped, shrunk_centre
from metasearch.search.index.page_scores import spread_of
from metasearch.search.settings import RankingSettings

RANKED_BY_DEFAULT = RankingSettings(hybrid=False, expand=False, balance=False, by="group")


Arrays = Mapping[str, NDArray[Any]]

_PROJECTION = ("centre", "directions", "languages", "texts")
"""Keys of the projection in a record."""
_SPACE = (*_PROJECTION, "translations", "translated")
"""Keys of what an adapter is learned after."""


@dataclass(frozen=True, eq=False)
class Adapter:
    """A query adapter: its name, the matrix `(D, D)` for the vectors of queries, and labelled queries, if any."""

    name: str
    matrix: NDArray[np.float32]
    labelled: LabelledQueries | None = None

    @cached_property
    def maps(self) -> bool:
        """Whether the matrix changes queries; the identity does not, to the last digit."""
        return not np.array_equal(self.matrix, np.eye(len(self.matrix), dtype=np.float32))


class Recalled(NamedTuple):
    """Pages that a labelled query finds, by the key of a passage, `(p, 16)`, and their gain."""

    keys: NDArray[np.uint8]
    gain: float


NOTHING = Recalled(np.zeros((0, 16), np.uint8), 0.0)


@dataclass(frozen=True, eq=False)
class Learned:
    """Queries without labels that the centre of queries was learned from: their number and sum `(D,)`, and the date."""

    count: int
    total: Exact
    date: str = ""

    @classmethod
    def of(cls, vectors: NDArray[np.float32], date: str) -> Self:
        """Return queries `(n, D)` as a number and a sum, which is all that a plan keeps of them."""
        return cls(len(vectors), vectors.sum(0, dtype=np.float64), date)

    def plus(self, other: "Learned") -> "Learned":
        """Return both together, with the date of the other."""
        return Learned(self.count + other.count, self.total + other.total, other.date)


@dataclass(frozen=True, eq=False)
class SearchPlan:
    """How an index is searched.

    Attributes:
        projection: what vectors of passages go through; None leaves them alone.
        texts: texts of each language in the estimate of the projection.
        centre: what is subtracted from queries, `(D,)`; None is the centre of the projection.
        translations: map of queries, `(D, D)`.
        translated: number of pages with translations in its estimate.
        sharpness: t of page scores; None ranks a page by its best passage, without its translations.
        sampled: number of passages in the estimate of the sharpness.
        learned: real queries that move the centre.
        adapter: map of queries that was learned from labels, and the labelled queries.
        ranking: how passages are ranked unless told otherwise.
    """

    projection: Projection | None = None
    texts: tuple[int, ...] = ()
    centre: Exact | None = None
    translations: NDArray[np.float32] | None = None
    translated: int = 0
    sharpness: float | None = None
    sampled: int = 0
    learned: Learned | None = None
    adapter: Adapter | None = None
    ranking: RankingSettings = RANKED_BY_DEFAULT

    # The record.

    @classmethod
    def read(cls, arrays: Arrays, ranking: Mapping[str, Any] = {}, adapter: Adapter | None = None) -> Self:
        """Return the plan of a record, with the ranking and the adapter that are stored elsewhere."""
        found: dict[str, Any] = {"adapter": adapter, "ranking": RankingSettings(**ranking).completed(RANKED_BY_DEFAULT)}
        if "centre" in arrays:
            languages = tuple(json.loads(arrays["languages"].tobytes()))
            projection = Projection(arrays["centre"], arrays["directions"], languages)
            found |= {"projection": projection, "texts": tuple(arrays["texts"].tolist())}
        if "translations" in arrays:
            translated = int(arrays["translated"][0])
            found |= {"translations": arrays["translations"], "translated": translated}
        if "learned" in arrays:
            date = arrays["learned_date"].tobytes().decode()
            found["learned"] = Learned(int(arrays["learned_count"][0]), arrays["learned"], date)
        if "sharpness" in arrays:
            found["sharpness"] = float(arrays["sharpness"][0])
        if "sampled" in arrays:
            found["sampled"] = int(arrays["sampled"][0])
        if "adapter" in arrays:  # of a copy in a database
            labelled = LabelledQueries.read(arrays) if "labelled_vectors" in arrays else None
            found["adapter"] = Adapter(arrays["adapter_name"].tobytes().decode(), arrays["adapter"], labelled)
        return cls(**found, centre=arrays.get("query_centre"))

    @property
    def record(self) -> dict[str, NDArray[Any]]:
        """The plan as arrays, which an index keeps; empty where nothing is estimated."""
        found: dict[str, NDArray[Any]] = {}
        if self.projection:
            own, names = self.projection, json.dumps(self.projection.languages, ensure_ascii=False).encode()
            found = {"centre": own.centre, "directions": own.directions, "languages": np.frombuffer(names, np.uint8)}
            found["texts"] = np.array(self.texts, np.int64)
        if self.translations is not None:
            found |= {"translations": self.translations, "translated": np.array([self.translated])}
        if self.learned:
            found |= {"learned": self.learned.total, "learned_count": np.array([self.learned.count])}
            found["learned_date"] = np.frombuffer(self.learned.date.encode(), np.uint8)
        if self.sharpness is not None:
            found |= {"sharpness": np.array([self.sharpness]), "sampled": np.array([self.sampled])}
        return found if self.centre is None else {**found, "query_centre": self.centre}

    @property
    def record_of_copy(self) -> dict[str, NDArray[Any]]:
        """The record with the adapter, which a copy in a database keeps."""
        if self.adapter is None:
            return self.record
        name = np.frombuffer(self.adapter.name.encode(), np.uint8)
        labelled = self.adapter.labelled.record if self.adapter.labelled else {}
        return {**self.record, "adapter": self.adapter.matrix, "adapter_name": name, **labelled}

    @property
    def space(self) -> bytes:
        """What decides the vectors that an adapter is learned on, beside the encoder; empty for nothing."""
        found = {name: value for name, value in self.record.items() if name in _SPACE}
        return save(found) if found else b""

    @property
    def packed_projection(self) -> bytes:
        """The projection as bytes, which name the vectors through it."""
        found: bytes = save({name: value for name, value in self.record.items() if name in _PROJECTION})
        return found

    # Vectors.

    @property
    def languages(self) -> tuple[str, ...]:
        """Languages whose bias is removed; none without a projection, and where it only centres."""
        return self.projection.languages if self.projection and len(self.projection.directions) else ()

    def documents(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Map the vectors of passages `(n, D)` from the encoder for a search."""
        return vectors if self.projection is None else self.projection(vectors).astype(np.float32)

    def queries(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Map the vectors of queries `(n, D)` from the encoder for a search."""
        if self.projection is not None:
            vectors = self.projection(vectors, self._centre).astype(np.float32)
        return vectors if self.query_matrix is None else mapped(vectors, self.query_matrix)

    @cached_property
    def query_matrix(self) -> NDArray[np.float32] | None:
        """What queries go through after the projection, `(D, D)`: the map of translations, then an adapter."""
        if self.adapter is None or not self.adapter.maps:
            return self.translations
        if self.translations is None:
            return self.adapter.matrix
        both = self.adapter.matrix.astype(np.float64) @ self.translations.astype(np.float64)
        return both.astype(np.float32)

    def recall(self, vectors: NDArray[np.float32]) -> list[Recalled]:
        """Return the pages that labelled queries find for the vectors of queries `(n, D)` from the encoder."""
        labelled = self.adapter.labelled if self.adapter else None
        if labelled is None or not self.sharpness:
            return [NOTHING] * len(vectors)
        found = labelled.recall(replace(self, adapter=None).queries(vectors))
        return [Recalled(labelled.keys[pages], gain * spread_of(self.sharpness)) for pages, gain in found]

    @cached_property
    def _centre(self) -> Exact | None:
        """The centre of queries, moved towards those that were learned."""
        if self.centre is None or not self.learned:
            return self.centre
        return shrunk_centre(self.centre, self.learned.total / self.learned.count, self.learned.count)

    @property
    def query_centre(self) -> Exact | None:
        """The centre that is subtracted from queries, `(D,)`; None without a projection."""
        return self._centre if self._centre is not None or self.projection is None else self.projection.centre
