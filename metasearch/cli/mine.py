"""`metasearch mine`: hard negatives for other trainers."""

import json
from pathlib import Path
from typing import Any

import click

from metasearch.cli import _options
from metasearch.config.run import MineConfig
from metasearch.errors import ConfigError


@_options.command("mine")
@_options.settings(
    MineConfig,
    first=("task", "name", "split", "negatives"),
    without=("trim", "checkpointing", "precision"),
    task="demo",
)
@_options.output("JSON-lines file, or a folder that `datasets.load_dataset` reads.", required=True)
@_options.as_json("file and number of rows")
def command(output: Path, as_json: bool, **flags: Any) -> None:
    """Mine hard negatives in each language, for the trainers of other libraries.

    Each row has a question (anchor), an answer in one language (positive), and the nearest candidates of this language
    that are no answers (negative, or negative_1 to negative_N), as sentence-transformers trainers read them.

    \b
    Examples:
      metasearch mine --task lareqa --encoder e5 --data ~/data -o hard.jsonl
      metasearch mine --task shop --num-negatives 1 --language de --language en -o hard-negatives
    """
    from metasearch.cli._progress import ProgressBar
    from metasearch.config.run import DataConfig
    from metasearch.data.benchmark import load_benchmark
    from metasearch.pipelines.mine import mine, write_rows

    if output.suffix not in ("", ".jsonl"):
        raise ConfigError(f"-o {output}: expected a file that ends in .jsonl, or a folder")
    tree = _options.tree(MineConfig, flags)
    benchmark = load_benchmark(DataConfig.model_validate(tree["data"]))
    tree["encoder"]["name"] = flags["encoder"] or benchmark.task.encoder
    config = MineConfig.model_validate(tree)
    with ProgressBar("mine") as bar:
        rows = mine(config, benchmark, bar)
    path = write_rows(rows, output, config.split)
    facts = {"file": str(path), "rows": len(rows)}
    click.echo(json.dumps(facts) if as_json else f"{len(rows):,} rows: {path}")
