"""The choice of a step: the simplest one that is not significantly worse than the best."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from metasearch.config.measure import BALANCED, EXPANDED
from metasearch.evaluation.report.build import files
from metasearch.evaluation.report.section import SCORES, Chart, Report, Row, Section
from metasearch.evaluation.report.table import Cell, Line, Table
from metasearch.evaluation.statistics.bootstrap import Interval
from metasearch.evaluation.statistics.paired import PairedTest, clustered_test
from metasearch.runs.folder import RunFolder
from metasearch.runs.per_query_results import QueryResults, load, query_results_path
from metasearch.runs.rows import MEAN
from metasearch.version import __version__

ALPHA = 0.05
_RANKED: Mapping[str, str] = {BALANCED: "balanced scores", EXPANDED: "document expansion"}
OPTIONS: Mapping[str, str] = {BALANCED: " --balance", EXPANDED: " --expand"}
"""Pool → the option of `metasearch search` that ranks in the same way."""

Scores = Mapping[str, Mapping[int, QueryResults]]
"""Step → fold → the scores of the questions that the fold holds out; the simplest step first."""


@dataclass(frozen=True)
class Standing:
    """A step with a ranking, and its scores on all held-out questions.

    Attributes:
        step: name of the step.
        pool: way to rank the candidates.
        mean: mean score from 0 to 1, with an interval over groups.
        gain: difference from the base encoder, paired by question.
        behind: difference of the best line from this one, paired by question.
        behind_step: likewise, of the best ranking of the same step.
    """

    step: str
    pool: str
    mean: PairedTest
    gain: PairedTest
    behind: PairedTest
    behind_step: PairedTest

    @property
    def p(self) -> float:
        """One-sided p-value of the difference from the best one."""
        return _one_sided(self.behind)

    @property
    def p_step(self) -> float:
        """One-sided p-value of the difference from the best ranking of the same step."""
        return _one_sided(self.behind_step)

    @property
    def worse(self) -> bool:
        """Whether it is significantly worse than the best one, or than the best ranking of its step.

        The second test finds smaller differences, since the encoder is the same.
        """
        return min(self.p, self.p_step) < ALPHA

    def __str__(self) -> str:
        return f"{self.step}, {_RANKED[self.pool]}" if self.pool in _RANKED else self.step


@dataclass(frozen=True)
class Choice:
    """All steps with their rankings, the simplest first, and the kept one; a translation counts as a question."""

    measure: str
    questions: int
    folds: int
    standings: tuple[Standing, ...]

    @property
    def best(self) -> Standing:
        """The one with the highest mean; the simplest of equal ones."""
        return max(self.standings, key=lambda each: each.mean.mean)

    @property
    def kept(self) -> Standing:
        """The simplest one that is not significantly worse than the best, nor than the best ranking of its step."""
        return next(each for each in self.standings if not each.worse)

    def __str__(self) -> str:
        kept, base = self.kept, self.standings[0]
        more = "" if kept == base else f", {interval(kept.gain)} against the base encoder"
        score = (
            f"{self.measure} × 100 is {interval(kept.mean, '')} on {self.questions} held-out questions in "
            f"{self.folds} folds{more}"
        )
        if kept == self.best:
            return f"Kept: {kept}. {score}. Everything simpler is significantly worse, and nothing else is better."
        return (
            f"Kept: {kept}. {score}. It is the simplest that is not significantly worse than the best, {self.best}: "
            f"{interval(kept.behind)}."
        )


def fold_label(fold: int) -> str:
    """Return the name of a fold in the files of its question scores."""
    return f"fold-{fold}"


def read_choice(run: RunFolder) -> Choice:
    """Return the choice among the steps whose scores a folder holds, by the measure that its task monitors."""
    rows = [row for row in run.results() if (row["measure"], row["language"]) == (row["monitor"], MEAN)]
    found: dict[str, dict[int, QueryResults]] = {}
    for row in sorted(rows, key=lambda row: row["rank"]):
        by_fold = found.setdefault(row["learner"], {})
        if row["fold"] not in by_fold:
            path = query_results_path(run.path, row["task"], row["learner"], fold_label(row["fold"]))
            by_fold[row["fold"]] = load(path)[0]
    return choose(found, rows[0]["monitor"])


def choose(scores: Scores, measure: str) -> Choice:
    """Return the choice among the steps that have scores of all folds.

    The questions of all folds are pooled, since each is held out once. The units of the tests are groups of questions:
    translations, and questions with a common document, do not vary independently.
    """
    folds = sorted(next(iter(scores.values())))
    complete = {step: by_fold for step, by_fold in scores.items() if sorted(by_fold) == folds}
    values: dict[tuple[str, str], list[float]] = {}
    groups: list[str] = []
    for step, by_fold in complete.items():
        for pool in dict.fromkeys(pool for name, pool, *_ in by_fold[folds[0]].columns if name == measure):
            values[step, pool], groups = _pooled([by_fold[fold] for fold in folds], measure, pool)
    base, best = next(iter(values.values())), _best(values.values())
    best_of = {step: _best(own for (name, _), own in values.items() if name == step) for step in complete}

    def against(one: Sequence[float], other: Sequence[float]) -> PairedTest:
        return clustered_test(one, other, groups)

    zero = [0.0] * len(groups)
    standings = (
        Standing(
            step,
            pool,
            mean=_within(against(own, zero), 0, 1),
            gain=_within(against(own, base)),
            behind=_within(against(best, own)),
            behind_step=_within(against(best_of[step], own)),
        )
        for (step, pool), own in values.items()
    )
    return Choice(measure, len(groups), len(folds), tuple(standings))


def _best(values: Iterable[Sequence[float]]) -> Sequence[float]:
    return max(values, key=lambda own: float(np.mean(own)))


def _one_sided(test: PairedTest) -> float:
    """Return the p-value of a difference above 0; 0 if there is no test."""
    return (test.p or 0) / 2 if test.mean > 0 else 1.0


def _pooled(folds: Sequence[QueryResults], measure: str, pool: str) -> tuple[list[float], list[str]]:
    """Return the score and the group of each held-out question of all folds."""
    values: list[float] = []
    groups: list[str] = []
    for results in folds:
        for (name, *cell), column in results.columns.items():
            if (name, cell[0]) == (measure, pool):
                values.extend(map(float, column))
                groups.extend(results.articles[question] for question in results.units[tuple(cell)])  # type: ignore[index]
    return values, groups


def _within(test: PairedTest, low: float = -1, high: float = 1) -> PairedTest:
    """Return a test whose interval is clipped to the possible scores."""
    if test.low is None or test.high is None:
        return test
    return replace(test, low=max(low, test.low), high=min(high, test.high))


def interval(test: PairedTest, sign: str = "+") -> str:
    """Return a mean times 100 with its 95 % interval."""
    shown = f"{100 * test.mean:{sign}.1f}"
    if test.low is None or test.high is None:
        return shown
    return f"{shown} ({100 * test.low:{sign}.1f} to {100 * test.high:{sign}.1f})"


# The report.


def build_report(
    sentences: Sequence[str], facts: Mapping[str, str], choice: Choice | None, notes: Sequence[str]
) -> Mapping[str, str]:
    """Return name → text of the files of a report, `report.html` and `report.md` among them; `choice` may be None."""
    sections = []
    if choice:
        sections.append(
            Section(SCORES, "Scores on held-out folds", (_EXPLAINED,), (_chart(choice),), (_table(choice),))
        )
    sections.append(Section("notes", "Notes", tuple(notes) or ("Nothing was skipped.",)))
    footer = f"Written by metasearch {__version__}."
    return files(Report("Tuning", tuple(sentences), tuple(facts.items()), tuple(sections), footer))


_EXPLAINED = (
    "Each line adds something to the base encoder, the simplest first. Scores and differences are means over the "
    "questions of all held-out folds. The 95 % intervals are Student's, over groups of questions that are held out "
    "together, clipped to possible scores. They do not cover another training: each fold is trained on once. The kept "
    "line is the simplest that is not significantly worse than the best, nor than the best ranking of its step "
    "(one-sided paired tests over the same groups, 5 %, not corrected for the number of lines). With few labels, only "
    "large differences are significant."
)


def _table(choice: Choice) -> Table:
    best = choice.best
    lines = [
        Line(
            (str(each) + (" (kept)" if each == choice.kept else ""),),
            (
                Cell(each.mean.mean, place="best" if each == best else ""),
                Cell(text=interval(each.mean, "").partition(" ")[2]),
                Cell(text=interval(each.gain)),
                Cell(text=f"{each.p:.2g}"),
                Cell(text=f"{each.p_step:.2g}"),
            ),
        )
        for each in choice.standings
    ]
    columns = (choice.measure, "95 %", "against base", "p against best", "p against best of step")
    return Table("steps", f"{choice.measure} by step", ("step",), columns, tuple(lines), unit="× 100", decimals=1)


def _chart(choice: Choice) -> Chart:
    rows = (
        Row(str(each), each.mean.mean, (Interval(each.mean.low, each.mean.high),), interval(each.mean, ""))
        for each in choice.standings
    )
    return Chart("chart", f"{choice.measure} and its interval, × 100", tuple(rows))
