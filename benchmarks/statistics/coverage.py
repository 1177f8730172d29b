"""How often the interval of fixed models misses the true difference, with few or unequal articles: 5 % are promised.

    python -m benchmarks.statistics.coverage                  # 4000 studies of each design: five minutes on one core
    python -m benchmarks.statistics.coverage --studies 400

Two fixed models are scored on questions of articles. In most designs a difference is the sum of normal effects of the
article (of a share of the variance) and of the question. Near 1 a question has the score 1 but for a share of failures,
which varies between articles; a failure scores uniformly from 0 to 1. Beside the interval of `metasearch compare` stand
the percentiles of a bootstrap over articles. A row of each design is kept in `results/coverage.jsonl`.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from benchmarks.common.command import Command
from benchmarks.common.provenance import provenance
from benchmarks.common.rows import RESULTS, Row, append_rows, latest_rows, read_rows
from benchmarks.statistics.methods import bootstrapped, omitted
from metasearch.runs.markdown import markdown

Array = NDArray[np.float64]
ROWS = RESULTS / "coverage.jsonl"
SHOWN = "compare", "bootstrap"
MISSED = "95 % intervals that miss the true difference, in %"


@dataclass(frozen=True)
class Design:
    """Questions of each article of a fold, and how two models score them.

    Attributes:
        sizes: number of questions of each article.
        folds: number of such folds.
        of_article: share of the variance that is the article's, of normal differences.
        failures: mean share of failures of each model, near scores of 1; normal differences without.
    """

    name: str
    sizes: tuple[int, ...]
    folds: int = 1
    of_article: float = 0.3
    failures: tuple[float, float] | None = None

    @property
    def truth(self) -> float:
        """The true difference; a failure scores 0.5 in the mean."""
        one, other = self.failures or (0.0, 0.0)
        return (other - one) / 2


ONE_LARGE, GROWING = (66, *(4,) * 11), tuple(2**i for i in range(8))
NEAR_1 = (0.05, 0.05)
DESIGNS = (
    *(Design(f"{count} articles of 10 questions", (10,) * count) for count in (2, 3, 5, 10, 48)),
    Design("5 articles, none has an effect", (10,) * 5, of_article=0.0),
    Design("5 folds of 5 articles", (10,) * 5, 5),
    Design("12 articles, one has 60 % of the questions", ONE_LARGE),
    Design("likewise, none has an effect", ONE_LARGE, of_article=0.0),
    Design("5 folds of such 12", ONE_LARGE, 5),
    Design("8 articles, each twice the one before", GROWING),
    *(Design(f"{count} articles, both models near 1", (10,) * count, failures=NEAR_1) for count in (5, 10, 48)),
    *(
        Design(f"{count} articles, one near 1, the other at 1", (10,) * count, failures=(0.05, 0))
        for count in (5, 10, 48)
    ),
)
_WIDE = 10.0
"""How alike the failures of articles are: the sum of both parameters of their beta distribution."""


def studies(design: Design, count: int, random: np.random.Generator) -> Iterator[Array]:
    """Yield mean differences of the articles, `(F, A)`."""
    sizes = np.array(design.sizes)
    for _ in range(count):
        if design.failures:
            one, other = (_near_1(rate, sizes, design.folds, random) for rate in design.failures)
            yield one - other
        else:
            article, question = (random.standard_normal((design.folds, len(sizes))) for _ in range(2))
            yield design.of_article**0.5 * article + ((1 - design.of_article) / sizes) ** 0.5 * question


def _near_1(rate: float, sizes: NDArray[np.int64], folds: int, random: np.random.Generator) -> Array:
    """Return the mean score of each article's questions, `(F, A)`."""
    own = random.beta(rate * _WIDE, (1 - rate) * _WIDE, (folds, len(sizes))) if rate else np.zeros((folds, len(sizes)))
    lost = [[random.random(random.binomial(n, p)).sum() / n for n, p in zip(sizes, row, strict=True)] for row in own]
    return 1.0 - np.array(lost)


def missed(design: Design, count: int, seed: int) -> dict[str, float]:
    """Return the share of studies whose interval misses the true difference, by method."""
    random, sizes = np.random.default_rng(seed), np.tile(design.sizes, (design.folds, 1))
    found = []
    for study in studies(design, count, np.random.default_rng(seed)):
        intervals = omitted(study, sizes), bootstrapped(study, sizes, random)
        found.append([each.excludes(design.truth) for each in intervals])
    return dict(zip(SHOWN, np.mean(found, axis=0).tolist(), strict=True))


def coverage_table(rows: list[Row]) -> str:
    """Return a line of each design: the share of intervals that miss the true difference, in percent."""
    last = latest_rows(rows, lambda row: row["design"]["name"])
    lines = [[row["design"]["name"], *(f"{100 * row['missed'][name]:.1f}" for name in SHOWN)] for row in last]
    return markdown([MISSED, "fixed models", "percentiles of a bootstrap"], lines)


@click.command(cls=Command)
@click.option("--studies", "count", type=click.IntRange(min=1), default=4000, show_default=True, help="Of each design.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--results", type=click.Path(path_type=Path), default=ROWS, help="File that rows are appended to.")
def main(count: int, seed: int, results: Path) -> None:
    """Simulate, keep a row of each design, and print the table."""
    for design in DESIGNS:
        row = {"design": asdict(design), "studies": count, "seed": seed, "missed": missed(design, count, seed)}
        append_rows(results, [{**row, **provenance()}])
        click.echo(f"{design.name}: {row['missed']}", err=True)
    click.echo(coverage_table(read_rows(results)))


if __name__ == "__main__":
    main()
