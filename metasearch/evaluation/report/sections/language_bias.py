"""Language bias: do rankings prefer candidates in the question's language?"""

import math
from collections.abc import Mapping

from metasearch.evaluation.report.charts import heatmap
from metasearch.evaluation.report.formats import slug
from metasearch.evaluation.report.section import Chart, Inputs, Section
from metasearch.evaluation.report.table import Cell, Line, Table
from metasearch.evaluation.study.arms import Arm
from metasearch.evaluation.study.bias import DEPTH, Bias, measure_arm_bias
from metasearch.evaluation.study.study import Study

ORDER = 50
NONE = "–"


def section(inputs: Inputs) -> Section | None:
    """Return the pooled ranking's language bias as tables and heat maps, or None."""
    tables = bias_tables(inputs.with_questions)
    shares = tables[1:]
    values = [cell.value for table in shares for line in table.lines for cell in line.cells]
    charts = tuple(Chart(table, heatmap(table, "questions", "candidates", True, values)) for table in shares)
    text = "Does a ranking of the candidates of all languages prefer those in the language of the question?"
    return Section("language-bias", "Language bias", (text,), charts, tuple(tables)) if tables else None


def bias_tables(study: Study) -> list[Table]:
    """Return a table for all arms, and each arm's language shares beyond an unbiased ranking.

    A study without rankings of a multilingual pool has no such tables; errors as `measure_bias`.
    """
    biases = {arm: bias for arm in study.arms if (bias := measure_arm_bias(study, arm))}
    if not biases:
        return []
    shares = (_shares(i, arm, bias) for i, (arm, bias) in enumerate(biases.items(), 1))
    return [_figures(biases, len(study.folds)), *shares]


def _figures(biases: Mapping[Arm, Bias], folds: int) -> Table:
    k = DEPTH
    notes = [
        f"Bias: the share of the top {k} that the question's language has beyond what a ranker with as many hits that "
        "does not look at languages gives it, as a part of the most that it could have; 0 is no bias, 100 that "
        "language wherever it is possible, and below 0 it is avoided.",
        f"Lost to own language: how much mAP@{k} rises once the wrong candidates in the question's language are taken "
        "out of the ranking.",
        "Lost to another language: the same for one other language, mean over these; any wrong candidates cost some.",
        "Excess: lost to the own language less lost to another one, which is what the bias costs.",
        f"Uneven shares: the part of the top {k} that is in the wrong language, whichever is preferred; "
        "chance alone leaves it above 0.",
        f"Rank correlation: Spearman's, of the top {k} of a question in two languages, mean over pairs of its "
        "translations; 100 where they find the same in the same order, −86 where they find nothing in common.",
        "All are means over the languages of the questions, then over folds.",
    ]
    if any(bias.spread for bias in biases.values()):
        notes.append("± is the sample standard deviation over folds.")
    notes += [f"{arm.label}: {bias.folds} of {folds} folds." for arm, bias in biases.items() if bias.folds < folds]
    return Table(
        key="bias",
        title="Language bias in the pool of all languages",
        heads=("learner",),
        columns=(
            "bias",
            f"mAP@{k} lost to own language",
            "lost to another language",
            "excess",
            "uneven shares",
            "rank correlation",
        ),
        lines=tuple(
            Line((arm.label,), tuple(map(_cell, bias.figures, bias.spread or [math.nan] * len(bias.figures))))
            for arm, bias in biases.items()
        ),
        notes=tuple(notes),
        unit="× 100",
    )


def _shares(number: int, arm: Arm, bias: Bias) -> Table:
    lines = (Line((a,), tuple(map(_cell, row))) for a, row in zip(bias.asked, bias.excess.tolist(), strict=True))
    return Table(
        key=f"bias-{number}-{slug(arm.label)}",
        title=f"Languages in the top {bias.k} beyond those without bias, {arm.label}",
        heads=("question",),
        columns=bias.languages,
        lines=tuple(lines),
        notes=(
            f"Share of each candidate language in the top {bias.k} less its share with a ranker that has as many hits "
            "but does not look at languages; a line sums to 0, and the question's own language is on the diagonal.",
        ),
        decimals=1,
        unit="× 100",
    )


def _cell(value: float, spread: float = math.nan) -> Cell:
    return Cell(text=NONE) if math.isnan(value) else Cell(value, None if math.isnan(spread) else spread)
