"""Files of scored sentence pairs without a task: STS benchmarks, and what a cross-encoder labelled.

A file is a CSV without header, `sentence,sentence,score`, as stsb-multi-mt is, or the same with tabs and no quotes;
either may be packed as `.gz`. Its name gives the languages: `stsb-en-train.csv` is English, `ar-en.csv` Arabic and
English; two languages stand side by side, as other words may have two letters, too. Rows of the same number are
translations of each other in files whose names differ in the languages alone.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from metasearch.data.gold import SCORE_MAX, score_of
from metasearch.data.records import ScoredPair
from metasearch.errors import DataError
from metasearch.formats.packed import unpacked
from metasearch.formats.text_files import csv_rows, sentence_of, suffix_of, tsv_rows
from metasearch.spec.seeding import stream

Row = tuple[str, str, float]
"""Two sentences, and their similarity from 0 to 1."""


def read_scored(paths: Sequence[Path]) -> tuple[ScoredPair, ...]:
    """Return the pairs of CSV and TSV files, in their order.

    Raises:
        DataError: a file is missing or damaged, with file and line, or its name tells no language.
    """
    pairs: list[ScoredPair] = []
    for path in paths:
        languages, series = languages_of(path)
        rows = enumerate(scored_rows(path), 1)
        pairs += [ScoredPair("-".join(languages), languages, *row, f"{series}:{number}") for number, row in rows]
    return tuple(pairs)


def scored_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a file, whatever its name; `DataError` where it is damaged, empty, or neither CSV nor TSV."""
    rows_of = {".csv": csv_rows, ".tsv": tsv_rows}.get(suffix_of(path))
    if rows_of is None:
        raise DataError(f"{path}: expected a file of scored pairs in .csv, .csv.gz, .tsv or .tsv.gz")
    empty = True
    for line, row in rows_of(path):
        if not row:
            continue
        if len(row) != 3:
            raise DataError(f"{path}:{line}: expected sentence, sentence, score; got {len(row)} columns")
        first, second = (sentence_of(cell, path, line) for cell in row[:2])
        yield first, second, score_of(row[2], path, line)
        empty = False
    if empty:
        raise DataError(f"{path}: the file is empty")


def scored_csv(rows: Iterable[Row]) -> str:
    """Return rows as the text of a CSV without header, with scores from 0 to 5.

    `scored_rows` reads the same rows back, to the last bit, where texts are stripped and scores are the quotient of a
    number and 5, as readers give them.
    """
    file = io.StringIO(newline="")
    # Sentences are always quoted, so that no file begins with what could be taken for a byte-order mark.
    writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerows((first, second, _written(score)) for first, second, score in rows)
    return file.getvalue()


def split_dev(
    pairs: Sequence[ScoredPair], count: int, seed: int = 0
) -> tuple[tuple[ScoredPair, ...], tuple[ScoredPair, ...]]:
    """Return train and dev of so many rows, each in the order of the pairs; all translations of a row go the same way.

    Raises:
        DataError: no row would be left to train on.
    """
    groups = list(dict.fromkeys(pair.group for pair in pairs))
    if count >= len(groups):
        raise DataError(f"dev: {count} rows of {len(groups)} leave none to train on")
    chosen = stream(seed, "scored", "dev").choice(len(groups), size=count, replace=False)
    held = {groups[i] for i in chosen}
    train = tuple(pair for pair in pairs if pair.group not in held)
    return train, tuple(pair for pair in pairs if pair.group in held)


def languages_of(path: Path) -> tuple[tuple[str, str], str]:
    """Return the languages in a file's name, and the name without them: `stsb-en-train` is of series `stsb-train`.

    Raises:
        DataError: it tells no language, or may tell two that do not stand side by side.
    """
    words = re.findall(r"[^-_.]+", unpacked(path.name).rsplit(".", 1)[0])
    codes = [word for word in words if re.fullmatch(r"[a-z]{2}", word)]
    if len(codes) not in (1, 2):
        raise DataError(
            f"{path}: its name tells no language; name it such as stsb-en-train.csv or ar-en.csv, "
            "with codes of two letters"
        )
    if len(codes) == 2 and words.index(codes[0]) + 1 != len(words) - words[::-1].index(codes[1]) - 1:
        raise DataError(
            f"{path}: its name may tell two languages, '{codes[0]}' and '{codes[1]}', which do not stand side by side; "
            f"name it such as {codes[0]}-{codes[1]}.csv, or leave out the word that is no language"
        )
    return (codes[0], codes[-1]), "-".join(word for word in words if word not in codes) or "row"


def _written(score: float) -> float:
    """Return the number from 0 to 5 that is read back as this score, and of several one with fewer digits.

    Where score = fl(m / 5), fl(5 · score) / 5 rounds to it. With u its last place, 5 · score is at most 2.5 u from
    m: the product is m where numbers of its size are 8 u apart, and at most 2 u off where they are 4 u apart.
    """
    product = float(score) * SCORE_MAX
    short = float(f"{product:.15g}")
    return short if short / SCORE_MAX == score else product
