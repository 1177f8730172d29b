"""Score tables in Markdown."""

from collections.abc import Iterable, Mapping, Sequence

from metasearch.config.measure import RETRIEVAL_POOLS, Pool, is_rank
from metasearch.runs.rows import MEAN, Row

DIRECTIONS: tuple[Pool, ...] = ("xx-en", "en-xx", "both")


def by_language(rows: Sequence[Row], split: str, pool: str | None = None) -> str:
    """Return learners × languages, a table per measure, values times 100."""
    # Only means over groups of languages have `found`: how many of the group have data.
    chosen = [row for row in rows if row["split"] == split and "found" not in row]
    pool = pool or (chosen[0]["pool"] if chosen else None)
    chosen = [row for row in chosen if row["pool"] == pool]
    label = f"{split}, {pool}" if pool in RETRIEVAL_POOLS[1:] else split
    parts = []
    for measure in _distinct(row["measure"] for row in chosen):
        cells = {(row["learner"], row["language"]): row["value"] for row in chosen if row["measure"] == measure}
        languages = _distinct(language for _, language in cells if language != MEAN)
        learners = _distinct(learner for learner, _ in cells)
        texts = {key: shown(measure, value) for key, value in cells.items()}
        parts.append(_grid(f"{measure} ({label})", learners, [*languages, MEAN], texts))
    return "\n\n".join(parts)


def matrix(rows: Sequence[Row], measure: str) -> str:
    """Return the matrix question language × candidate language, values times 100, diagonal monolingual."""
    cells = {
        (row["language"], row["candidates"]): shown(measure, row["value"])
        for row in rows
        if row["measure"] == measure and row["pool"] in ("bilingual", "monolingual") and row["language"] != MEAN
    }
    languages = sorted({asked for asked, _ in cells})
    return _grid(f"{measure}: question \\ candidates", languages, languages, cells)


def pool_means(rows: Sequence[Row]) -> str:
    """Return the mean over languages, or language pairs, of each measure in each pool, values times 100."""
    means = [row for row in rows if row["language"] == MEAN]
    cells = {(row["measure"], row["pool"]): shown(row["measure"], row["value"]) for row in means}
    measures, pools = (_distinct(key[side] for key in cells) for side in (0, 1))
    return _grid("mean", measures, pools, cells)


def by_direction(rows: Sequence[Row], split: str) -> str:
    """Return language × translation direction, a table per learner and measure, values times 100."""
    chosen = [row for row in rows if row["split"] == split and row["pool"] in DIRECTIONS]
    parts = []
    for learner, measure in dict.fromkeys((row["learner"], row["measure"]) for row in chosen):
        own = [row for row in chosen if (row["learner"], row["measure"]) == (learner, measure)]
        cells = {(row["language"], row["pool"]): row["value"] for row in own}
        of_groups = {row["language"]: f"{row['found']} of {row['listed']}" for row in own if "found" in row}
        names = _distinct(name for name, _ in cells if name not in of_groups)
        shown = {name: [percent(cells.get((name, pool))) for pool in DIRECTIONS] for name, _ in cells}
        heads = [name.replace("-", " → ") for name in DIRECTIONS[:2]] + [MEAN]
        parts.append(markdown([f"{measure} of {learner} ({split})", *heads], [[n, *shown[n]] for n in names]))
        if of_groups:
            lines = [[name.removeprefix("group "), count, *shown[name]] for name, count in of_groups.items()]
            parts.append(markdown(["mean over the group", "languages", *heads], lines))
    return "\n\n".join(parts)


def tables(rows: Sequence[Row], split: str, measures: Sequence[str]) -> str:
    """Return all tables of an evaluation: by language or direction, the language matrix, and means of pools."""
    shown = dict.fromkeys(row["pool"] for row in rows)
    if set(shown) == set(DIRECTIONS):
        return by_direction(rows, split)
    # The diagonal of the matrix is the monolingual table.
    matrix_pools = {"bilingual", "monolingual"} if "bilingual" in shown else set()
    found = [by_language(rows, split, pool) for pool in shown if pool not in matrix_pools]
    if matrix_pools:
        scored = {row["measure"] for row in rows if row["pool"] in matrix_pools}  # measures of languages have none
        found += [matrix(rows, measure) for measure in measures if measure in scored]
    if matrix_pools or len(shown) > 1:
        found.append(pool_means(rows))
    return "\n\n".join(found)


def _grid(head: str, lines: Sequence[str], columns: Sequence[str], cells: Mapping[tuple[str, str], str]) -> str:
    """Return a table of values by line and column; a cell without a value is empty."""
    return markdown([head, *columns], [[line, *(cells.get((line, c), "") for c in columns)] for line in lines])


def markdown(header: Sequence[str], lines: Sequence[Sequence[str]], left: int | Sequence[bool] = 1) -> str:
    """Return an aligned Markdown table."""
    table = [list(header), *map(list, lines)]
    # Some readers of Markdown want three dashes below a head.
    widths = [max(3, *(len(line[i]) for line in table)) for i in range(len(header))]
    set_left = [i < left for i in range(len(header))] if isinstance(left, int) else left
    rule = ["-" * width if set_left[i] else "-" * (width - 1) + ":" for i, width in enumerate(widths)]
    padded = [
        [
            cell.ljust(width) if set_left[i] else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        for line in (table[0], rule, *table[1:])
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in padded)


def fact_table(title: str, facts: Mapping[str, str]) -> str:
    """Return a table of facts: name and value."""
    return markdown([title, ""], [list(fact) for fact in facts.items()], left=2)


def shown(measure: str, value: float | None) -> str:
    """Return a score times 100, or a rank, with two decimals; empty for None."""
    return f"{value:.2f}" if value is not None and is_rank(measure) else percent(value)


def percent(value: float | None) -> str:
    """Return a score times 100 with two decimals; empty for None."""
    return "" if value is None else f"{100 * value:.2f}"


def _distinct(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))
