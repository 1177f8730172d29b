"""Cross-validation splits that never let a group (an article, a row) straddle train, dev and test.

The protocol of the MAML-Align paper, checked against its Table 2: cut the groups into k runs in file order, hold one
run out as test, take the last groups of what remains as dev, as many as the test has, and train on the rest. Data may
also come split, or be all test.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from metasearch.config.seeding import stream
from metasearch.config.task import Folds
from metasearch.data.records import Data
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
