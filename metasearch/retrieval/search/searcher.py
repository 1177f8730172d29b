"""Answers queries from an index with the encoder that made it."""

import hashlib
import json
import logging
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metasearch.config.index import list_conditions
from metasearch.config.languages import UNKNOWN, normalise_tag
from metasearch.config.recipe import Role
from metasearch.data.formats.arrays import derive
from metasearch.data.formats.given import list_texts
from metasearch.encoders.cross_encoder import Reranker
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.pool_scores import ALPHA, expanded, merged
from metasearch.errors import ConfigError
from metasearch.retrieval.index.base import Hit, Rows, Scores, SearchError
from metasearch.retrieval.index.bm25 import Bm25, fuse
from metasearch.retrieval.index.exact_search import Quantised, to_int8
from metasearch.retrieval.index.local import LocalStore
from metasearch.retrieval.index.qdrant import QdrantStore
from metasearch.retrieval.search.passages import project

EXPANSION_FOLDER = "expansion"
MOST_EXPANDED = 2**18
"""Passages of an index that can be expanded, each of which is compared with all of the others."""

log = logging.getLogger(__name__)

QUERY: Role = "question"
_FUSED = 10
"""How many times as many passages as are wanted each of two rankings brings to their fusion."""
_FUSED_LEAST = 100
_WHOLE = 2**20
"""Tokens of a text: none that is cut at this length was ever a passage."""


class Searcher:
    """An index and its encoder, with the prompts that the index was made with.

    `EncoderError` if the index has vectors of another encoder.
    """

    def __init__(self, store: LocalStore | QdrantStore, encoder: Encoder, reranker: Reranker | None = None) -> None:
        store.kind.require_encoder(store.folder, encoder.fingerprint, encoder.dimension(), encoder.name)
        self.store = store
        self.encoder = encoder
        self.reranker = reranker
        self.projected = project(encoder, store.arrays)
        """Gives the vectors of the index: of its encoder, through the projection of a neutral index."""
        self._words: Bm25 | None = None

    def reopen(self) -> "Searcher | None":
        """Return a searcher for the index's current state; None if unchanged."""
        if not self.store.changed():
            return None
        found = Searcher(self.store.reopen(), self.encoder, self.reranker)
        log.info("%s has changed: %d passages", found.store.folder, len(found.store))
        return found

    @property
    def languages(self) -> dict[str, int]:
        """Passages by language, most first."""
        return self.store.languages

    def search(
        self,
        queries: Iterable[str],
        *,
        top_k: int = 10,
        languages: Collection[str] = (),
        hybrid: bool = False,
        expand: bool = False,
        balance: bool = False,
        rerank: int = 0,
        where: Any = (),
    ) -> list[list[Hit]]:
        """Return each query's best passages, best first.

        Args:
            queries: in any language that the encoder knows.
            top_k: how many are wanted for each.
            languages: of the passages, as tags in any case; by default all.
            hybrid: rank by the query's words (BM25), too, and fuse both rankings by reciprocal rank; a score is then
                that of the fusion.
            expand: score passages with their nearest ones in other languages (`metasearch.retrieval.search.searcher`).
            balance: measure each score from the best score in the passage's language
                (`metasearch.encoders.pool_scores`); passages of unknown language count as one language.
            rerank: passages of each query, at least `top_k`, that the cross-encoder reads; the score of a hit is then
                the raw score of the cross-encoder. 0 reranks none.
            where: conditions on further fields; hits meet all of them: `["price<10", "topic=news"]`, or a mapping for
                equal values, `{"topic": "news"}` (`metasearch.config.index`).

        Raises:
            TypeError, DataError: the queries are no list of texts (`metasearch.data.formats.given`).
            ConfigError: no passage is in one of the languages or has one of the fields, a condition is wrong, `top_k`
                is below 1, the index cannot be expanded, or there is no reranker or it would read fewer passages than
                are wanted.
            RunFolderError: a passage of the index is damaged.
        """
        queries = list_texts(queries, "queries")
        if not queries:
            return []
        if rerank:
            if self.reranker is None:
                message = "there is no reranker; name a cross-encoder with --rerank MODEL"
                raise SearchError("rerank", "cannot_rerank", message)
            if rerank < top_k:
                message = f"{top_k} hits are asked of {rerank} reranked passages; rerank {top_k} or more"
                raise SearchError("rerank", "cannot_rerank", message)
        depth = rerank or top_k
        languages = [normalise_tag(language) for language in languages]
        try:
            conditions = list_conditions(where)
        except ValueError as error:
            raise ConfigError(f"where: {error}") from None
        wanted = max(_FUSED * depth, _FUSED_LEAST) if hybrid else depth
        # Those of the last search stay until now, for who counts them.
        self.encoder.forget()
        vectors = self.encode_queries(queries)
        if expand and isinstance(self.store, LocalStore):
            expand_store(self.store)
        groups = [[tag] for tag in dict.fromkeys(languages or self.languages)] if balance else [languages]
        near = self.store.search(vectors, wanted, groups, expand, conditions)
        each = [list(zip(*found, strict=True)) for found in near]
        ranked = [merged(found, wanted) for found in zip(*each, strict=True)] if balance else each[0]
        if hybrid:
            by_words = self._by_words(queries, wanted, languages, conditions)
            ranked = [fuse([near, worded], depth) for (near, _), (worded, _) in zip(ranked, by_words, strict=True)]
        hits = [self._hits(*own) for own in ranked]
        if rerank:
            hits = [self._rerank(query, own)[:top_k] for query, own in zip(queries, hits, strict=True)]
        return hits

    def encode_queries(self, queries: Iterable[str]) -> NDArray[np.float32]:
        """Return the unit vectors of queries, `(Q, D)`, with the projection of a neutral index.

        Their dot products with the vectors of `metasearch index --vectors` are the scores of passages.
        """
        return self.projected.encode(list_texts(queries, "queries"), QUERY)

    def _rerank(self, query: str, hits: Sequence[Hit]) -> list[Hit]:
        """Return hits sorted by the cross-encoder's scores; ties keep their order."""
        assert self.reranker is not None
        scores = self.reranker.scores(query, [hit.passage.text for hit in hits])
        return [replace(hits[i], score=float(scores[i])) for i in np.argsort(-scores, kind="stable")]

    def _hits(self, rows: Rows, scores: Scores) -> list[Hit]:
        found = zip(scores.tolist(), self.store.passages(rows.tolist()), strict=True)
        return [Hit(score, passage, places) for score, (passage, places) in found]

    def _by_words(
        self, queries: Sequence[str], top: int, languages: Collection[str], where: Sequence[str]
    ) -> list[tuple[Rows, Scores]]:
        if isinstance(self.store, QdrantStore):
            return self.store.search_words(self.cut_words, queries, top, languages, where)
        if self._words is None:
            self._words = Bm25(self.store, self.cut_words, self.encoder.fingerprint)
        return self._words.search(queries, top, languages, where)

    def cut_words(self, texts: Sequence[str]) -> list[list[int]]:
        """Return texts' word numbers: encoder tokens, which exist for every language."""
        found = self.encoder.input.tokenise(list(texts), _WHOLE)["input_ids"]
        # Words of every text do not distinguish any.
        special = set(getattr(self.encoder.model.tokenizer, "all_special_ids", ()))
        return [[token for token in tokens if token not in special] for tokens in found]


# Expansion: passages are searched by second vectors, moved towards other languages (`metasearch.encoders.pool_scores`).
# They are computed at the first search that needs them, and cached in the index's folder.


def expand_store(store: LocalStore) -> None:
    """Give a store the second vectors of its passages, from their cache if possible.

    Raises:
        SearchError: the index has more than `MOST_EXPANDED` passages, or passages of one language alone.
    """
    if store.expanded:
        return
    if len(store) > MOST_EXPANDED:
        most = f"expansion compares all passages with each other, at most {MOST_EXPANDED:,}"
        raise SearchError("expand", "cannot_expand", f"{most}; the index has {len(store):,}")
    known = [tag for tag in store.languages if tag != UNKNOWN]
    if len(known) < 2:
        there = f"here all are in {known[0]}" if known else "here none has a known language"
        raise SearchError("expand", "cannot_expand", f"expansion needs passages in several languages; {there}")
    if UNKNOWN in store.languages:
        log.warning("not expanded, language unknown: %s passages", f"{store.languages[UNKNOWN]:,}")
    key = hashlib.sha256(json.dumps([3, ALPHA, store.contents]).encode()).hexdigest()
    store.expanded = Quantised(
        **derive(store.folder / EXPANSION_FOLDER, key, lambda: _expanded(store, known)._asdict())
    )


def _expanded(store: LocalStore, known: list[str]) -> Quantised:
    """Return all passages' vectors, expanded if their language is known."""
    log.info("comparing %s passages with each other, once", f"{len(store):,}")
    vectors, languages = store.quantised.take(slice(None)), np.full(len(store), -1, np.int64)
    for number, tag in enumerate(known):
        languages[store.rows_in([tag])] = number
    there = languages >= 0
    vectors[there] = expanded(vectors[there], languages[there])
    return to_int8(vectors)
