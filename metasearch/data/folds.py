"""Cross-validation splits that never let a group (an article, a row) straddle train, dev and test.

The protocol of the MAML-Align paper, checked against its Table 2: cut the groups into k runs in file order, hold one
run out as test, take the last groups of what remains as dev, as many as the test has, and train on the rest. Data may
also come split, or be all test. Training labels can be reduced, to measure the effect of few labels; a label is the
answer of a question, or the score of a row of pairs.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from metasearch.config.seeding import stream
from metasearch.config.task import Folds
from metasearch.data.records import Data, Labelled, SimilarityData
from metasearch.errors import ConfigError, DataError


@dataclass(frozen=True)
class Split:
    """One fold of a task's data."""

    train: Data
    dev: Data
    test: Data


def split(data: Data, folds: Folds, fold: int) -> Split:
    """Return one fold; its test set is the run of groups with that number, from 0."""
    if folds.method == "kfold":
        parts = _kfold(data.groups, folds, fold)
    elif fold != 0:
        why = "the task comes with one split" if folds.method == "given" else "all of the task is test"
        raise ConfigError(f"fold {fold} is out of range; {why}, fold 0")
    else:
        parts = _read_groups(data) if folds.method == "given" else ((), (), data.groups)
    return Split(*(data.select(groups) for groups in parts))


def hold_out(dev: Data, share: float) -> tuple[Data, Data]:
    """Split dev into a part for meta-valid episodes and a share for the dev score; 0 uses all of dev for both."""
    if share == 0:
        return dev, dev
    if len(dev.groups) < 2:
        raise DataError(
            f"budget.dev_holdout={share}: dev has {len(dev.groups)} articles or rows; splitting needs at least two"
        )
    count = min(max(round(share * len(dev.groups)), 1), len(dev.groups) - 1)  # at least one on each side
    return dev.select(dev.groups[:-count]), dev.select(dev.groups[-count:])


Groups = Sequence[tuple[str, ...]]
"""Groups of train, of dev and of test."""


def _kfold(groups: tuple[str, ...], folds: Folds, fold: int) -> Groups:
    if not 0 <= fold < folds.k:
        raise ConfigError(f"fold {fold} is out of range; the task has folds 0 to {folds.k - 1}")
    if len(groups) < folds.k:
        raise DataError(
            f"{folds.k} folds need at least {folds.k} articles or rows; the data has {len(groups)}. "
            "Lower k of folds in the task, or use more data"
        )
    order = list(groups)
    if folds.shuffle:
        # By the seed of the folds, not of the run: runs with other seeds are tested on the same groups.
        stream(folds.seed, "folds").shuffle(order)
    # Where they do not divide evenly, `array_split` gives the first folds one group more.
    test = [order[i] for i in np.array_split(np.arange(len(order)), folds.k)[fold]]
    held = set(test)
    rest = [group for group in order if group not in held]
    cut = len(rest) - len(test)
    if cut < 1:
        raise DataError(f"{folds.k} folds of {len(order)} articles or rows leave none for training")
    return tuple(rest[:cut]), tuple(rest[cut:]), tuple(test)


def _read_groups(data: Data) -> Groups:
    parts: list[tuple[str, ...]] = []
    for name in ("train", "dev", "test"):
        parts.append(tuple(group for group in data.groups if data.given.get(group) == name))
        if not parts[-1]:
            raise DataError(f"the data has no '{name}' part, although the task declares it")
    return parts


# Few labels.

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
