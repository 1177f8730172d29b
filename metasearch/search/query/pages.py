"""Ranks the pages that some passages are in, each with its translations, for one query."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from metasearch.encoders.pool_scores import SHARE
from metasearch.search.index.base import PageScores, Ranking, Rows
from metasearch.search.index.page_scores import group_means, page_scores, spread_of

WORDS = 1.0
"""Standard deviations of scores that the passage with the best words gains in a hybrid search."""


@dataclass(frozen=True)
class PageHit:
    """A page that was found: the row of its best passage, its score, and the best rows of its translations, best first.

    Attributes:
        further: other rows of the page with the scores that they have as hits, best first.
    """

    row: int
    score: float
    translations: tuple[int, ...] = ()
    further: tuple[tuple[int, float], ...] = ()


class RankedPages:
    """The pages of a table, or its groups of translations, best first.

    Args:
        table: passages of candidate pages with their scores.
        sharpness: t of page scores; None ranks a page by its best passage, without its translations.
        balance: measure each score from the best page in its language.
        grouped: a page and its translations are one hit.
        own: tags of the query's language: a group has the score of its page in it, or else of its best page.
        prefer: languages in which a group is shown, the first before the others; then the query's own.
        otherwise: tags in which a group is shown that has none of these; else its best page is.
        words: scores of rows by BM25 in a hybrid search.
        recalled: rows of the pages that a labelled query finds.
        gain: what these pages gain.
    """

    def __init__(
        self,
        table: PageScores,
        sharpness: float | None,
        balance: bool,
        grouped: bool,
        own: Collection[str],
        prefer: Sequence[str],
        words: Mapping[int, float],
        recalled: Collection[int] = (),
        gain: float = 0.0,
        otherwise: Collection[str] = (),
    ) -> None:
        self.table, self.sharpness, self.balance = table, sharpness, balance
        self.tags, self.groups = np.array(table.languages), table.groups
        gained = table.scores + _word_scores(table, words, sharpness)
        self._page = np.repeat(np.arange(len(table.starts)), np.diff(table.starts, append=len(table.rows)))
        # Best first within a page, after what other pages have, too; of equal scores the first passage.
        shared = np.zeros(len(gained), np.bool_) if table.shared is None else table.shared
        self._order = np.lexsort((-gained, shared, self._page))
        self._gained = gained
        window = sharpness if table.whole else None
        counted = np.where(shared, gained.min(initial=0), gained) if window is None else gained
        scores = page_scores(counted[None], table.starts, window)[0] if len(table.rows) else np.zeros(0)
        self.best = {tag: float(scores[self.tags == tag].max()) for tag in np.unique(self.tags).tolist()}
        """Best score of a page in each language, before scores are balanced."""
        self.scores = scores - SHARE * np.array([self.best[tag] for tag in table.languages]) if balance else scores
        if len(recalled):
            self.scores = self.scores.astype(np.float64)
            self.scores[np.unique(self._page[np.isin(table.rows, [*recalled])])] += gain
        evidence = group_means(self.scores[None], self.groups)[0] if sharpness is not None else self.scores
        self.totals = (self.scores + evidence) / 2
        scored = shown = np.arange(len(scores))
        if grouped:
            scored = self._version([tag in own for tag in table.languages])
            place = dict.fromkeys(otherwise, 1) | dict.fromkeys(own, 2)
            place |= {tag: 2 + len(prefer) - i for i, tag in reversed([*enumerate(prefer)])}
            shown = self._version([place.get(tag, 0) for tag in table.languages])
        order = np.lexsort((table.rows[self._best(scored)], -self.totals[scored]))
        self._scored, self._pages = scored[order], shown[order]
        self._grouped = grouped

    def __len__(self) -> int:
        """Return how many hits there are."""
        return len(self._pages)

    def hits(self, count: int) -> list[PageHit]:
        """Return the best hits."""
        pairs = zip(self._pages[:count].tolist(), self.totals[self._scored[:count]].tolist(), strict=True)
        return [self._hit(page, total) for page, total in pairs]

    def passages(self, count: int) -> Ranking:
        """Return the best passages, each ranked by itself."""
        scores = self._gained
        if self.balance and len(scores):
            tags = self.tags[self._page]
            best = {tag: float(scores[tags == tag].max()) for tag in np.unique(tags).tolist()}
            scores = scores - SHARE * np.array([best[tag] for tag in tags.tolist()])
        rows, first = np.unique(self.table.rows, return_index=True)  # pages may share a passage
        order = np.lexsort((rows, -scores[first]))[:count]
        return rows[order], scores[first][order].astype(np.float32)

    def _best(self, pages: Rows) -> Rows:
        found: Rows = self._order[self.table.starts[pages]]
        return found

    def _version(self, wanted: Sequence[float]) -> Rows:
        """Return a page of each group: the most wanted one, of these the best."""
        order = np.lexsort((-self.scores, -np.array(wanted, np.float64), self.groups))
        _, first = np.unique(self.groups[order], return_index=True)
        found: Rows = order[first]
        return found

    def _hit(self, page: int, total: float) -> PageHit:
        rows = self.table.rows
        others = np.flatnonzero(self.groups == self.groups[page]) if self._grouped else self._pages[:0]
        others = others[others != page]
        others = others[np.argsort(-self.scores[others], kind="stable")]
        own = self._order[self._page[self._order] == page]
        below = np.maximum(self._gained[own[0]] - self._gained[own], 0).tolist()
        further = tuple((row, total - gap) for row, gap in zip(rows[own].tolist(), below, strict=True))[1:]
        return PageHit(int(rows[own[0]]), total, tuple(rows[self._best(others)].tolist()), further)


def _word_scores(table: PageScores, words: Mapping[int, float], sharpness: float | None) -> NDArray[np.float64]:
    """Return what the words of a query add to the score of each passage, `(n,)`."""
    if not words or not len(table.rows):
        return np.zeros(len(table.rows))
    spread = float(table.scores.std()) if sharpness is None else spread_of(sharpness)
    own = np.array([words.get(row, 0.0) for row in table.rows.tolist()])
    return WORDS * spread * own / max(words.values())
