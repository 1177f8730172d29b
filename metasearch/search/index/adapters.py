"""Query adapters in an index: matrices for the vectors of queries, by name. One of them may be in use.

An adapter may have labelled queries, which find their pages (`metasearch.search.index.labelled_queries`).

An adapter belongs to the vectors that it was learned on. So it is in the file of the index, and is not used where the
encoder or the projection is another one. `metasearch.encoders.adapter` has the forms of adapters.
"""

import hashlib
import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save

from metasearch.errors import ConfigError, NonFiniteError, nearest
from metasearch.search.index.base import Kind
from metasearch.search.index.labelled_queries import LabelledQueries
from metasearch.search.index.plan import Adapter, SearchPlan

if TYPE_CHECKING:
    from metasearch.search.index.local import LocalStore
    from metasearch.search.index.writer import IndexWriter

log = logging.getLogger(__name__)

_ADAPTERS, IN_USE = "adapters", "adapter"
"""Keys in the state of an index: facts of all adapters, the oldest first; name of the one in use, or empty."""
_FIRST_ROW = 16
"""Row of the first adapter in the table of state: its matrix and its labelled queries, as safetensors."""


@dataclass(frozen=True)
class AdapterFacts:
    """What an index knows of an adapter.

    Attributes:
        row: of its matrix in the table of state.
        date: when it was learned, ISO 8601.
        labels: number of labelled queries.
        kept: whether it was significantly better on held-out folds.
        result: held-out scores, in one sentence.
        vectors: hash of what decides the vectors of the index (`vectors_hash`).
    """

    name: str
    row: int
    date: str
    form: str
    labels: int
    kept: bool
    result: str
    vectors: str

    @classmethod
    def all_in(cls, state: Mapping[str, Any]) -> list[Self]:
        """Return the adapters in the state of an index, the oldest first."""
        return [cls(**each) for each in state.get(_ADAPTERS, ())]


def vectors_hash(kind: Kind, plan: SearchPlan) -> str:
    """Return a hash of the encoder, the projection and the map of translations of an index."""
    return hashlib.sha256(kind.fingerprint.encode() + plan.space).hexdigest()[:16]


def read_adapter(store: "LocalStore") -> Adapter | None:
    """Return the adapter in use; None, and a warning, where it was learned on other vectors."""
    facts = next((each for each in AdapterFacts.all_in(store.state) if each.name == store.state.get(IN_USE)), None)
    if facts is None:
        return None
    if facts.vectors != vectors_hash(store.kind, store.plan):
        log.warning(
            "%s: adapter '%s' is not used: it was learned before the projection of the index was estimated again; run "
            "metasearch adapt with its labels again", store.name, facts.name,
        )  # fmt: skip
        return None
    record = load(store.state_row(facts.row, f"adapter '{facts.name}'"))
    return Adapter(facts.name, record.pop("matrix"), LabelledQueries.read(record) if record else None)


def add_adapter(
    writer: "IndexWriter",
    matrix: NDArray[np.float32],
    facts: Mapping[str, Any],
    use: bool,
    labelled: LabelledQueries | None = None,
) -> AdapterFacts:
    """Write a new adapter `(D, D)` in one transaction, and search with it if asked; else the one in use stays.

    `facts` are all of `AdapterFacts` but `row` and `vectors`; `labelled` are labelled queries that belong to it.
    """
    if matrix.shape != (writer.kind.dimension, writer.kind.dimension) or matrix.dtype != np.float32:
        raise ValueError(f"expected a float32 matrix of {writer.kind.dimension} dimensions, got {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise NonFiniteError(f"adapter '{facts['name']}' has a number that is not finite")
    known = AdapterFacts.all_in(writer.state)
    require_new(writer.state, facts["name"], writer.folder)
    row = 1 + max((each.row for each in known), default=_FIRST_ROW - 1)
    new = AdapterFacts(row=row, vectors=vectors_hash(writer.kind, writer.plan), **facts)
    now: dict[str, Any] = {
        _ADAPTERS: [asdict(each) for each in (*known, new)],
        IN_USE: new.name if use else writer.state.get(IN_USE, ""),
    }
    writer.change(now, {row: save({"matrix": matrix, **(labelled.record if labelled else {})})})
    return new


def require_new(state: Mapping[str, Any], name: str, where: object) -> None:
    """Raise `ConfigError` where an index has an adapter with a name already."""
    if name in {each.name for each in AdapterFacts.all_in(state)}:
        raise ConfigError(f"{where}: it has an adapter '{name}' already; choose another --name")


def require_adapter(state: Mapping[str, Any], name: str, where: object) -> None:
    """Raise `ConfigError` where an index has no adapter with a name."""
    known = [each.name for each in AdapterFacts.all_in(state)]
    if name not in known:
        hint = nearest(name, known) if known else " It has none; learn one with metasearch adapt INDEX LABELS"
        raise ConfigError(f"{where}: no adapter '{name}' in this index.{hint}")
