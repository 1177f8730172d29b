"""Files of scored sentence pairs without a task: STS benchmarks, and labels by a cross-encoder.

A file is a CSV without header, `sentence,sentence,score`, as stsb-multi-mt is, or the same with tabs and no quotes;
either may be packed as `.gz`. Its name gives the languages: `stsb-en-train.csv` is English, `ar-en.csv` Arabic and
English, `sts-pt-BR-en.csv` Brazilian Portuguese and English. Rows of the same number are translations of each other in
files whose names differ in the languages alone.
"""

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from metasearch.config.languages import parse_name
from metasearch.config.seeding import stream
from metasearch.data.formats.rows import read_rows
from metasearch.data.formats.text_files import strip_text, unpacked
from metasearch.data.records import ScoredPair
from metasearch.errors import DataError

# Gold similarity: from 0 to 5 in files, from 0 to 1 in records.

_CODE = re.compile(r"(?<![A-Za-z0-9])[a-z]{2}(?:[-_][A-Z][a-z]{3})?(?:[-_][A-Z]{2})?(?![A-Za-z0-9])")
"""A language in a file's name, with script and region."""
SCORE_MAX = 5.0
"""Gold similarity goes from 0 to 5 in files; records hold it divided by this."""


def score_of(text: str, place: str) -> float:
    """Return a score written as a number from 0 to 5, scaled to 0 to 1."""
    try:
        score = float(text)
    except ValueError:
        score = math.nan
    # Written so that NaN is refused, too.
    if not 0.0 <= score <= SCORE_MAX:
        raise DataError(f"{place}: expected a score from 0 to {SCORE_MAX:g}, got '{text}'")
    return score / SCORE_MAX


ScoredRow = tuple[str, str, float]
"""Two sentences, and their similarity from 0 to 1."""


def read_scored(paths: Sequence[Path]) -> tuple[ScoredPair, ...]:
    """Return the pairs in CSV and TSV files, in order."""
    pairs: list[ScoredPair] = []
    for path in paths:
        languages, series = read_name(path)
        rows = enumerate(scored_rows(path), 1)
        pairs += [ScoredPair("-".join(languages), languages, *row, f"{series}:{number}") for number, row in rows]
    return tuple(pairs)


def scored_rows(path: Path) -> Iterator[ScoredRow]:
    """Yield the rows (sentence, sentence, score) in a CSV or TSV; `DataError` names file and line."""
    empty = True
    for row in read_rows(path, names=("sentence1", "sentence2", "score")):
        first, second = (strip_text(row.values[name] or "", row.place) for name in ("sentence1", "sentence2"))
        yield first, second, score_of(row.values["score"] or "", row.place)
        empty = False
    if empty:
        raise DataError(f"{path}: the file is empty")


def split_dev(
    pairs: Sequence[ScoredPair], count: int, seed: int = 0
) -> tuple[tuple[ScoredPair, ...], tuple[ScoredPair, ...]]:
    """Return train and dev, in order; all translations of a row are in the same part."""
    groups = list(dict.fromkeys(pair.group for pair in pairs))
    if count >= len(groups):
        raise DataError(f"dev: {count} rows of {len(groups)} leave none for training")
    chosen = stream(seed, "scored", "dev").choice(len(groups), size=count, replace=False)
    held = {groups[i] for i in chosen}
    train = tuple(pair for pair in pairs if pair.group not in held)
    return train, tuple(pair for pair in pairs if pair.group in held)


def read_name(path: Path) -> tuple[tuple[str, str], str]:
    """Return the languages in a file's name, and the name without them: `stsb-en-train` is of series `stsb-train`."""
    stem = unpacked(path.name).rpartition(".")[0]
    found = [match for match in _CODE.finditer(stem) if parse_name(match[0], cased=True, common=True)]
    if not found:
        raise DataError(
            f"{path}: no language in its name; rename it to something like stsb-en-train.csv or ar-en.csv, with codes "
            "of two letters, and regions in capitals"
        )
    first, last = found[0], found[-1]
    if len(found) > 2 or (len(found) == 2 and last.start() - first.end() > 1):
        raise DataError(
            f"{path}: its name has several words that may be languages, {' and '.join(code[0] for code in found)}; "
            "rename it to something like ar-en.csv or sts-pt-BR-en.csv"
        )
    words = re.findall(r"[^-_.]+", f"{stem[: first.start()]}-{stem[last.end() :]}")
    following = re.match(r"[-_][A-Za-z]+", stem[last.end() :])
    if following and (tag := parse_name(last[0] + following[0])):
        raise DataError(f"{path}: '{last[0]}{following[0]}' in its name may be {tag}; write {tag}, or rename the file")
    return (parse_name(first[0]), parse_name(last[0])), "-".join(words) or "row"
