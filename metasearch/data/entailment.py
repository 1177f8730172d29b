"""Sentence pairs with what the first says of the second: SNLI, MultiNLI, and AllNLI of sentence-transformers.

- `.jsonl`: a JSON object a line with `gold_label`, `sentence1`, `sentence2`. The label `-` says that the annotators
  did not agree; such pairs are left out.
- `.tsv` (tabs, no quotes) and `.csv`: a header that names `sentence1`, `sentence2` and `label` (or `gold_label`);
  with a column `split`, its `train` rows alone are read.

All of them may be packed as `.gz`. A damaged line is left out and counted; an unknown label ends the reading.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Literal

from metasearch.config.recipe import Role
from metasearch.config.seeding import stream
from metasearch.data.formats import strict_json
from metasearch.data.formats.blank import blank
from metasearch.data.formats.text_files import byte_lines, column_names, csv_rows, suffix_of
from metasearch.data.report import Report
from metasearch.errors import DataError, nearest
from metasearch.io import fingerprint_of

Label = Literal["contradiction", "entailment", "neutral"]
LABELS: tuple[Label, ...] = ("contradiction", "entailment", "neutral")
"""In the order of their class numbers, which is that of sentence-transformers."""

NO_CONSENSUS = "no consensus"
OTHER_SPLIT = "of another split"

_LABEL_COLUMNS = ("label", "gold_label")

# A line that cannot be read has the reason in place of its cells or fields.
_Cells = list[str] | str
_Row = Mapping[str, object] | str


@dataclass(frozen=True, slots=True)
class EntailmentPair:
    """Two sentences, and whether the first entails the second, contradicts it, or neither.

    Attributes:
        languages: languages of premise and hypothesis.
    """

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
    """Pairs in file order, and what became of the lines."""

    pairs: tuple[EntailmentPair, ...]
    report: Report

    @cached_property
    def fingerprint(self) -> str:
        """Hash of everything that a learner can see."""
        return fingerprint_of((p.premise, p.hypothesis, p.label, *p.languages) for p in self.pairs)

    def hold_out(self, dev: int, seed: int = 0) -> tuple["Entailments", "Entailments"]:
        """Return train and dev, which has at least so many pairs; all pairs of a premise are on one side.

        Raises:
            DataError: no premise would be left to train on.
        """
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
                f"dev: {dev} pairs of {len(self.pairs)} with {len(premises)} premises leave none to train on"
            )
        train = tuple(pair for pair in self.pairs if pair.premise not in held)
        return replace(self, pairs=train), replace(self, pairs=tuple(p for p in self.pairs if p.premise in held))


def read_entailment(paths: Sequence[Path]) -> Entailments:
    """Return the labelled pairs of files of the formats above, in their order.

    Raises:
        DataError: a file is missing, of another kind, lacks a column, holds an unknown label, or has no pair to use.
    """
    pairs: list[EntailmentPair] = []
    whole = Report()
    for path in paths:
        report = Report()
        pairs += _read(path, report)
        whole.include(report)
    return Entailments(tuple(pairs), whole)


def _read(path: Path, report: Report) -> list[EntailmentPair]:
    pairs: list[EntailmentPair] = []
    for line, row in _rows(path):
        report.read += 1
        pair = _pair(row, f"{path}:{line}")
        if isinstance(pair, EntailmentPair):
            pairs.append(pair)
        else:
            report.drop(pair, "" if pair in (NO_CONSENSUS, OTHER_SPLIT) else f"{path}:{line}")
    if not report.read:
        raise DataError(f"{path}: the file has no pairs")
    if not pairs:
        seen = "; such as " + "; ".join(report.examples) if report.examples else ""
        raise DataError(f"{path}: {report.describe()}: there is no pair to use{seen}")
    return pairs


def _pair(row: _Row, place: str) -> EntailmentPair | str:
    """Return the pair of a row, or why it is left out."""
    if isinstance(row, str):
        return row
    if row.get("split", "train") != "train":
        return OTHER_SPLIT
    texts = {name: value.strip() for name, value in row.items() if isinstance(value, str)}
    label = texts.get("label" if "label" in row else "gold_label")
    premise, hypothesis = texts.get("sentence1"), texts.get("sentence2")
    if not label:
        return "no label"
    if premise is None or hypothesis is None or blank(premise) or blank(hypothesis):
        return "a sentence is missing"
    if label == "-":
        return NO_CONSENSUS
    if label not in LABELS:
        raise DataError(f"{place}: unknown label '{label}'.{nearest(label, LABELS)}")
    return EntailmentPair(premise, hypothesis, label)


def _rows(path: Path) -> Iterator[tuple[int, _Row]]:
    kind = suffix_of(path)
    if kind == ".jsonl":
        return ((line, _json_row(content)) for line, content in enumerate(byte_lines(path), 1) if content.strip())
    if kind == ".tsv":
        return _table(((line, _cells(content)) for line, content in enumerate(byte_lines(path), 1)), path)
    if kind == ".csv":
        return _table(csv_rows(path), path)
    raise DataError(f"{path}: expected .jsonl, .tsv or .csv, or one of them packed as .gz")


def _json_row(content: bytes) -> _Row:
    try:
        row = strict_json.parse(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return "not UTF-8"
    except strict_json.RepeatedKey:
        return "a key stands twice"
    except (ValueError, RecursionError):
        return "not JSON"
    # Releases of SNLI and MultiNLI name their split in no field; what others keep under that name is not asked for.
    return {key: row[key] for key in row if key != "split"} if isinstance(row, dict) else "not a JSON object"


def _cells(content: bytes) -> _Cells:
    try:
        return content.decode().rstrip("\r\n").split("\t") if content.strip() else []
    except UnicodeDecodeError:
        return "not UTF-8"


def _table(rows: Iterable[tuple[int, _Cells]], path: Path) -> Iterator[tuple[int, _Row]]:
    """Yield rows of cells by the names in the header, the first of them; blank lines are passed over."""
    header: list[str] = []
    for line, cells in rows:
        if not header:
            header = _header(cells, path, line)
        elif isinstance(cells, str):
            yield line, cells
        elif len(cells) == len(header):
            yield line, dict(zip(header, cells, strict=True))
        elif cells:
            yield line, "wrong number of columns"


def _header(cells: _Cells, path: Path, line: int) -> list[str]:
    if isinstance(cells, str):
        raise DataError(f"{path}:{line}: the header is {cells}")
    header = column_names(cells, path, line)
    for wanted in (("sentence1",), ("sentence2",), _LABEL_COLUMNS):
        if not set(wanted) & set(header):
            raise DataError(f"{path}:{line}: the header names no column '{wanted[0]}'.{nearest(wanted[0], header)}")
    return header
