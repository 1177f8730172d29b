"""Reduce training labels, to measure the effect of few labels.

A label is the answer of a question, or the score of a row of pairs.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from metasearch.config.seeding import stream
from metasearch.data.records import RetrievalData, SimilarityData
from metasearch.errors import DataError

Labelled = RetrievalData | SimilarityData
Key = TypeVar("Key")


def with_labels(train: Labelled, count: int, seed: int, asked: Collection[str]) -> Labelled:
    """Return train data with `count` answered questions per language, or `count` rows per pair.

    They are drawn by the seed, all in one order: where languages have the same questions, translations are chosen
    together, and what is chosen of a smaller number is chosen of a larger one, too. All candidates stay, as texts that
    may be mined negatives.
    """
    if isinstance(train, SimilarityData):
        return _scored(train, count, seed)
    ids: dict[str, list[str]] = {language: [] for language in sorted(asked)}
    for question in train.questions:
        if question.language in ids and question.id in train.answers:
            ids[question.language].append(question.id)
    _require(count, {f"questions with answers in {language}": len(own) for language, own in ids.items()})
    chosen = {language: {ids[language][i] for i in places} for language, places in _first(ids, count, seed).items()}
    known = frozenset[str]().union(*chosen.values())
    questions = (each for each in train.questions if each.id in chosen.get(each.language, ()))
    candidates = (replace(c, answers=tuple(own for own in c.answers if own in known)) for c in train.candidates)
    return replace(train, questions=tuple(questions), candidates=tuple(candidates))


def _scored(train: SimilarityData, count: int, seed: int) -> SimilarityData:
    """Return the scored rows for each language pair."""
    numbers: dict[frozenset[str], list[int]] = {}
    for i, pair in enumerate(train.pairs):
        numbers.setdefault(frozenset(pair.languages), []).append(i)
    groups = {key: [train.pairs[i].group for i in own] for key, own in numbers.items()}
    _require(count, {f"rows of {'-'.join(sorted(key))}": len(own) for key, own in groups.items()})
    chosen = {numbers[key][i] for key, places in _first(groups, count, seed).items() for i in places}
    return replace(train, pairs=tuple(pair for i, pair in enumerate(train.pairs) if i in chosen))


def _first(named: Mapping[Key, Sequence[str]], count: int, seed: int) -> dict[Key, list[int]]:
    """Return the positions of `count` names per list: the first ones in one shared random order."""
    names = list(dict.fromkeys(name for own in named.values() for name in own))
    rank = {names[i]: place for place, i in enumerate(stream(seed, "labels").permutation(len(names)))}
    found = {}
    for key, own in named.items():
        # Stable: of equal names the first one of the list comes first.
        order = np.argsort([rank[name] for name in own], kind="stable")
        found[key] = [int(i) for i in order[:count]]
    return found


def _require(count: int, found: Mapping[str, int]) -> None:
    """Raise `DataError` if any kind has fewer labels, with the largest possible number."""
    for what, there in found.items():
        if there < count:
            most = min(found.values())
            fits = f"; --set labels={most} fits" if most else ""
            raise DataError(f"labels: {count} {what} are requested; train has {there}{fits}")
