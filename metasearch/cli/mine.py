"""`metasearch mine`: hard negatives for other trainers."""

from pathlib import Path
from typing import Any

from metasearch.cli import _options
from metasearch.cli._settings import configure_on_task, print_result
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
    from metasearch.pipelines.mine import mine
    from metasearch.runs.progress import ProgressBar
    from metasearch.runs.rows import write_rows

    if output.suffix not in ("", ".jsonl"):
        raise ConfigError(f"-o {output}: expected a file that ends in .jsonl, or a folder")
    config, benchmark = configure_on_task(MineConfig, flags)
    with ProgressBar("mine") as bar:
        rows = mine(config, benchmark, bar)
    path = output if output.suffix else output / f"{config.split}.jsonl"
    write_rows(path, rows)
    print_result(as_json, {"file": str(path), "rows": len(rows)}, f"{len(rows):,} rows: {path}")
