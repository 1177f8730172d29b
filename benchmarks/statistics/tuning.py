"""How often `metasearch tune` keeps a step that is no better than the base encoder, and what gain it then prints.

    python -m benchmarks.statistics.tuning                   # 1000 tunings of each design: ten minutes on one core
    python -m benchmarks.statistics.tuning --tunings 100

Held-out scores are drawn in which lines do not differ from the base encoder in truth, and `metasearch.search.tune`
makes its choice. Some designs are hard: many small gains with a few large losses, real differences of pages from
`results/pages.jsonl` less their mean, and a line that is better in truth beside the others. A second table has the
interval of a score near the best one, with pages of equal size and with a large one. A row of each design is kept in
`results/tuning.jsonl`; the last of a design counts.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from benchmarks.common.command import Command
from benchmarks.common.provenance import provenance
from benchmarks.common.rows import RESULTS, Row, append_rows, latest_rows, read_rows
from metasearch.runs.markdown import markdown
from metasearch.search.tune.choice import Choice
from metasearch.search.tune.max_t import bounded_test
from metasearch.search.tune.steps import Step
from metasearch.search.tune.table import Table

ROWS = RESULTS / "tuning.jsonl"
Array = NDArray[np.float64]
_FOLDS, _OF_GROUP, _OF_QUESTION = 4, 0.08, 0.15
_LEAST_PAGES = 40
_POOLS = ("multilingual", "balanced", "expanded")


@dataclass(frozen=True)
class Design:
    """Held-out scores without a true difference.

    Attributes:
        lines: steps with their rankings, the base encoder among them.
        groups: of questions.
        questions: of a group.
        largest: share of the questions that are in one group; 0 for groups of one size.
        kind: `normal` differences; `skewed` ones of groups, 0.1 (1 - Exp) with a skewness of -2; `rare losses`, +0.05
            in 90 % of the groups and -0.45 in the others; `real`, differences of pages between two searches, less their
            mean; `one better`, normal ones and a last line that gains 0.15; `near 1`, scores of which most are 1.
    """

    lines: int
    groups: int
    questions: int
    largest: float = 0.0
    kind: str = "normal"

    @property
    def name(self) -> str:
        """What it is called in the table."""
        more = f", one with {100 * self.largest:.0f} % of the questions" if self.largest else ""
        return f"{self.lines} lines, {self.groups} groups of {self.questions}{more}, {self.kind}"


DESIGNS = (
    *(Design(lines, groups, size) for lines in (2, 9, 18) for groups, size in ((8, 1), (12, 4), (40, 3))),
    Design(9, 12, 4, largest=0.6),
    *(
        Design(lines, groups, 1, kind=kind)
        for kind in ("skewed", "rare losses", "real")
        for lines in (2, 9)
        for groups in (8, 12, 20, 40)
    ),
    *(Design(12, groups, 2, kind="one better") for groups in (8, 20)),
    Design(9, 12, 4, kind="near 1"),
)
NEAR_ONE = (12, 24, 48, 96)
"""Groups of one question each, 85 % with the score 1 and the others with any score: the mean is 0.925."""
ONE_LARGE = (11, 30)
"""Questions of the largest of 12 pages; others have one. All questions of a page are right with a chance of 80 %."""


def tuning(design: Design, random: np.random.Generator) -> Table:
    """Return the held-out scores of a tuning."""
    sizes = np.full(design.groups, design.questions)
    if design.largest:
        sizes[0] = round(design.largest / (1 - design.largest) * sizes[1:].sum())
    groups = np.repeat(np.arange(design.groups), sizes)
    scores = np.clip(random.normal(1.05 if design.kind == "near 1" else 0.5, 0.25, len(groups)), 0, 1)
    if design.kind in _GAINS:
        gains = _GAINS[design.kind](design, random)
        scores = scores + np.concatenate([np.zeros((1, design.groups)), gains])[:, groups]
    else:
        noise = random.standard_normal((design.lines, design.groups))[:, groups] * _OF_GROUP
        scores = scores + noise + _OF_QUESTION * random.standard_normal((design.lines, len(groups)))
    scores = np.clip(scores, 0, 1) if design.kind == "near 1" else scores
    lines = tuple((Step(f"step {i // 3}"), _POOLS[i % 3]) for i in range(design.lines))
    folds = groups * _FOLDS // design.groups
    return Table("map@20", lines, scores, folds, tuple(map(str, groups)))  # type: ignore[arg-type]


@cache
def real_differences() -> tuple[Array, ...]:
    """Return differences of pages between searches with and without one option, less their mean, `(pages,)`."""
    keys = ("set", "unit", "system", "projection", "translations", "balanced")
    rows = {tuple(row.get(key, False) for key in keys): row["pages"] for row in read_rows(RESULTS / "pages.jsonl")}
    found = []
    for one, other in combinations(rows, 2):
        own, others = rows[one], rows[other]
        if one[:3] == other[:3] and len(own) >= _LEAST_PAGES and sum(map(bool, one)) != sum(map(bool, other)):
            found.append(np.array([others[page] - own[page] for page in own]) / 1e4)
    return tuple(sign * (each - each.mean()) for each in found for sign in (1, -1) if each.any())


def _skewed(design: Design, random: np.random.Generator) -> Array:
    return np.asarray(0.1 * (1 - random.exponential(size=(design.lines - 1, design.groups))))


def _rare_losses(design: Design, random: np.random.Generator) -> Array:
    return np.where(random.random((design.lines - 1, design.groups)) < 0.9, 0.05, -0.45)


def _real(design: Design, random: np.random.Generator) -> Array:
    """Return the differences of the same pages by other searches of the same set, drawn with replacement."""
    every = real_differences()
    drawn = [every[i] for i in random.integers(len(every), size=design.lines - 1)]
    pages = random.integers(min(map(len, drawn)), size=design.groups)
    return np.array([each[pages] for each in drawn])


def _one_better(design: Design, random: np.random.Generator) -> Array:
    gains = 0.1 * random.standard_normal((design.lines - 1, design.groups))
    gains[-1] = 0.15 + 0.2 * gains[-1]
    return gains


_GAINS: Mapping[str, Callable[[Design, np.random.Generator], Array]] = {
    "skewed": _skewed, "rare losses": _rare_losses, "real": _real, "one better": _one_better,
}  # fmt: skip
"""Kind → gains of all lines but the first, `(lines - 1, groups)`."""


def kept(design: Design, count: int, seed: int) -> dict[str, float]:
    """Return how often another line than the base encoder is kept, and the gains that are printed, times 100.

    Where a line is kept wrongly, `own` is its mean gain on all folds, and `nested` that of folds that did not choose.
    `printed` is the mean of `nested` over all tunings, 0 where the base encoder is kept.
    """
    random, own, nested = np.random.default_rng(seed), [], []
    for table in (tuning(design, random) for _ in range(count)):
        line = table.choose()
        if line and not (design.kind == "one better" and line == design.lines - 1):
            own.append(float((table.scores[line] - table.scores[0]).mean()))
            choice = Choice.of(table)
            nested.append((choice.nested or choice.kept.gain).mean)
    means = {"own": float(np.mean(own or [0.0])), "nested": float(np.mean(nested or [0.0]))}
    found = {name: round(100 * value, 3) for name, value in means.items()}
    return {"kept": len(own) / count, **found, "printed": round(100 * sum(nested) / count, 3)}


def covered(groups: int, count: int, seed: int) -> dict[str, float]:
    """Return how often an interval of scores near 1 contains the mean, and how often it has no length."""
    random, inside, flat = np.random.default_rng(seed), 0, 0
    names, zeros = tuple(map(str, range(groups))), np.zeros(groups)
    for _ in range(count):
        scores = np.where(random.random(groups) < 0.85, 1.0, random.random(groups))
        test = bounded_test(scores, zeros, names, 0, 1)
        assert test.low is not None
        assert test.high is not None
        inside += test.low <= 0.925 <= test.high
        flat += test.high - test.low < 1e-12
    return {"inside": inside / count, "flat": flat / count}


def covered_beside_a_large_page(largest: int, count: int, seed: int) -> dict[str, float]:
    """Return how often an interval contains the mean of pages of which one has most questions."""
    random, names, inside = np.random.default_rng(seed), [*"abcdefghijk", *["large"] * largest], 0
    for _ in range(count):
        right = (random.random(12) < 0.8).astype(np.float64)
        test = bounded_test(np.repeat(right, [1] * 11 + [largest]), np.zeros(11 + largest), names, 0, 1)
        assert test.low is not None
        assert test.high is not None
        inside += test.low <= 0.8 <= test.high
    return {"inside": inside / count, "flat": 0.0}


def choice_table(rows: list[Row]) -> str:
    """Return a line of each design without a difference."""
    last = latest_rows([row for row in rows if "lines" in row["design"]], lambda row: tuple(row["design"].values()))
    heads = ["no line differs in truth", "another is kept, %", "its own gain", "nested gain", "over all tunings"]
    shown: Mapping[str, Callable[[float], str]] = {
        "kept": lambda value: f"{100 * value:.1f}", **dict.fromkeys(("own", "nested", "printed"), "{:+.1f}".format),
    }  # fmt: skip
    lines = [[Design(**row["design"]).name, *(show(row["found"][key]) for key, show in shown.items())] for row in last]
    return markdown(heads, lines)


def interval_table(rows: list[Row]) -> str:
    """Return a line of each number of groups with scores near 1."""
    lines = []
    for key, name in (
        ("near_one", "{} questions, 85 % with score 1"),
        ("one_large", "12 pages, one with {} questions"),
    ):
        last = latest_rows([row for row in rows if key in row["design"]], lambda row, key=key: row["design"][key])
        for row in last:
            shares = (f"{100 * row['found'][each]:.1f}" for each in ("inside", "flat"))
            lines.append([name.format(row["design"][key]), *shares])
    return markdown(["scores", "interval contains the mean, %", "has no length, %"], lines)


def keep_rows(
    designs: Iterable[Any], measure: Callable[[Any, int, int], dict[str, float]], tunings: int, seed: int, results: Path
) -> None:
    """Append a row of each design, a dataclass, with what `measure` finds in so many tunings."""
    for design in designs:
        row = {"design": asdict(design), "tunings": tunings, "seed": seed, "found": measure(design, tunings, seed)}
        append_rows(results, [{**row, **provenance()}])
        click.echo(f"{design}: {row['found']}", err=True)


@click.command(cls=Command)
@click.option("--tunings", type=click.IntRange(min=1), default=1000, show_default=True, help="Of each design.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--results", type=click.Path(path_type=Path), default=ROWS, help="File that rows are appended to.")
def main(tunings: int, seed: int, results: Path) -> None:
    """Simulate, keep a row of each design, and print the tables."""
    designs: list[tuple[Row, Callable[[], dict[str, float]]]] = [
        *((asdict(each), lambda each=each: kept(each, tunings, seed)) for each in DESIGNS),
        *(({"near_one": n}, lambda n=n: covered(n, 2 * tunings, seed)) for n in NEAR_ONE),
        *(({"one_large": n}, lambda n=n: covered_beside_a_large_page(n, 2 * tunings, seed)) for n in ONE_LARGE),
    ]
    for design, simulate in designs:
        row = {"design": design, "tunings": tunings, "seed": seed, "found": simulate()}
        append_rows(results, [{**row, **provenance()}])
        click.echo(f"{design}: {row['found']}", err=True)
    rows = read_rows(results)
    click.echo(f"{choice_table(rows)}\n\n{interval_table(rows)}")


if __name__ == "__main__":
    main()
