"""Sentence pairs with entailment labels: SNLI, MultiNLI, and AllNLI from sentence-transformers.

`.jsonl` files have objects with `gold_label`, `sentence1` and `sentence2`, `.tsv` and `.csv` files a header with
`sentence1`, `sentence2` and `label` or `gold_label`; of a column `split`, only `train` rows are read. Damaged lines and
pairs with the label `-`, on which the annotators disagreed, are dropped and counted; an unknown label is an error.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Literal

from metasearch.config.roles import Role
from metasearch.config.seeding import stream
from metasearch.data.formats.blank import blank
from metasearch.data.formats.rows import Row, read_rows
from metasearch.data.formats.text_files import Report, suffix_of
from metasearch.errors import DataError, nearest
from metasearch.io import fingerprint_of

Label = Literal["contradiction", "entailment", "neutral"]
LABELS: tuple[Label, ...] = ("contradiction", "entailment", "neutral")
"""In the order of their class numbers in sentence-transformers."""

NO_CONSENSUS = "no consensus"
OTHER_SPLIT = "of another split"


@dataclass(frozen=True, slots=True)
class EntailmentPair:
    """Two sentences, and whether the first entails the second, contradicts it, or neither."""

    premise: str
    hypothesis: str
    label: Label
    languages: tuple[str, str] = ("en", "en")

    roles: ClassVar[Mapping[str, Role]] = {"premise": "text", "hypothesis": "text"}
    ids: ClassVar[tuple[str, ...]] = ()
    score: ClassVar[None] = None
    answers: ClassVar[tuple[str, ...]] = ()

    @property
    def texts(self) -> tuple[str, str]:
        """Premise and hypothesis."""
        return self.premise, self.hypothesis

    def lines(self) -> tuple[str, ...]:
        """Return the label and both sentences in one line."""
        return (f"{self.label}  {self.premise}  |  {self.hypothesis}",)


@dataclass(frozen=True)
class Entailments:
    """Pairs in file order, and a report on the lines."""

    pairs: tuple[EntailmentPair, ...]
    report: Report

    @cached_property
    def fingerprint(self) -> str:
        """Hash of everything that a learner can see."""
        return fingerprint_of((p.premise, p.hypothesis, p.label, *p.languages) for p in self.pairs)

    def hold_out(self, dev: int, seed: int = 0) -> tuple["Entailments", "Entailments"]:
        """Return train and dev, which has at least `dev` pairs; all pairs of a premise are on one side."""
        counts = Counter(pair.premise for pair in self.pairs)
        premises = list(counts)
        held: set[str] = set()
        taken = 0
        # Premises are drawn, not pairs: a premise on both sides would leak what is trained on into dev.
        for i in stream(seed, "entailment", "dev").permutation(len(premises)):
            if taken >= dev:
                break
            held.add(premises[i])
            taken += counts[premises[i]]
        if len(held) == len(premises):
            raise DataError(
                f"dev: {dev} pairs of {len(self.pairs)} with {len(premises)} premises leave no pair for training"
            )
        train = tuple(pair for pair in self.pairs if pair.premise not in held)
        return replace(self, pairs=train), replace(self, pairs=tuple(p for p in self.pairs if p.premise in held))


def read_entailment(paths: Sequence[Path]) -> Entailments:
    """Return the labelled pairs in files of the formats above, in order."""
    pairs: list[EntailmentPair] = []
    whole = Report()
    for path in paths:
        report = Report()
        pairs += _read(path, report)
        whole.include(report)
    return Entailments(tuple(pairs), whole)


def _read(path: Path, report: Report) -> list[EntailmentPair]:
    def damaged(place: str, reason: str) -> None:
        # What stands behind is of this line alone.
        report.read += 1
        report.drop(re.split(": |, got", reason)[0], place)

    pairs: list[EntailmentPair] = []
    for row in read_rows(path, {name: name for name in ("sentence1", "sentence2")}, damaged=damaged):
        report.read += 1
        pair = _pair(row, path)
        if isinstance(pair, EntailmentPair):
            pairs.append(pair)
        else:
            report.drop(pair, "" if pair in (NO_CONSENSUS, OTHER_SPLIT) else row.place)
    if not report.read:
        raise DataError(f"{path}: the file has no pairs")
    if not pairs:
        seen = "; such as " + "; ".join(report.examples) if report.examples else ""
        raise DataError(f"{path}: {report.describe()}: no usable pair{seen}")
    return pairs


def _pair(row: Row, path: Path) -> EntailmentPair | str:
    """Return a row's pair, or the reason to drop it."""
    # Releases of SNLI and MultiNLI have no field for the split; a field with this name means something else.
    if suffix_of(path) != ".jsonl" and row.values.get("split", "train") != "train":
        return OTHER_SPLIT
    texts = {name: value.strip() for name, value in row.values.items() if isinstance(value, str)}
    label = texts.get("label" if "label" in row.values else "gold_label")
    premise, hypothesis = texts.get("sentence1"), texts.get("sentence2")
    if not label:
        return "no label"
    if premise is None or hypothesis is None or blank(premise) or blank(hypothesis):
        return "a sentence is missing"
    if label == "-":
        return NO_CONSENSUS
    if label not in LABELS:
        raise DataError(f"{row.place}: unknown label '{label}'.{nearest(label, LABELS)}")
    return EntailmentPair(premise, hypothesis, label)
