"""The sections of a report, each from a study: tables, charts, and what they say in words."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from metasearch.reports.bias import bias_tables
from metasearch.reports.charts.chart import Chart
from metasearch.reports.charts.curves import curves
from metasearch.reports.charts.dots import Dots, Names, dot_chart
from metasearch.reports.charts.forest import Estimate, forest
from metasearch.reports.charts.heatmap import Matrix, heatmap
from metasearch.reports.compared import comparison_table, language_table, percent
from metasearch.reports.explorer_section import explorer_section
from metasearch.reports.facts import fact_table, run_table
from metasearch.reports.formats import slug, titled
from metasearch.reports.main_table import fold_table, group_table, main_table, pool_table, seed_table
from metasearch.reports.matrix import matrix_tables
from metasearch.reports.means import What, over_languages
from metasearch.reports.modes import mode_table
from metasearch.reports.page import Section
from metasearch.reports.table import Table
from metasearch.reports.verdict import difference
from metasearch.study.compare import Comparison
from metasearch.study.study import Study


@dataclass(frozen=True)
class Part:
    """A section, and the tables of it that are written as files, too.

    Attributes:
        section: as the page shows it.
        tables: those that the section shows, and those behind its charts.
    """

    section: Section
    tables: tuple[Table, ...] = ()


def scores(study: Study, what: What, comparison: Comparison | None) -> Part:
    """Return the main table, and others: other measures, groups of languages, by fold, by seed, other pools, dev."""
    marks = {each.arm: each.mark for each in comparison.arms} if comparison else {}
    main = main_table(study, what, "main", marks)
    if comparison and any(marks.values()):
        main = replace(main, notes=(*main.notes, _marks(comparison)))
    dev = [main_table(study, replace(what, split="dev"), "dev")]
    others = [
        main_table(study, replace(what, measure=m), f"main-{slug(m)}") for m in study.measures if m != what.measure
    ]
    more = [make(study, what) for make in (group_table, fold_table, seed_table, pool_table)]
    tables = [table for table in (main, *others, *more, *dev) if table and table.lines]
    return Part(Section("scores", "Scores", tables=tuple(tables)), tuple(tables))


def comparison_part(comparison: Comparison | None, why: Sequence[str]) -> Part:
    """Return the differences from the baseline: in words, as a forest plot, and in numbers.

    Args:
        comparison: with the baseline; None where nothing can be compared.
        why: what cannot be compared, one sentence each.
    """
    if comparison is None:
        return Part(Section("compared", "Comparison", tuple(why) or ("There is nothing to compare.",)))
    name = f"{comparison.measure} less that of {comparison.baseline.label}, × 100"
    estimates = [Estimate(e.arm.label, e.difference, e.interval.low, e.interval.high, e.mark) for e in comparison.arms]
    notes = (
        f"Bars are {percent(comparison.level)} intervals of the paired bootstrap over questions.",
        _marks(comparison),
    )
    title = f"Difference from {comparison.baseline.label}"
    chart = forest("differences", title, estimates, name, notes)
    tables = (comparison_table(comparison), language_table(comparison))
    said = (*(difference(each, comparison.baseline) for each in comparison.arms), *why)
    return Part(Section("compared", "Comparison", said, (chart,), tables), tables)


def modes(study: Study, what: What) -> Part | None:
    """Return learners by transfer modes; None where there are not two modes."""
    table = mode_table(study, what)
    if table is None:
        return None
    zero = next((arm for arm in study.arms if arm.zero_shot), None)
    mean = over_languages(study, zero, what) if zero else None
    series = [
        Dots(line.heads[0], tuple(c.value for c in line.cells), tuple(c.spread for c in line.cells))
        for line in table.lines
    ]
    reference = (zero.label, mean.mean) if zero and mean else None
    chart = dot_chart(
        Names("modes-chart", table.title, "mode", f"{what.measure} × 100", table.notes),
        table.columns,
        series,
        reference,
    )
    return Part(Section("transfer", "Transfer modes", charts=(chart,)), (table,))


def matrices(study: Study, what: What) -> Part | None:
    """Return question by candidate language of each arm, as heat maps; None of a task that has no such scores."""
    tables = matrix_tables(study, what.measure)
    said = ("Questions of one language search the candidates of one language; the diagonal is monolingual.",)
    section = Section("languages", "Languages of questions and candidates", said, _heatmaps(tables))
    return Part(section, tuple(tables)) if tables else None


def bias(study: Study) -> Part | None:
    """Return the language bias of the pooled ranking; None of a task that has none."""
    tables = bias_tables(study)
    if not tables:
        return None
    charts = _heatmaps(tables[1:], diverging=True)
    said = ("Does a ranking of the candidates of all languages prefer those in the language of the question?",)
    return Part(Section("language-bias", "Language bias", said, charts, (tables[0],)), tuple(tables))


def learning(study: Study) -> Part | None:
    """Return dev scores and loss terms over outer steps; None where nothing was trained."""
    charts = tuple(curves(study))
    return (
        Part(Section("learning", "Learning curves", charts=charts), tuple(c.values for c in charts)) if charts else None
    )


def explorer(study: Study, what: What, comparison: Comparison | None) -> Part:
    """Return what was ranked where, for the questions that two learners differ on most."""
    baseline = comparison.baseline if comparison else study.baseline
    section = explorer_section(study, baseline, what.measure)
    return Part(section, section.tables)


def facts(study: Study) -> Part:
    """Return what was run and on what, with time and memory."""
    tables = tuple(table for table in (fact_table(study), run_table(study)) if table)
    return Part(Section("run-facts", "Run facts", tables=tables), tables)


def _heatmaps(tables: Sequence[Table], diverging: bool = False) -> tuple[Chart, ...]:
    """Return a heat map of each table of question by candidate language; a colour is the same value in all of them."""
    cells = [[tuple(cell.value for cell in line.cells) for line in table.lines] for table in tables]
    every = tuple(value for rows in cells for row in rows for value in row if value is not None)
    return tuple(
        heatmap(
            Matrix(
                table.key,
                titled(table),
                "questions",
                "candidates",
                tuple(line.heads[0] for line in table.lines),
                table.columns,
                tuple(rows),
                table.notes,
                diverging,
                also=every,
            )
        )
        for table, rows in zip(tables, cells, strict=True)
    )


def _marks(comparison: Comparison) -> str:
    return (
        f"* the {percent(comparison.level)} interval of the difference from {comparison.baseline.label} excludes 0 "
        "(paired bootstrap over questions); † Holm-adjusted p of the paired t-test over fold × language means is "
        f"below {1 - comparison.level:.3g}."
    )
