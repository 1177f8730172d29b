"""Answers queries from an index with the encoder that made it."""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from metasearch.config import yaml
from metasearch.config.languages import UNKNOWN, is_known, primary_language
from metasearch.config.roles import Role
from metasearch.data.formats.given import list_texts
from metasearch.data.languages import detectable, detector
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.pool_scores import SHARE
from metasearch.search.documents.passage import Passage
from metasearch.search.index.base import Hit, PageVersion, Ranking, Scope, SearchError, Store
from metasearch.search.index.plan import Recalled
from metasearch.search.query.pages import RankedPages
from metasearch.search.query.passages import ROLE
from metasearch.search.settings import SearchSettings

if TYPE_CHECKING:
    from metasearch.encoders.cross_encoder import Reranker

log = logging.getLogger(__name__)

_IN_FRAGMENT = "/?:@!$&'()*+,;="
"""What a fragment may have beside letters, digits and `-._~` (RFC 3986, section 3.5)."""

QUERY: Role = "question"
_DEPTH, _DEPTH_LEAST, _MIXED = 8, 64, 8
"""Hits by page: pages are those of so many times as many passages of each language, at least; of `_MIXED` times as many
where languages are ranked together. With these, the first three hits were those of all pages on three manuals."""
_WHOLE = 2**20
"""Tokens of a text: none that is cut at this length was ever a passage."""


class Searcher:
    """An index and its encoder, with the prompts that the index was made with.

    `EncoderError` if the index has vectors of another encoder. `site` is the address of the root of the documents, by
    default as the index says.
    """

    def __init__(
        self, store: Store, encoder: Encoder, reranker: "Reranker | None" = None, site: str | None = None
    ) -> None:
        store.kind.require_encoder(store.name, encoder.fingerprint, encoder.dimension(), encoder.name)
        self.store = store
        self.encoder = encoder
        self.reranker = reranker
        self.site = site
        self.ranking = store.plan.ranking
        """How the index is searched unless told otherwise."""

    def reopen(self) -> "Searcher | None":
        """Return a searcher for the index's current state; None if unchanged."""
        if not self.store.changed():
            return None
        found = Searcher(self.store.reopen(), self.encoder, self.reranker, self.site)
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
        prefer: Collection[str] = (),
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
            hybrid: rank by the query's words (BM25), too: the passage with the best words gains a standard deviation
                of the scores (`metasearch.search.query.pages`).
            expand: score passages with their nearest ones in other languages (`metasearch.search.query.searcher`).
            balance: measure each score from the best score in the passage's language
                (`metasearch.encoders.pool_scores`); passages of unknown language count as one language.
            by: `page`: pages are ranked (`metasearch.search.index.page_scores`); a hit is the best passage of a page.
                `group`: a page and its translations are one hit, and the others are in `Hit.translations`. Further
                passages of a page follow only where there are fewer pages. `passage`: all passages are ranked alike.
                A page is a file; a page of a PDF; a row of a table.
            prefer: languages in which a page with translations is shown, the first before the others; by default that
                of the query (py3langid, among the languages of the index), then English, else the version with the
                best score.
            rerank: hits of each query, at least `top_k`, that the cross-encoder reads; the score of a hit is then the
                raw score of the cross-encoder. 0 reranks none.
            where: conditions on further fields; hits meet all of them: `["price<10", "topic=news"]`, or a mapping for
                equal values, `{"topic": "news"}` (`metasearch.search.settings`).

        Raises:
            TypeError, DataError: the queries are no list of texts (`metasearch.data.formats.given`).
            ConfigError: no passage is in one of the languages or has one of the fields, a condition is wrong, `top_k`
                is below 1, the index cannot be expanded, or there is no reranker or it would read fewer passages than
                are wanted.
            RunFolderError: a passage of the index is damaged.
        """
        asked = {
            "top_k": top_k, "languages": tuple(languages), "hybrid": hybrid, "expand": expand, "balance": balance,
            "by": by, "prefer": tuple(prefer), "rerank": rerank, "where": where,
        }  # fmt: skip
        return self.answer(list_texts(queries, "queries"), yaml.check(asked, SearchSettings, "search"))

    def answer(self, queries: Sequence[str], asked: SearchSettings) -> list[list[Hit]]:
        """Return each query's best hits by settings, as `search`."""
        if not queries:
            return []
        self._require_reranker(asked)
        stored = asked.expand is None
        asked = asked.completed(self.ranking)
        known = {name: tuple(find_tags(getattr(asked, name), self.languages)) for name in ("languages", "prefer")}
        asked = asked.model_copy(update=known)
        # Those of the last search stay until now, for who counts them.
        self.encoder.forget()
        own = self.encoder.encode(queries, QUERY)
        vectors = self.store.plan.queries(own)
        store = self._expanded(stored) if asked.expand else self.store
        if asked.by == "passage" and not asked.hybrid:
            hits = self._distinct(asked, lambda count: self._ranked(store, vectors, count, asked))
        else:
            hits = self._by_page(store, queries, vectors, self.store.plan.recall(own), asked)
        if asked.rerank:
            hits = [self._rerank(query, own)[: asked.top_k] for query, own in zip(queries, hits, strict=True)]
        return hits

    def path_of(self, passage: Passage) -> Path:
        """Return where a passage's document is: below the root of the index, or its path as it was given."""
        return self.store.root / passage.file if self.store.root else Path(passage.file)

    def url_of(self, passage: Passage) -> str:
        """Return the address of a passage, its page with its anchor; empty if none is known."""
        site = self.store.site if self.site is None else self.site
        return passage_url(passage, site, self.store.canonical_url(passage.file))

    def _expanded(self, stored: bool) -> Store:
        """Return the index with expanded vectors; an error tells how to search one without, whose ranking has them."""
        try:
            return self.store.expand()
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
        """Return the unit vectors of queries, `(Q, D)`, as the plan of the index searches with them.

        Their dot products with the vectors `store.quantised` of the index are the scores of passages.
        """
        return self.store.plan.queries(self.encoder.encode(list_texts(queries, "queries"), QUERY))

    def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the unit vectors of passages, `(n, D)`, as the plan of the index has them."""
        return self.store.plan.documents(self.encoder.encode(texts, ROLE))

    def _near(
        self, store: Store, vectors: NDArray[np.float32], count: int, asked: SearchSettings
    ) -> list[dict[str, Ranking]]:
        """Return for each query the best rows by language, or of all languages under the empty text."""
        tags = list(dict.fromkeys(asked.languages or self.languages)) if asked.balance else [""]
        groups = [[tag] for tag in tags] if asked.balance else [asked.languages]
        found = store.search(vectors, count, groups, asked.where)
        each = zip(*(zip(*ranking, strict=True) for ranking in found), strict=True)
        return [dict(zip(tags, own, strict=True)) for own in each]

    def _ranked(self, store: Store, vectors: NDArray[np.float32], count: int, asked: SearchSettings) -> list[Ranking]:
        near = self._near(store, vectors, count, asked)
        return [merged([*own.values()], count) if asked.balance else own[""] for own in near]

    def _distinct(self, asked: SearchSettings, ranked: Callable[[int], list[Ranking]]) -> list[list[Hit]]:
        """Return the hits of each query; `ranked` returns so many best rows.

        More rows are ranked where equal texts in several languages take the places of others.
        """
        inside = list(dict.fromkeys(asked.languages or self.languages))
        count = depth = asked.rerank or asked.top_k
        while True:
            found = ranked(count)
            hits = [self._hits([*zip(*(each.tolist() for each in own), strict=True)], inside) for own in found]
            if all(len(rows) < count or len(own) >= depth for own, (rows, _) in zip(hits, found, strict=True)):
                return [own[:depth] for own in hits]
            count *= 2

    def _by_page(
        self,
        store: Store,
        queries: Sequence[str],
        vectors: NDArray[np.float32],
        recalled: Sequence[Recalled],
        asked: SearchSettings,
    ) -> list[list[Hit]]:
        """Return the hits of each query from all passages of the pages of its best passages and labelled queries."""
        depth, inside = asked.rerank or asked.top_k, list(dict.fromkeys(asked.languages or self.languages))
        count = max(_DEPTH * depth, _DEPTH_LEAST) * (1 if asked.balance else _MIXED)
        found: dict[int, list[Hit]] = {}
        while left := [i for i in range(len(queries)) if i not in found]:
            near = self._near(store, vectors[left], count, asked)
            words = self._words([queries[i] for i in left], count, asked)
            for i, own, worded in zip(left, near, words, strict=True):
                ranked = self._rank_pages(store, queries[i], vectors[i], own, worded, recalled[i], asked)
                hits = self._page_hits(ranked, depth, inside, asked)
                if len(ranked) >= depth or all(len(rows) < count for rows, _ in own.values()):
                    found[i] = hits
            count *= 4
        return [found[i] for i in range(len(queries))]

    def _words(self, queries: Sequence[str], count: int, asked: SearchSettings) -> list[dict[int, float]]:
        if not asked.hybrid:
            return [{} for _ in queries]
        found = self.store.search_words(self.cut_words, queries, count, Scope(asked.languages, asked.where))
        return [dict(zip(rows.tolist(), scores.tolist(), strict=True)) for rows, scores in found]

    def _rank_pages(
        self, store: Store, query: str, vector: NDArray[np.float32], near: Mapping[str, Ranking],
        words: Mapping[int, float], recalled: Recalled, asked: SearchSettings,
    ) -> RankedPages:  # fmt: skip
        rows = np.concatenate([found for found, _ in near.values()] or [np.zeros(0, np.int64)])
        scores = np.concatenate([found for _, found in near.values()] or [np.zeros(0, np.float32)])
        known = self.store.rows_of(recalled.keys).tolist() if recalled.gain else []
        further = np.setdiff1d(np.array([*words, *known], np.int64), rows)
        lowest = np.full(len(further), scores.min(initial=0), np.float32)
        found = np.concatenate([rows, further]), np.concatenate([scores, lowest])
        table = store.score_pages(vector, found, Scope(asked.languages, asked.where))
        grouped = asked.by == "group"
        several = grouped and len({*table.groups.tolist()}) < len(table.groups)
        language = self._detect(query) if several else UNKNOWN
        own, english = ([tag for tag in self.languages if primary_language(tag) == each] for each in (language, "en"))
        return RankedPages(
            table, self.store.plan.sharpness, bool(asked.balance), grouped, own, asked.prefer, words, known,
            recalled.gain, english if is_known(language) else (),
        )  # fmt: skip

    @cached_property
    def _detect(self) -> Callable[[str], str]:
        tags = sorted({primary_language(tag) for tag in self.languages} & detectable())
        return detector(tags) if len(tags) > 1 else lambda _: tags[0] if tags else UNKNOWN

    def _page_hits(self, ranked: RankedPages, depth: int, inside: Sequence[str], asked: SearchSettings) -> list[Hit]:
        """Return the best hits; further passages of the same pages only where there are fewer pages."""
        if asked.by == "passage":
            return self._distinct(asked, lambda count: [ranked.passages(count)])[0]
        count = depth
        while True:
            pages = ranked.hits(count)
            found = [(page.row, page.score) for page in pages]
            if len(pages) < depth:
                seen = {row for row, _ in found}.union(*(page.translations for page in pages))
                more = (each for page in pages for each in page.further if each[0] not in seen)
                found += sorted(more, key=lambda each: -each[1])
            hits = self._hits(found, inside, {page.row: page.translations for page in pages})
            if len(hits) >= depth or len(ranked) <= count:
                return hits[:depth]
            count *= 2

    def _rerank(self, query: str, hits: Sequence[Hit]) -> list[Hit]:
        assert self.reranker is not None
        scores = self.reranker.scores(query, [hit.passage.text for hit in hits])
        return [replace(hits[i], score=float(scores[i])) for i in np.argsort(-scores, kind="stable")]

    def _hits(
        self,
        ranked: Sequence[tuple[int, float]],
        languages: Sequence[str],
        translations: Mapping[int, Sequence[int]] = MappingProxyType({}),
    ) -> list[Hit]:
        """Return ranked rows as hits: equal texts in some languages are one, at the best of their rows."""
        rows = [row for row, _ in ranked]
        found = self.store.passages(rows)
        equal = self.store.equal_rows([passage for passage, _ in found], languages) if len(languages) > 1 else []
        further = list(dict.fromkeys(other for row in rows for other in translations.get(row, ())))
        others = {row: passage for row, (passage, _) in zip(further, self.store.passages(further), strict=True)}
        hits: list[Hit] = []
        seen: set[int] = set()
        for i, (row, score) in enumerate(ranked):
            passage, places = found[i]
            same = {row: (passage.language, places), **(equal[i] if equal else {})}
            if row not in seen:
                own = [others[each] for each in translations.get(row, ())]
                tags = dict.fromkeys([*(tag for tag, _ in same.values()), *(each.language for each in own)])
                versions = tuple(PageVersion(each, self.url_of(each)) for each in own)
                count = sum(places for _, places in same.values())
                hits.append(Hit(score, passage, count, tuple(tags), versions, self.url_of(passage)))
            seen.update(same)
        return hits

    def cut_words(self, texts: Sequence[str]) -> list[list[int]]:
        """Return texts' word numbers: encoder tokens, which exist for every language."""
        read = self.encoder.reader
        found = read.tokenise(list(texts), _WHOLE)["input_ids"]
        # Words of every text do not distinguish any.
        special = set(read.special_ids)
        return [[token for token in tokens if token not in special] for tokens in found]


def find_tags(ranges: Iterable[str], known: Iterable[str]) -> list[str]:
    """Return the known tags that language ranges match, `en-US` for `en`; a range that matches none stays.

    This is the basic filtering of RFC 4647, section 3.3.1, on canonical tags.

    Example:
        >>> find_tags(["en", "el"], ["de", "en-US", "en"])
        ['en-US', 'en', 'el']
    """
    known = list(known)
    found = ([tag for tag in known if f"{tag}-".startswith(f"{each}-")] or [each] for each in ranges)
    return list(dict.fromkeys(chain.from_iterable(found)))


def passage_url(passage: Passage, site: str, canonical: str = "") -> str:
    """Return the address of a passage: its page, and its anchor if it has one; empty where the page has no address.

    Args:
        passage: from an index.
        site: address of the root of the documents, or empty.
        canonical: address that the page names as its own, or empty.
    """
    page = canonical or (f"{site}{quote(passage.file)}" if site else "")
    return f"{page}#{quote(passage.anchor, safe=_IN_FRAGMENT)}" if page and passage.anchor else page


def merged(rankings: Sequence[Ranking], top: int) -> Ranking:
    """Return the best `top` of rankings of one language each by balanced scores, best first, `(K,)` each.

    Each ranking has numbers and scores of its language's best `top` candidates, best first. Of equal scores the lower
    number comes first.
    """
    numbers = np.concatenate([np.zeros(0, np.int64), *(found for found, _ in rankings)])
    own = [scores - np.float32(SHARE) * scores[:1] for _, scores in rankings]
    scores = np.concatenate([np.zeros(0, np.float32), *own])
    order = np.lexsort((numbers, -scores))[:top]
    return numbers[order], scores[order]
