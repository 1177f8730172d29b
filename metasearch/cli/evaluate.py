"""`metasearch evaluate`: score an encoder as it is."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from metasearch.cli import _options
from metasearch.config.measure import RETRIEVAL_POOLS
from metasearch.errors import ConfigError

if TYPE_CHECKING:
    from metasearch.config.recipe import Role
    from metasearch.config.task import Task


@_options.command("evaluate")
@_options.task("Task; see `metasearch ls tasks`.", default="demo", show_default=True)
@_options.encoder("Built-in name, local folder (such as RUN/model) or hub name; by default the task's.")
@click.option(
    "--split", type=click.Choice(["test", "dev", "train", "all"]), default="test", show_default=True,
    help="Part of the fold; `all` takes the whole data.",
)  # fmt: skip
@click.option(
    "--pool", "pools", type=click.Choice(RETRIEVAL_POOLS), multiple=True, default=("multilingual",), show_default=True,
    help="Candidates to rank, for retrieval; repeatable. bilingual and monolingual make the language matrix; expanded "
    "averages each candidate with its neighbours in other languages; balanced normalises scores per language.",
)  # fmt: skip
@_options.options_group(_options.prompts, _options.fold, _options.fold_seed, _options.precision, _options.device)
@_options.options_group(_options.data, _options.include, _options.trust)
@_options.output("JSON-lines file to append the scores to.")
@_options.as_json()
def command(
    task: str,
    encoder: str | None,
    split: str,
    pools: Sequence[Any],
    prompt: dict[Any, str],
    precision: Any,
    device: Any,
    trust_remote_code: bool,
    output: Path | None,
    as_json: bool,
    **data: Any,
) -> None:
    """Score an encoder on a task.

    The scores are the measures of the task's declaration, such as map@20; `metasearch ls metrics` lists the metrics.

    \b
    Examples:
      metasearch evaluate --task demo --pool multilingual --pool bilingual --pool monolingual
      metasearch evaluate --task lareqa --encoder minilm --data ~/data --fold 0
      metasearch evaluate --task tatoeba --encoder minilm --data ~/data
    """
    from metasearch.cli._progress import ProgressBar
    from metasearch.config.run import EncoderConfig
    from metasearch.data.benchmark import load_benchmark
    from metasearch.pipelines.score import evaluate_encoder
    from metasearch.runs.rows import append_rows, require_appendable

    benchmark = load_benchmark(task, **data)
    _check(benchmark.task, pools, prompt)
    benchmark.part(split)  # asked for before an encoder is loaded, since a task that is all test has no other part
    if output is not None:
        require_appendable(output)
    chosen = encoder or benchmark.task.encoder
    ref = EncoderConfig(name=chosen, prompts=prompt, trust_remote_code=trust_remote_code)
    with ProgressBar("evaluate") as bar:
        rows = evaluate_encoder(ref, benchmark, split, pools, bar, precision, device)
    if as_json:
        click.echo(json.dumps({"results": rows}, ensure_ascii=False))
    else:
        click.echo(_tables(rows, split, [str(measure) for measure in benchmark.measures]))
    if output is not None:
        append_rows(output, rows)


def _check(task: "Task", pools: Sequence[str], prompts: "Mapping[Role, str]") -> None:
    """Raise `ConfigError` for pools or prompts that a kind of task does not have.

    A prompt may be taken away from any role: an encoder is refused for one that it cannot read, whatever the task.
    """
    from metasearch.config.task import ROLES

    if task.kind != "retrieval" and tuple(pools) != RETRIEVAL_POOLS[:1]:
        does = {"similarity": "scores pairs", "translation": "searches each language among its own"}
        raise ConfigError(f"--pool is for retrieval; task '{task.task}' {does[task.kind]}")
    for role, prompt in prompts.items():
        if prompt and role not in ROLES[task.kind]:
            own = " and ".join(ROLES[task.kind])
            raise ConfigError(f"--prompt {role}=…: the texts of task '{task.task}' have no such role; it has {own}")


def _tables(rows: Sequence[dict[str, Any]], split: str, measures: Sequence[str]) -> str:
    from metasearch.runs.markdown import DIRECTIONS, by_direction, by_language, matrix, pool_means

    shown = dict.fromkeys(row["pool"] for row in rows)
    if set(shown) == set(DIRECTIONS):
        return by_direction(rows, split)
    # The diagonal of the matrix is the monolingual table.
    matrix_pools = {"bilingual", "monolingual"} if "bilingual" in shown else set()
    tables = [by_language(rows, split, pool) for pool in shown if pool not in matrix_pools]
    if matrix_pools:
        tables += [matrix(rows, measure) for measure in measures]
    if matrix_pools or len(shown) > 1:
        tables.append(pool_means(rows))
    return "\n\n".join(tables)
