"""The tables of `results/pages.jsonl`."""

from collections.abc import Sequence

import numpy as np

from benchmarks.common.rows import Row, latest_rows
from metasearch.evaluation.statistics.paired import student
from metasearch.runs.markdown import markdown

MAP = "map@20"
SETS = {
    "gnome60": "GNOME help",
    "debian-reference": "Debian Reference",
    "developers-reference": "Developer's Reference",
    "debian-faq": "Debian FAQ",
    "lareqa-sentences": "LAReQA, sentences",
}
_SYSTEMS = ("default", "bm25", "mini", "mini-e5", "e5-lite", "e5", "muse")


def line_of(row: Row) -> tuple[object, ...]:
    """Return what a row is known again by."""
    keys = ("set", "unit", "system", "projection", "translations", "balanced")
    return tuple(row.get(key, False) for key in keys)


def rows_in_order(rows: Sequence[Row], unit: str, names: Sequence[str] = tuple(SETS)) -> list[Row]:
    """Return the latest rows of some sets, by set and system."""
    latest = [row for row in latest_rows(rows, line_of) if row["set"] in names]
    # BM25 reads whole pages in both tables.
    found = [row for row in latest if row["unit"] == unit or row["system"] == "bm25"]

    def place(row: Row) -> tuple[object, ...]:
        return list(SETS).index(row["set"]), _place(row["system"]), *line_of(row)[3:]

    return sorted(found, key=place)


def main_table(rows: Sequence[Row], unit: str = "passage") -> str:
    """Return mAP@20 of each system on each set, and the share of the query's language among 20 hits."""
    kept = rows_in_order(rows, unit)
    there = [name for name in SETS if any(row["set"] == name for row in kept)]
    lines: dict[tuple[object, ...], dict[str, Row]] = {}
    for row in sorted(kept, key=lambda row: (_place(row["system"]), *map(bool, line_of(row)[3:]))):
        lines.setdefault(line_of(row)[2:], {})[row["set"]] = row
    heads = ["system", *(SETS[name] for name in there)]
    body = []
    for found in lines.values():
        cells = [_score(found[name]) if name in found else "" for name in there]
        body.append([_name(next(iter(found.values()))), *cells])
    return markdown(heads, body, left=1)


def languages_table(rows: Sequence[Row], name: str = "gnome60", unit: str = "passage") -> str:
    """Return mAP@20 by language of the query."""
    kept = rows_in_order(rows, unit, [name])
    tags = sorted({tag for row in kept for tag in row["languages"]})
    lines = [[_name(row), *(f"{100 * row['languages'][tag]:.1f}" for tag in tags)] for row in kept]
    return markdown([SETS[name], *tags], lines, left=1)


def balance_table(rows: Sequence[Row]) -> str:
    """Return plain scores and what balancing adds, for answers in many languages and in one, with 95 % intervals."""
    kept = [
        row
        for unit in ("passage", "candidate")
        for row in rows_in_order(rows, unit)
        if row["balanced"] and row["system"] != "bm25" and not row.get("translations")
    ]
    names = {
        "map@20": "all",
        "own alone": "own",
        "other alone": "another",
        "own first": "own first",
        "other first": "another first",
    }
    lines = []
    for row in kept:
        cells = [_change(row["values"][name], row["gains"][name]) for name in names]
        lines.append([SETS[row["set"]], _name({**row, "balanced": False}), *cells])
    return markdown(["set", "system", *names.values()], lines, left=2)


def translations_table(rows: Sequence[Row]) -> str:
    """Return what the map of translations adds to a projection and balanced scores: over queries, and over pages.

    Pages have different numbers of queries, so both means differ; rows have no score of a query for an interval.
    """
    found: dict[tuple[str, str], dict[bool, Row]] = {}
    for row in rows_in_order(rows, "passage"):
        if row["projection"] and row["balanced"]:
            found.setdefault((row["set"], row["system"]), {})[row.get("translations", False)] = row
    lines = []
    for (name, system), own in found.items():
        if len(own) < 2:
            continue
        before, after = own[False], own[True]
        gained = [(after["pages"][page] - score) / 1e4 for page, score in before["pages"].items()]
        test = student(np.array(gained), largest=1.0)
        gains = [
            100 * (after["values"][key][0] - before["values"][key][0]) for key in (MAP, "own alone", "other alone")
        ]
        every, *alone = (f"{each:+.1f}" for each in gains)
        cells = [f"{100 * before['values'][MAP][0]:.1f} {every}", test.shown(), *alone]
        lines.append([SETS[name], f"`{system}`", *cells])
    return markdown(["set", "encoder", "all", "mean over pages", "own", "another"], lines, left=2)


def _change(after: Sequence[float], gain: Sequence[float]) -> str:
    """Return the value before and the gain with its interval; the interval is a point where no query changes."""
    mean, *ends = (100 * value for value in gain)
    return f"{100 * after[0] - mean:.1f} {mean:+.1f} [{', '.join(f'{end:+.1f}' for end in ends)}]"


def _score(row: Row) -> str:
    return f"{100 * row['values'][MAP][0]:.1f} ({100 * row['values']['own'][0]:.0f} %)"


def _name(row: Row) -> str:
    if row["system"] == "default":
        return f"no option (`{row['encoder']}`)"
    added = [name for name in ("projection", "translations", "balanced") if row.get(name)]
    return " + ".join([f"`{row['system']}`" if row["system"] != "bm25" else "BM25", *added])


def _place(system: str) -> int:
    return _SYSTEMS.index(system) if system in _SYSTEMS else len(_SYSTEMS)
