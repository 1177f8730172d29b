"""Questions and titles with the pages that they ask for, and how good a ranking of pages is."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from benchmarks.pages.pool import read_queries
from benchmarks.pages.whole import FOLDER
from metasearch.errors import DataError
from metasearch.evaluation.statistics.paired import PairedTest, clustered_test

QUESTIONS = Path(__file__).parent / "questions"
CHOSE = ("debian-faq", "gnome-help", "maint-guide")
"""Manuals whose questions chose settings."""
CHOSE_NOTHING = ("debian-reference", "developers-reference")
TOP, DEEP = 10, 20
"""Hits that count for reciprocal ranks, and for the average precision."""
COUNT = 60
"""Pages of a set of titles, drawn as `benchmarks.pages.run --count 60` draws them."""
MAP = f"map@{DEEP}"
OWN, ANY, OTHER, FIRST = "own", "any", "other", "first"

Kind = Literal["questions", "titles"]
Mask = NDArray[np.bool_]
Values = NDArray[np.float64]


@dataclass(frozen=True)
class Question:
    """A question or title in a language, and the names of the pages that answer it."""

    text: str
    language: str
    pages: frozenset[str]


@dataclass(frozen=True, eq=False)
class Asked:
    """Q questions about P pages in several languages.

    Attributes:
        files: the file of each page, `LANGUAGE/NAME.html`, `(P,)`.
    """

    kind: Kind
    name: str
    questions: Sequence[Question]
    files: Sequence[Path]

    @cached_property
    def texts(self) -> list[str]:
        """The questions."""
        return [question.text for question in self.questions]

    @cached_property
    def languages(self) -> NDArray[np.str_]:
        """Language of each page, `(P,)`."""
        return np.array([path.parent.name for path in self.files])

    @cached_property
    def right(self) -> Mask:
        """Which pages answer each question, in any language, `(Q, P)`."""
        names = [path.stem for path in self.files]
        return np.array([[name in question.pages for name in names] for question in self.questions])

    @cached_property
    def own(self) -> Mask:
        """Which pages are in the question's language, `(Q, P)`."""
        own: Mask = self.languages[None, :] == np.array([question.language for question in self.questions])[:, None]
        return own

    @cached_property
    def others(self) -> list[str]:
        """For each question another language that has an answer, drawn by its hash; empty where no other has one."""
        found = []
        for question, right in zip(self.questions, self.right, strict=True):
            there = sorted({*self.languages[right].tolist()} - {question.language})
            key = f"{question.language} {question.text}".encode()
            number = int.from_bytes(hashlib.sha256(key).digest()[:8])
            found.append(there[number % len(there)] if there else "")
        return found

    def kept(self, number: int) -> Mask:
        """Return the pages of the pool in which a question's answer exists in one other language alone, `(P,)`."""
        kept: Mask = ~(self.right[number] & (self.languages != self.others[number]))
        return kept

    @cached_property
    def groups(self) -> list[str]:
        """What questions share that do not vary independently: nothing, or the page that titles are of."""
        if self.kind == "questions":
            return list(map(str, range(len(self.questions))))
        return [" ".join(sorted(question.pages)) for question in self.questions]

    @cached_property
    def digest(self) -> str:
        """Fingerprint of questions and pages."""
        found = hashlib.sha256(repr([(q.text, q.language, sorted(q.pages)) for q in self.questions]).encode())
        for path in self.files:
            found.update(f"{path.parent.name}/{path.name}\n".encode() + path.read_bytes())
        return found.hexdigest()[:16]


@dataclass(frozen=True)
class Found:
    """Numbers of the pages that answer a question, best first.

    Attributes:
        shown: the page of each hit.
        listed: the same with the translations that a hit names after its page.
    """

    shown: Sequence[int]
    listed: Sequence[int]


def read_lines(path: Path) -> list[Question]:
    """Return the questions of a file."""
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [Question(row["query"], row["language"], frozenset(row["pages"])) for row in rows]


def read_asked(pages: Path, sets: str, titles: str) -> Iterator[Asked]:
    """Yield the sets of questions and of titles, whose names have commas between.

    Args:
        pages: folder of `benchmarks.pages.build`.
        sets: of questions.
        titles: sets whose queries are titles.
    """
    for name in filter(None, sets.split(",")):
        files = sorted((pages / FOLDER / name).glob("*/*.html"))
        if not files or not (QUESTIONS / f"{name}.jsonl").exists():
            raise DataError(f"{pages / FOLDER / name}: no pages with questions; run python -m benchmarks.pages.build")
        yield Asked("questions", name, read_lines(QUESTIONS / f"{name}.jsonl"), files)
    for name in filter(None, titles.split(",")):
        queries = read_queries(pages / "queries" / f"{name}.jsonl", COUNT)
        files = sorted({pages / name / query.language / f"{query.page}.html" for query in queries})
        asked = [Question(query.text, query.language, frozenset([query.page])) for query in queries]
        yield Asked("titles", name, asked, files)


def measure(asked: Asked, found: Iterable[Found], alone: Iterable[Found | None]) -> dict[str, Values]:
    """Return each question's values, `(Q,)`; NaN where a question has no page that a value needs.

    - `own`: reciprocal rank of a right page in the question's language among 10 hits.
    - `any`: the same of a right page in any language.
    - `other`: the same where right pages exist in one other language alone (`Asked.kept`).
    - `first`: 1 if the first hit is in the question's language, else 0.
    - `map@20`: average precision of right pages in all languages.

    Args:
        asked: questions and pages.
        found: the pages found for each.
        alone: the pages found in the pool of `Asked.kept`; None where this is not measured.
    """
    values: dict[str, list[float]] = {name: [] for name in (OWN, ANY, OTHER, FIRST, MAP)}
    for i, (hits, lonely) in enumerate(zip(found, alone, strict=True)):
        right, own = asked.right[i], asked.own[i]
        values[OWN].append(reciprocal(hits.shown, right & own))
        values[ANY].append(reciprocal(hits.shown, right))
        other = right & (asked.languages == asked.others[i])
        values[OTHER].append(np.nan if lonely is None else reciprocal(lonely.shown, other))
        values[FIRST].append(float(own[hits.shown[0]]) if hits.shown else 0.0)
        values[MAP].append(precision(hits.listed, right))
    return {name: np.array(own) for name, own in values.items()}


def reciprocal(shown: Sequence[int], right: Mask) -> float:
    """Return 1 / rank of the first right page among 10; 0 without one, and NaN if no page is right.

    Example:
        >>> reciprocal([2, 0, 1], np.array([True, True, False]))
        0.5
    """
    if not right.any():
        return float("nan")
    return next((1 / rank for rank, page in enumerate(shown[:TOP], 1) if right[page]), 0.0)


def precision(listed: Sequence[int], right: Mask) -> float:
    """Return the average precision of the first 20 pages."""
    hits = right[np.array(listed[:DEEP], np.int64)]
    precisions = np.cumsum(hits) / np.arange(1, len(hits) + 1)
    return float((precisions * hits).sum() / min(right.sum(), DEEP))


def best_pages(scores: NDArray[np.floating]) -> Found:
    """Return pages by one score each; a page of score -inf is not in the pool."""
    order = np.argsort(-scores, kind="stable")[: 2 * DEEP]
    pages = order[np.isfinite(scores[order])].tolist()
    return Found(pages, pages)


def measure_scores(asked: Asked, scores: NDArray[np.floating]) -> dict[str, Values]:
    """Return the values of a system with one score for each page, `(Q, P)`."""
    alone = [
        best_pages(np.where(asked.kept(i), own, -np.inf)) if asked.others[i] else None for i, own in enumerate(scores)
    ]
    return measure(asked, map(best_pages, scores), alone)


# Rows, and what is read from them.

Facts = dict[str, object]


def value_facts(values: Mapping[str, Values], asked: Asked) -> Facts:
    """Return means with intervals, and each question's values in thousandths for pools of several sets."""
    return {
        "values": {name: figures(tested(own, np.zeros_like(own), asked.groups)) for name, own in values.items()},
        "each": {
            name: [None if np.isnan(value) else round(1000 * value) for value in own.tolist()]
            for name, own in values.items()
        },
        "groups": asked.groups if asked.kind == "titles" else [],
    }


def gain_facts(values: Mapping[str, Values], baseline: Mapping[str, Values], asked: Asked) -> Facts:
    """Return mean differences from a baseline with intervals."""
    return {name: figures(tested(own, baseline[name], asked.groups)) for name, own in values.items()}


def tested(values: Values, baseline: Values, groups: Sequence[str]) -> PairedTest | None:
    """Return the test of the questions that have both values; None if there is no such question."""
    both = ~np.isnan(values) & ~np.isnan(baseline)
    names = [group for group, there in zip(groups, both, strict=True) if there]
    return clustered_test(values[both].tolist(), baseline[both].tolist(), names) if names else None


def figures(test: PairedTest | None) -> list[float]:
    """Return mean and interval of a test."""
    found = (test.mean, test.low, test.high) if test else ()
    return [round(each, 5) for each in found if each is not None]


def pooled(rows: Sequence[Mapping[str, object]], name: str) -> tuple[Values, list[str]]:
    """Return the values of all questions of some rows, and their groups, `(Q,)` each."""
    values: list[float] = []
    groups: list[str] = []
    for row in rows:
        each: Sequence[int | None] = row["each"][name]  # type: ignore[index]
        values += [np.nan if value is None else value / 1000 for value in each]
        names: Sequence[object] = row["groups"] or range(len(each))  # type: ignore[assignment]
        groups += [f"{row['set']} {group}" for group in names]
    return np.array(values), groups


def cell(rows: Sequence[Mapping[str, object]], baseline: Sequence[Mapping[str, object]], name: str) -> str:
    """Return the mean of a value, and the difference from a baseline with its interval, times 100.

    The baseline has rows of the same sets in the same order; none leaves the difference out.
    """
    values, groups = pooled(rows, name)
    if not len(values) or np.isnan(values).all():
        return ""
    shown = f"{100 * np.nanmean(values):.1f}"
    test = tested(values, pooled(baseline, name)[0], groups) if baseline else None
    if test is None:
        return shown
    ends = [each for each in (test.low, test.high) if each is not None]
    return f"{shown} {100 * test.mean:+.1f} [{', '.join(f'{100 * end:+.1f}' for end in ends)}]"
