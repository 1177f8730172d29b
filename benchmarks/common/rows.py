"""Rows of `benchmarks/results/*.jsonl`: read and appended."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

Row = dict[str, Any]
RESULTS = Path(__file__).resolve().parents[1] / "results"


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a results file; none where there is no file yet."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.is_file() else []


def append_rows(path: Path, rows: Iterable[Row]) -> None:
    """Append rows to a JSON-lines file, making its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def by_keys(*names: str, scores: str = "") -> Callable[[Row], tuple[object, ...]]:
    """Return the identity of rows that differ in the values of some keys.

    Of the key `scores`, which holds scores if a row has any, only their presence counts.
    """

    def identity(row: Row) -> tuple[object, ...]:
        return tuple(bool(row[name]) if name == scores else row[name] for name in names)

    return identity


def latest_rows(rows: Iterable[Row], identity: Callable[[Row], object]) -> list[Row]:
    """Return the last row of each identity, in the order in which the identities first came."""
    return list({identity(row): row for row in rows}.values())


def append_new_rows(path: Path, rows: Iterable[Row], identity: Callable[[Row], object]) -> None:
    """Append those rows whose identity no row of the file has, so that a repeated command leaves the file as it is."""
    known = {identity(row) for row in read_rows(path)}
    append_rows(path, [row for row in rows if identity(row) not in known])
