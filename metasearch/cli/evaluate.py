"""`metasearch evaluate`: score an encoder without training."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from metasearch.cli import _options
from metasearch.cli._settings import print_result, reject_unused_options
from metasearch.config.measure import RERANKED, RETRIEVAL_POOLS
from metasearch.config.roles import Role
from metasearch.config.run import DataConfig, EvaluateConfig
from metasearch.errors import ConfigError

if TYPE_CHECKING:
    from metasearch.config.task import Task

ROLES: dict[str, tuple[Role, ...]] = {
    "retrieval": ("question", "candidate"),
    "similarity": ("text",),
    "translation": ("text",),
}
"""What the texts of each kind of task are to the encoder."""


@_options.command("evaluate")
@_options.settings(
    EvaluateConfig, first=("task", "name", "split", "pools"), without=("trim", "checkpointing"), task="demo"
)
@_options.output("New JSON-lines file for the scores.")
@click.option(
    "--trec-run", type=click.Path(path_type=Path), metavar="FILE",
    help="Write the ranking in the first --pool as a TREC run file, for trec_eval and other programs.",
)  # fmt: skip
@_options.as_json()
def command(output: Path | None, trec_run: Path | None, as_json: bool, **flags: Any) -> None:
    """Score an encoder on a task.

    The scores are the measures of the task's declaration, such as map@20; `metasearch ls metrics` lists the metrics.

    \b
    Examples:
      metasearch evaluate --task demo --pool multilingual --pool bilingual --pool monolingual
      metasearch evaluate --task lareqa --encoder minilm --data ~/data --fold 0
      metasearch evaluate --task tatoeba --encoder minilm --data ~/data
      metasearch evaluate --task shop --pool multilingual --pool reranked --rerank BAAI/bge-reranker-v2-m3
    """
    from metasearch.data.benchmark import load_benchmark
    from metasearch.io import atomic_write
    from metasearch.io.output import claim_file
    from metasearch.pipelines.score import evaluate_encoder
    from metasearch.runs.markdown import tables
    from metasearch.runs.progress import ProgressBar

    tree = _options.tree(EvaluateConfig, flags)
    benchmark = load_benchmark(DataConfig.model_validate(tree["data"]))
    tree["encoder"]["name"] = flags["encoder"] or benchmark.task.encoder
    config = EvaluateConfig.model_validate(tree)
    _check(benchmark.task, config, trec_run)
    if RERANKED not in config.pools:
        reject_unused_options("rerank", "rerank_top", why="nothing is reranked; add --pool reranked")
    # Before an encoder is loaded: a task that is all test has no other part.
    benchmark.part(config.split)
    if output is not None:
        claim_file(output)
    with ProgressBar("evaluate") as bar:
        rows = evaluate_encoder(config, benchmark, bar, trec_run)
    shown = tables(rows, config.split, [str(each) for each in benchmark.measures])
    print_result(as_json, {"results": rows}, shown)
    if output is not None:
        atomic_write(output, "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows))


def _check(task: "Task", config: EvaluateConfig, trec_run: Path | None) -> None:
    """Raise `ConfigError` for pools, prompts or rankings that do not exist for the task; any prompt may be removed."""
    from metasearch.config.roles import public_name

    if task.kind != "retrieval" and tuple(config.pools) != RETRIEVAL_POOLS[:1]:
        does = {"similarity": "scores pairs", "translation": "searches each language among its own"}
        raise ConfigError(f"--pool is for retrieval; task '{task.name}' {does[task.kind]}")
    for role, prompt in config.encoder.prompts.items():
        if prompt and role not in ROLES[task.kind]:
            own = " and ".join(map(public_name, ROLES[task.kind]))
            raise ConfigError(f"--prompt {public_name(role)}=…: task '{task.name}' has no such role; it has {own}")
    if trec_run and task.kind != "retrieval":
        raise ConfigError(f"--trec-run: task '{task.name}' is a {task.kind} task; only retrieval tasks have rankings")
    if trec_run and config.pools[0] in ("bilingual", "monolingual"):
        raise ConfigError(f"--trec-run: pool '{config.pools[0]}' is one ranking per language; put another --pool first")
