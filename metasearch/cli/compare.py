"""`metasearch compare` and `metasearch report`: differences from a baseline."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from metasearch.cli import _options
from metasearch.cli._settings import print_result

if TYPE_CHECKING:
    from metasearch.evaluation.study.study import Arm, Study

_compared = _options.options_group(
    click.argument("paths", metavar="STUDY_OR_RUN...", nargs=-1, required=True, type=click.Path(path_type=Path)),
    click.option("--baseline", metavar="LABEL", help="Learner to compare with; by default each one's zero-shot."),
    click.option("--measure", metavar="MEASURE", help="Measure, such as map@20; by default the task's first."),
    _options.task("Task, if the runs have scores on several.", metavar="TASK"),
    click.option(
        "--confidence", "level", type=float, default=0.95, show_default=True,
        help="Confidence level of intervals; α of tests is 1 - confidence.",
    ),
    click.option("--allow-mixed-versions", "any_version", is_flag=True, help="Allow runs of different versions."),
)  # fmt: skip


@_options.command("compare")
@_compared
@click.option("--pool", metavar="POOL", help="Pool, such as bilingual; by default the task's.")
@_options.as_json("everything in full precision")
def command(paths: Sequence[Path], as_json: bool, **compared: Any) -> None:
    """Compare learners with a baseline, on the test questions of studies or finished runs.

    Studies and runs may be mixed, as long as they share task, data, folds and versions. Nothing is run again.

    \b
    For each learner, over the folds and seeds that it shares with the baseline:
      difference    difference of the means over languages and folds
      95% from, to  interval for retraining on other folds, seeds and questions
                    (Student's t over folds); * if it excludes 0
      fixed models  interval for fixed models on other questions (Student's t
                    over articles); ° if it excludes 0 and nothing was trained
                    twice
      p, p (Holm)   p-value of the first interval; corrected for the number of
                    learners, and † if below 1 - confidence

    A second table shows the differences of each language.

    \b
    Examples:
      metasearch compare studies/lareqa
      metasearch compare studies/lareqa --baseline fine-tune --pool bilingual
      metasearch compare runs/maml runs/maml-align
      metasearch compare studies/sts --measure spearman --json
    """
    from metasearch.evaluation.report import comparison as tables
    from metasearch.evaluation.report import formats
    from metasearch.evaluation.study.compare import compare

    study, arm = _read(paths, compared)
    comparison = compare(study, arm, **compared)
    if as_json:
        click.echo(json.dumps(tables.as_tree(comparison), ensure_ascii=False, allow_nan=False, indent=1))
    else:
        both = tables.comparison_table(comparison), tables.language_table(comparison)
        click.echo("\n".join(map(formats.markdown, both)), nl=False)


@_options.command("report")
@_options.output("Folder of the report.", required=True, metavar="DIR")
@_compared
@click.option("--json", "as_json", is_flag=True, help="Print the main table and the files' paths as one JSON object.")
def report(paths: Sequence[Path], output: Path, as_json: bool, **compared: Any) -> None:
    """Write a report on studies or finished runs. Nothing is run again.

    Studies and runs may be mixed, as long as they share task, data, folds and versions.

    \b
    Files:
      report.html     scores, comparison, figures, languages and language bias,
                      run facts; one file that needs no network
      report.md       the same words and tables
      tables.json     all tables in full precision
      tables/         each table as LaTeX (booktabs) and CSV

    A former report in the folder is replaced; any other folder must be empty.

    \b
    Examples:
      metasearch report studies/lareqa -o reports/lareqa
      metasearch report studies/lareqa -o reports/harm --baseline fine-tune --measure map
      metasearch report runs/maml runs/maml-align -o reports/two-runs
      metasearch report runs/small --task tatoeba -o reports/small
    """
    from metasearch.evaluation.report import formats
    from metasearch.evaluation.report.build import build, refuse, write

    refuse(output)
    study, arm = _read(paths, compared)
    found = build(study, arm, **compared)
    written = write(found, output)
    missing = "".join(f"{line}\n" for line in study.missing)
    tree = {"main": asdict(found.main), "files": list(map(str, written))}
    print_result(as_json, tree, f"{formats.terminal(formats.markdown(found.main))}\n{missing}report: {written[0]}")


def _read(paths: Sequence[Path], compared: dict[str, Any]) -> "tuple[Study, Arm | None]":
    """Return the runs and the baseline; `compared` keeps only the arguments of the comparison."""
    from metasearch.evaluation.statistics.jackknife import check
    from metasearch.evaluation.study.read import read_study

    check(compared["level"])  # reading takes longer
    task, any_version, baseline = (compared.pop(name) for name in ("task", "any_version", "baseline"))
    study = read_study(paths, task, any_version)
    return study, None if baseline is None else study.arm(baseline)
