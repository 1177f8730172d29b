"""TREC run files: the ranking of a system, `query Q0 document rank score system` on each line."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from metasearch.data.formats.text_files import text_lines
from metasearch.errors import DataError
from metasearch.io import atomic_write


@dataclass(frozen=True, slots=True)
class RunLine:
    """A document that a system found."""

    query: str
    document: str
    rank: int
    score: float
    system: str
    place: str = ""


def read_run(path: Path) -> dict[str, list[RunLine]]:
    """Return query → lines, the highest score first; equal scores are in the order of the ranks, then of the lines."""
    found: dict[str, list[RunLine]] = {}
    seen: dict[tuple[str, str], str] = {}
    system = ""
    for number, text in text_lines(path):
        if not text.strip():
            continue
        line = _parse(text, f"{path}:{number}")
        system = system or line.system
        if line.system != system:
            raise DataError(f"{line.place}: system '{line.system}', but '{system}' above; write a file for each system")
        first = seen.setdefault((line.query, line.document), line.place)
        if first != line.place:
            raise DataError(f"{line.place}: duplicate document '{line.document}' for this query, first in {first}")
        found.setdefault(line.query, []).append(line)
    if not found:
        raise DataError(f"{path}: the file has no lines")
    return {query: sorted(lines, key=lambda line: (-line.score, line.rank)) for query, lines in found.items()}


def write_run(path: Path, lines: Iterable[RunLine]) -> None:
    """Write a run file, whole or not at all."""
    written = []
    for line in lines:
        for name in (line.query, line.document, line.system):
            if not name or name.split() != [name]:
                raise DataError(f"{path}: '{name}' cannot be a name in a TREC run file, which has no white space")
        # `repr` has all digits of a score, so that reading it back changes no order.
        written.append(f"{line.query} Q0 {line.document} {line.rank} {line.score!r} {line.system}\n")
    atomic_write(path, "".join(written).encode())


def _parse(text: str, place: str) -> RunLine:
    cells = text.split()
    if len(cells) != 6:
        raise DataError(f"{place}: expected 'query Q0 document rank score system', got {text.strip()[:60]!r}")
    query, _, document, rank, score, system = cells
    try:
        place_in_ranking, value = int(rank), float(score)
    except ValueError:
        raise DataError(f"{place}: rank '{rank}' and score '{score}': expected a whole number and a number") from None
    if not math.isfinite(value):
        raise DataError(f"{place}: score '{score}' is not finite")
    return RunLine(query, document, place_in_ranking, value, system, place)
