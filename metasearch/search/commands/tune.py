"""`metasearch tune`: from a file of labels to an encoder, an index and a report."""

import re
from pathlib import Path
from typing import Any

import click

from metasearch.cli import _options
from metasearch.cli._settings import print_result
from metasearch.config.run import DEFAULT_ENCODER
from metasearch.search.settings import TuneConfig

_UNITS = {"s": 1, "m": 60, "h": 3600}


def _parse_duration(value: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", value)
    if match is None or not float(match[1]):
        raise ValueError("expected a time such as 30m, 2h or 90s")
    return float(match[1]) * _UNITS[match[2]]


@_options.command("tune")
@click.argument("labels")
@_options.columns
@_options.encoder("Built-in name, local folder or hub name.", default=DEFAULT_ENCODER, show_default=True)
@_options.settings(
    TuneConfig, first=("documents", "base", "translations"), without=("columns", "name", "prompts", "trim")
)
@click.option(
    "--time", type=_options.Parsed("time", _parse_duration), metavar="TIME",
    help="Time limit such as 30m; drops folds and the most expensive steps.",
)  # fmt: skip
@_options.output("Folder of the result; the same call continues it.", required=True)
@_options.as_json("the scores")
def command(labels: str, output: Path, as_json: bool, **flags: Any) -> None:
    """Adapt an encoder to the questions and documents in LABELS, and index your documents with it.

    LABELS is a CSV, TSV, JSON lines, Excel or Parquet file with the columns query and document, or page: the path or
    address of a page in --documents. Also query_language, document_language, relevance and group. A BEIR folder
    and hub:ORG/NAME work, too. The command compares the search without labels, as of `metasearch index`,
    the language-neutral projection, balanced scores, adapters and fine-tuning on the same held-out folds. It
    keeps one that is significantly better, if there is one, and makes it from all labels.

    \b
    Examples:
      metasearch tune labels.csv -o shop
      metasearch tune labels.csv --documents help-pages/ --translations corpus/ -o shop
      metasearch tune faq.jsonl --columns query=question,document=answer --time 30m -o faq
    """
    from metasearch.evaluation.report.formats import terminal
    from metasearch.runs.progress import ProgressBar
    from metasearch.search.tune.call import tune

    result = tune(labels, output, open_callback=ProgressBar, **flags)
    print_result(
        as_json, {"folder": str(output), "steps": result.table}, f"{terminal(result.report)}\nfolder: {output}"
    )
