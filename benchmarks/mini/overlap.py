"""Writes the corpora without the texts of test sets.

Both sides of each pair are compared with all texts of Tatoeba (LASER), XQuAD-R (questions, sentences, paragraphs),
SemEval-2017 and STS-b (dev, test), in all languages, after NFKC and case folding and without punctuation, symbols and
white space. A training text overlaps, too, if 25 characters of it are part of an XQuAD-R paragraph, or if it contains
such a sentence or question.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.mini.corpus_lines import Line, read_lines, write_lines
from benchmarks.mini.test_sets import TestSet, test_sets
from metasearch.data.formats.blank import comparison_key
from metasearch.io.output import whole
from metasearch.runs.markdown import markdown

_SHOWN = 3
_LEAST = 25
"""Characters of a comparison key from which being a part of another one says something."""


class Index:
    """A searchable index of a test set's texts."""

    def __init__(self, test: TestSet) -> None:
        self.name = test.name
        self.size = len(test.texts)
        self.places: dict[str, str] = {}
        for text, place in test.texts:
            if key := comparison_key(text):
                self.places.setdefault(key, place)
        self.passages = [(comparison_key(text), place) for text, place in test.passages]
        # Hashes take a fraction of the memory of the texts; what they find is looked at.
        self.parts = {hash(text[i : i + _LEAST]) for text, _ in self.passages for i in range(len(text) - _LEAST + 1)}
        self.heads: dict[str, list[str]] = {}
        if self.passages:
            for text in self.places:
                if len(text) >= _LEAST:
                    self.heads.setdefault(text[:_LEAST], []).append(text)

    def find(self, key: str) -> str | None:
        """Return the place of a comparison key, or None."""
        return self.places.get(key) or self._within(key) or self._around(key)

    def _within(self, key: str) -> str | None:
        """Return a passage that the text is a part of."""
        if len(key) < _LEAST or hash(key[:_LEAST]) not in self.parts:
            return None
        return next((f"{place} (part)" for passage, place in self.passages if key in passage), None)

    def _around(self, key: str) -> str | None:
        """Return a test-set text that is part of this text."""
        if self.heads:
            for i in range(len(key) - _LEAST + 1):
                for known in self.heads.get(key[i : i + _LEAST], ()):
                    if key.startswith(known, i):
                        return f"{self.places[known]} (contained)"
        return None


@dataclass(frozen=True)
class Overlap:
    """A training line, and the place of the same text in a test set."""

    line: Line
    place: str


def overlaps(lines: Iterable[Line], indices: Sequence[Index]) -> dict[str, list[Overlap]]:
    """Return, for each test set, the training lines of which a side stands in it."""
    by_test_set: dict[str, list[Overlap]] = {index.name: [] for index in indices}
    seen: dict[str, list[str | None]] = {}
    for line in lines:
        for text in (line.source, line.target):
            # Many pairs share their English side.
            if text not in seen:
                key = comparison_key(text)
                seen[text] = [index.find(key) for index in indices]
        for index, first, second in zip(indices, seen[line.source], seen[line.target], strict=True):
            if place := first or second:
                by_test_set[index.name].append(Overlap(line, place))
    return by_test_set


def table(by_test_set: dict[str, list[Overlap]], indices: Sequence[Index]) -> str:
    """Return a table of test sets: texts, training lines that overlap, and some of these."""
    rows = []
    for index in indices:
        lines = by_test_set[index.name]
        shown = "; ".join(f"{one.line.place} = {one.place}" for one in lines[:_SHOWN])
        rows.append([index.name, f"{index.size:,}", f"{len(lines):,}", shown + "; ..." * (len(lines) > _SHOWN)])
    return markdown(["test set", "texts", "training lines", "such as"], rows)


def check(data: Path, corpus: Path, output: Path) -> str:
    """Write a corpus (`en-LL.tsv`) without the lines in test sets, and the table, `overlap.md`; return the table.

    Raises:
        DataError: a file is missing or damaged.
        RunFolderError: the new folder is there already.
    """
    indices = [Index(test) for test in test_sets(data)]
    lines = list(read_lines(corpus))
    by_test_set = overlaps(lines, indices)
    out = {one.line for several in by_test_set.values() for one in several}
    summary = f"{table(by_test_set, indices)}\n\n{len(lines):,} training lines; {len(out):,} overlap."
    with whole(output) as folder:
        write_lines(folder, (line for line in lines if line not in out))
        (folder / "overlap.md").write_text(summary + "\n", encoding="utf-8")
    return f"{summary} The other {len(lines) - len(out):,} are in {output}."
