"""`metasearch compare`: what learners have more than a baseline, and how sure that is."""

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from metasearch.cli import _options

log = logging.getLogger(__name__)

FORMATS = ("markdown", "latex", "csv", "json")


@click.command("compare", short_help="Differences from a baseline, with intervals and tests.")
@_options.compared
@click.option("--pool", metavar="POOL", help="Such as bilingual; by default the task's, for retrieval multilingual.")
@click.option(
    "--format",
    "shown",
    type=click.Choice(FORMATS),
    default="markdown",
    show_default=True,
    help="csv is one table, json has everything in full precision.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
def command(
    paths: Sequence[Path],
    task: str | None,
    any_version: bool,
    baseline: str | None,
    shown: str,
    as_json: bool,
    **compared: Any,
) -> None:
    """Compare learners with a baseline, on the test questions that studies or finished runs have kept.

    Studies and runs may be mixed, as long as they share task, data, folds and versions. Nothing is run again.

    \b
    For each learner, over the folds and seeds that it shares with the baseline:
      difference    of the means over languages and folds; seeds are averaged first
      95% from, to  what training again on other folds with other seeds, and other
                    questions, would change (Student's t over folds)
      these models  paired bootstrap over articles for the models as they are
      *             the 95% interval excludes 0
      p, p (Holm)   of that interval; corrected for the number of learners
      †             p (Holm) is below 1 - level
      °             nothing was trained twice; that of these models excludes 0
      papers' ...   t-test over fold × language means, which papers report and
                    which rejects far too often; no mark is made of it

    A second table has the differences of each language.

    \b
    Examples:
      metasearch compare studies/lareqa
      metasearch compare studies/lareqa --baseline fine-tune --pool bilingual
      metasearch compare runs/maml runs/maml-align --format latex > comparison.tex
      metasearch compare studies/sts --measure spearman --json
    """
    from metasearch.evaluation.report import comparison as tables
    from metasearch.evaluation.report import formats
    from metasearch.evaluation.statistics.bootstrap import check
    from metasearch.evaluation.study.compare import compare
    from metasearch.evaluation.study.read import read_study

    check(compared["level"], compared["resamples"])  # reading takes longer
    study = read_study(paths, task, any_version)
    arm = None if baseline is None else study.arm(baseline)
    comparison = compare(study, arm, **compared)
    if as_json and click.get_current_context().get_parameter_source("shown") == ParameterSource.COMMANDLINE:
        log.warning("--format %s does nothing beside --json", shown)
    if as_json or shown == "json":
        click.echo(json.dumps(tables.as_tree(comparison), ensure_ascii=False, allow_nan=False, indent=1))
    elif shown == "csv":
        click.echo(formats.csv(tables.whole_table(comparison)), nl=False)
    else:
        both = tables.comparison_table(comparison), tables.language_table(comparison)
        click.echo("\n".join(map(formats.FORMATS[shown], both)), nl=False)
