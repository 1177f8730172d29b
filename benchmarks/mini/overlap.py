"""Checks that no training text stands in a test set, and writes the corpora without those that do.

    python -m benchmarks.mini.overlap --data ~/data
    python -m benchmarks.mini.overlap --data ~/data --write clean

Both sides of each pair are compared with all texts of Tatoeba (LASER), XQuAD-R (questions, sentences, paragraphs),
SemEval-2017 and STS-b (dev, test), in all of their languages, after NFKC and case folding and without punctuation,
symbols and white space. A training text that is a part of an XQuAD-R paragraph overlaps, too, if 25 characters of it
are left; so does one that such a sentence or question is a part of. The exit code is 1 where anything overlaps.
"""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from benchmarks.common.command import Command
from benchmarks.mini.corpus_lines import Line, read_lines, write_lines
from benchmarks.mini.test_sets import test_sets
from metasearch.compress.output import whole
from metasearch.data.overlap import Index, key
from metasearch.runs.markdown import markdown

_SHOWN = 3


@dataclass(frozen=True)
class Overlap:
    """A training line that stands in a test set.

    Attributes:
        line: the training line.
        place: of the same text in the test set.
    """

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
                normalised = key(text)
                seen[text] = [index.find(normalised) for index in indices]
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


def check(data: Path, corpus: Path, write: Path | None = None) -> tuple[str, int]:
    """Compare a corpus with the test sets; returns the table, and how many lines overlap.

    Args:
        data: folder of the test sets.
        corpus: folder of `en-LL.tsv`.
        write: new folder for the corpus without the lines that overlap, and for the table, `overlap.md`.

    Raises:
        DataError: a file is missing or damaged.
        RunFolderError: the new folder is there already.
    """
    indices = [Index(test) for test in test_sets(data)]
    lines = list(read_lines(corpus))
    by_test_set = overlaps(lines, indices)
    out = {one.line for several in by_test_set.values() for one in several}
    summary = f"{table(by_test_set, indices)}\n\n{len(lines):,} training lines; {len(out):,} overlap."
    if write is not None:
        with whole(write) as folder:
            write_lines(folder, (line for line in lines if line not in out))
            (folder / "overlap.md").write_text(summary + "\n", encoding="utf-8")
        summary += f" The other {len(lines) - len(out):,} are in {write}."
    return summary, len(out)


@click.command(cls=Command)
@click.option("--data", type=click.Path(exists=True, path_type=Path), required=True, help="Folder of the data sets.")
@click.option(
    "--corpus", type=click.Path(exists=True, path_type=Path), help="Training texts; by default DATA/parallel."
)
@click.option(
    "--write",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write the lines that do not overlap to this new folder.",
)
def main(data: Path, corpus: Path | None, write: Path | None) -> None:
    """Compare the training texts with the test sets."""
    summary, count = check(data, corpus or data / "parallel", write)
    click.echo(summary)
    sys.exit(int(count > 0))


if __name__ == "__main__":
    main()
