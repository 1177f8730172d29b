"""Answers queries from an index with the encoder that made it."""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from metasearch.config import yaml
from metasearch.config.index import RANKED_BY_DEFAULT, RankingSettings, SearchSettings
from metasearch.config.languages import find_tags
from metasearch.config.roles import Role
from metasearch.data.documents.passage import Passage
from metasearch.data.documents.read import page_of
from metasearch.data.formats.given import list_texts
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.pool_scores import merged
from metasearch.retrieval.index.base import Hit, Ranking, Rows, Scores, SearchError, Store
from metasearch.retrieval.index.bm25 import fuse
from metasearch.retrieval.search.neutral import project

if TYPE_CHECKING:
    from metasearch.encoders.cross_encoder import Reranker

log = logging.getLogger(__name__)

QUERY: Role = "question"
_FUSED = 10
"""How many times as many passages as are wanted each of two rankings brings to their fusion."""
_FUSED_LEAST = 100
_PAGED, _PAGED_MOST = 4, 32
"""Hits by page: how many times as many passages are ranked first, and at most if these are enough for passages."""
_WHOLE = 2**20
"""Tokens of a text: none that is cut at this length was ever a passage."""


class Searcher:
    """An index and its encoder, with the prompts that the index was made with.

    `EncoderError` if the index has vectors of another encoder.
    """

    def __init__(self, store: Store, encoder: Encoder, reranker: "Reranker | None" = None) -> None:
        store.kind.require_encoder(store.name, encoder.fingerprint, encoder.dimension(), encoder.name)
        self.store = store
        self.encoder = encoder
        self.reranker = reranker
        self.projected = project(encoder, store.arrays, store.adapter)
        """Gives the vectors of the index: of its encoder, through the projection of a neutral index; those of queries
        also through its adapter."""
        stored = yaml.check(dict(store.ranking), RankingSettings, f"ranking of {store.name}")
        self.ranking = stored.completed(RANKED_BY_DEFAULT)
        """How the index is searched unless told otherwise."""

    def reopen(self) -> "Searcher | None":
        """Return a searcher for the index's current state; None if unchanged."""
        if not self.store.changed():
            return None
        found = Searcher(self.store.reopen(), self.encoder, self.reranker)
        log.info("%s has changed: %d passages", found.store.name, len(found.store))
        return found

    @property
    def languages(self) -> Mapping[str, int]:
        """Passages by language, most first."""
        return self.store.languages

    def search(
        self,
        queries: Iterable[str],
        *,
        top_k: int = 10,
        languages: Collection[str] = (),
        hybrid: bool | None = None,
        expand: bool | None = None,
        balance: bool | None = None,
        by: str | None = None,
        rerank: int = 0,
        where: Any = (),
    ) -> list[list[Hit]]:
        """Return each query's best passages, best first.

        `hybrid`, `expand`, `balance` and `by` are by default as the index says (`metasearch index --balance`).

        Args:
            queries: in any language that the encoder knows.
            top_k: how many are wanted for each.
            languages: of the passages, as tags in any case; by default all. `en` has `en-US`, too (RFC 4647, basic
                filtering).
            hybrid: rank by the query's words (BM25), too, and fuse both rankings by reciprocal rank; a score is then
                that of the fusion.
            expand: score passages with their nearest ones in other languages (`metasearch.retrieval.search.searcher`).
            balance: measure each score from the best score in the passage's language
                (`metasearch.encoders.pool_scores`); passages of unknown language count as one language.
            by: `page`: a page has one hit, its best passage, as long as there are other pages among the best 32 ·
                `top_k` passages; `passage`: all passages are ranked alike. A page is a file; a page of a PDF; a row of
                a table.
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
        asked = {
            "top_k": top_k, "languages": tuple(languages), "hybrid": hybrid, "expand": expand, "balance": balance,
            "by": by, "rerank": rerank, "where": where,
        }  # fmt: skip
        return self.answer(list_texts(queries, "queries"), yaml.check(asked, SearchSettings, "search"))

    def answer(self, queries: Sequence[str], asked: SearchSettings) -> list[list[Hit]]:
        """Return each query's best passages by settings, as `search`."""
        if not queries:
            return []
        self._require_reranker(asked)
        stored = asked.expand is None
        asked = asked.completed(self.ranking)
        asked = asked.model_copy(update={"languages": tuple(find_tags(asked.languages, self.languages))})
        # Those of the last search stay until now, for who counts them.
        self.encoder.forget()
        vectors = self.encode_queries(queries)
        if asked.expand:
            self._expand(stored)
        hits = self._distinct(asked, lambda count: self._ranked(queries, vectors, count, asked))
        if asked.rerank:
            hits = [self._rerank(query, own) for query, own in zip(queries, hits, strict=True)]
            hits = [by_page(own, asked.top_k) if asked.by == "page" else own[: asked.top_k] for own in hits]
        return hits

    def path_of(self, passage: Passage) -> Path:
        """Return where a passage's document is: below the root of the index, or its path as it was given."""
        return self.store.root / passage.file if self.store.root else Path(passage.file)

    def _expand(self, stored: bool) -> None:
        """Prepare the second vectors; the error of an index that says so itself tells how to search without them."""
        try:
            self.store.expand()
        except SearchError as error:
            if not stored:
                raise
            message = f"{error}. {self.store.name} is searched with expansion unless told otherwise; pass --no-expand"
            raise SearchError(error.param, error.code, message) from None

    def _require_reranker(self, asked: SearchSettings) -> None:
        """Raise `SearchError` if there is no cross-encoder, or it would read fewer passages than are wanted."""
        if asked.rerank and self.reranker is None:
            message = "there is no reranker; name a cross-encoder with --rerank MODEL"
            raise SearchError("rerank", "cannot_rerank", message)
        if 0 < asked.rerank < asked.top_k:
            message = f"{asked.top_k} hits are asked of {asked.rerank} reranked passages; rerank {asked.top_k} or more"
            raise SearchError("rerank", "cannot_rerank", message)

    def encode_queries(self, queries: Iterable[str]) -> NDArray[np.float32]:
        """Return the unit vectors of queries, `(Q, D)`, with the projection of a neutral index and its query adapter.

        Their dot products with the vectors of `metasearch index --vectors` are the scores of passages.
        """
        return self.projected.encode(list_texts(queries, "queries"), QUERY)

    def _ranked(
        self, queries: Sequence[str], vectors: NDArray[np.float32], count: int, asked: SearchSettings
    ) -> list[Ranking]:
        """Return the best rows of each query and their scores, best first."""
        languages = asked.languages
        groups = [[tag] for tag in dict.fromkeys(languages or self.languages)] if asked.balance else [languages]
        wanted = max(_FUSED * count, _FUSED_LEAST) if asked.hybrid else count
        near = self.store.search(vectors, wanted, groups, bool(asked.expand), asked.where)
        each = [list(zip(*found, strict=True)) for found in near]
        found = [merged(own, wanted) for own in zip(*each, strict=True)] if asked.balance else each[0]
        if not asked.hybrid:
            return found
        by_words = self.store.search_words(self.cut_words, queries, wanted, languages, asked.where)
        return [fuse([near, worded], count) for (near, _), (worded, _) in zip(found, by_words, strict=True)]

    def _distinct(self, asked: SearchSettings, ranked: Callable[[int], list[Ranking]]) -> list[list[Hit]]:
        """Return the hits of each query; `ranked` returns so many best rows.

        More rows are ranked where equal texts in several languages, or passages of a page, take the places of others.
        """
        inside = list(dict.fromkeys(asked.languages or self.languages))
        depth = asked.rerank or asked.top_k
        paged = asked.by == "page" and not asked.rerank
        count = depth * (_PAGED if paged else 1)
        while True:
            found = ranked(count)
            hits = [self._hits(*own, inside) for own in found]
            deep = not paged or count >= _PAGED_MOST * depth
            if all(
                len(rows) < count or len(own if deep else _first_of_pages(own)) >= depth
                for own, (rows, _) in zip(hits, found, strict=True)
            ):
                return [by_page(own, depth) if paged else own[:depth] for own in hits]
            count *= 2

    def _rerank(self, query: str, hits: Sequence[Hit]) -> list[Hit]:
        """Return hits sorted by the cross-encoder's scores; ties keep their order."""
        assert self.reranker is not None
        scores = self.reranker.scores(query, [hit.passage.text for hit in hits])
        return [replace(hits[i], score=float(scores[i])) for i in np.argsort(-scores, kind="stable")]

    def _hits(self, rows: Rows, scores: Scores, languages: Sequence[str]) -> list[Hit]:
        """Return ranked rows as hits: equal texts in some languages are one, at the best of their rows."""
        found = self.store.passages(rows.tolist())
        equal = self.store.equal_rows([passage for passage, _ in found], languages) if len(languages) > 1 else []
        hits: list[Hit] = []
        seen: set[int] = set()
        for i, (row, score) in enumerate(zip(rows.tolist(), scores.tolist(), strict=True)):
            passage, places = found[i]
            others = {row: (passage.language, places), **(equal[i] if equal else {})}
            if row not in seen:
                tags = (tag for tag, _ in others.values())
                hits.append(Hit(score, passage, sum(count for _, count in others.values()), tuple(tags)))
            seen.update(others)
        return hits

    def cut_words(self, texts: Sequence[str]) -> list[list[int]]:
        """Return texts' word numbers: encoder tokens, which exist for every language."""
        read = self.encoder.reader
        found = read.tokenise(list(texts), _WHOLE)["input_ids"]
        # Words of every text do not distinguish any.
        special = set(read.special_ids)
        return [[token for token in tokens if token not in special] for tokens in found]


def by_page(hits: Sequence[Hit], top_k: int) -> list[Hit]:
    """Return the best hits, one of each page; further ones of these pages only where there are fewer pages."""
    first = _first_of_pages(hits)[:top_k]
    others = sorted(set(range(len(hits))) - set(first))
    return [hits[i] for i in sorted(first + others[: top_k - len(first)])]


def _first_of_pages(hits: Sequence[Hit]) -> list[int]:
    """Return the number of the first hit of each page."""
    found: dict[tuple[str, int], int] = {}
    for i, hit in enumerate(hits):
        found.setdefault(page_of(hit.passage), i)
    return list(found.values())
