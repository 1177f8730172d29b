"""`metasearch report`: a study as a page, and its tables for papers."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from metasearch.cli import _options


@click.command("report", short_help="A page and tables of a study or of runs.")
@click.option(
    "-o", "--output", required=True, type=click.Path(path_type=Path), metavar="DIR", help="Folder of the report."
)
@_options.compared
@click.option("--json", "as_json", is_flag=True, help="Print the main table and the files' paths as one JSON object.")
def command(
    paths: Sequence[Path],
    output: Path,
    task: str | None,
    any_version: bool,
    baseline: str | None,
    as_json: bool,
    **compared: Any,
) -> None:
    """Write a report of studies or finished runs, from what they have kept. Nothing is run again.

    Studies and runs may be mixed, as long as they share task, data, folds and versions.

    \b
    What is written:
      report.html     scores, comparison, transfer modes, languages, language
                      bias, learning curves, single questions, run facts; one
                      file that needs no network
      report.md       the same words and tables
      tables.json     all tables in full precision
      tables/         each table as Markdown, LaTeX (booktabs) and CSV

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
    from metasearch.evaluation.statistics.bootstrap import check
    from metasearch.evaluation.study.read import read_study

    check(compared["level"], compared["resamples"])  # what takes no time comes first
    refuse(output)
    study = read_study(paths, task, any_version)
    arm = None if baseline is None else study.arm(baseline)
    report = build(study, arm, **compared)
    written = write(report, output)
    if as_json:
        click.echo(json.dumps({"main": asdict(report.main), "files": list(map(str, written))}, ensure_ascii=False))
    else:
        missing = "".join(f"{line}\n" for line in study.missing)
        click.echo(f"{formats.markdown(report.main)}\n{missing}report: {written[0]}")
