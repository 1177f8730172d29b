"""Measures by name, such as `map@20`: a metric and a cut-off. Importing this module imports no metric and no torch."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

from metasearch.config import registry
from metasearch.errors import ConfigError, nearest

RetrievalPool = Literal["multilingual", "bilingual", "monolingual", "expanded", "balanced", "reranked"]
Pool = RetrievalPool | Literal["pairs", "xx-en", "en-xx", "both"]
"""What a measure ranks.

Retrieval ranks the candidates of all languages (multilingual), of one other language (bilingual) or of the question's
language (monolingual). Three pools rank the candidates of all languages in another order: `expanded` and `balanced`
(`metasearch.encoders.pool_scores`), and `reranked` (`metasearch.encoders.cross_encoder`). Translation ranks texts of
the pivot language for each other language (`xx-en`), the reverse (`en-xx`), or takes the mean of `both`. Similarity
has `pairs`."""

MULTILINGUAL: Pool = "multilingual"
EXPANDED: Pool = "expanded"
BALANCED: Pool = "balanced"
REORDERED: tuple[Pool, ...] = (EXPANDED, BALANCED)
"""Pools with the candidates of the multilingual pool in another order, which needs no further model."""
RERANKED: Pool = "reranked"
"""The multilingual pool, its best candidates reranked by a cross-encoder."""
RETRIEVAL_POOLS: tuple[RetrievalPool, ...] = get_args(RetrievalPool)[:-1]
"""Pools of a retrieval task that need no further model, the main one first."""


@dataclass(frozen=True, order=True)
class Measure:
    """A metric by name and, for rankings, its cut-off `k`: how deep it looks, None for the whole ranking."""

    metric: str
    k: int | None = None

    @classmethod
    def parse(cls, text: str, kind: str) -> Self:
        """Read `map@20` for a retrieval task, `pearson` for a similarity task or `accuracy` for a translation task."""
        match = re.fullmatch(r"([^@]+)(?:@([1-9][0-9]{0,8}))?", text)
        if match is None or match[1] not in registry.names("metrics") or _metric(match[1]).kind != kind:
            raise ConfigError(f"unknown {kind} measure '{text}'.{nearest(text, _choices(text, kind))}")
        name, k = match[1], int(match[2]) if match[2] else None
        if k is not None and _metric(name).cutoff == "none":
            raise ConfigError(f"measure '{text}': '{name}' has no cut-off; write '{name}'")
        if k is None and _metric(name).cutoff == "required":
            raise ConfigError(f"measure '{text}' needs a cut-off; write '{name}@10'")
        return cls(name, k)

    def load(self) -> Any:
        """Return the metric's definition, a `metasearch.evaluation.metrics.base.Metric`."""
        return _metric(self.metric)

    def __str__(self) -> str:
        return self.metric if self.k is None else f"{self.metric}@{self.k}"


def is_rank(name: str) -> bool:
    """Return whether the values of a measure are ranks, and lower is better; False for one that is unknown here."""
    metric = name.partition("@")[0]
    return metric in registry.names("metrics") and _metric(metric).unit == "rank"


def _metric(name: str) -> Any:
    return registry.load("metrics", name).METRIC


def _choices(text: str, kind: str) -> Iterator[str]:
    digits = re.search(r"[1-9][0-9]{0,8}$", text)
    for name in registry.names("metrics"):
        metric = _metric(name)
        if metric.kind == kind and metric.cutoff != "required":
            yield name
        if metric.kind == kind and metric.cutoff != "none":
            yield f"{name}@{digits[0] if digits else 10}"
