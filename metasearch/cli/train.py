"""`metasearch train` and `demo`: meta-train an encoder, and score it against zero-shot."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from metasearch.cli import _options, _settings
from metasearch.cli._settings import execute, fresh_folder, show
from metasearch.config.run import RunConfig
from metasearch.errors import ConfigError, quoted

if TYPE_CHECKING:
    from metasearch.pipelines.run import RunResult


@_options.command("train")
@_options.settings(RunConfig, first=("mode", "task", "name"), task="demo")
@click.option("--learner", help="Learner; by default maml-align for a mode of three links, maml for one of two.")
@click.option("--recipe", help="Hyper-parameters by name; by default the learner's.")
@_options.assignments
@_options.run
def command(output: Path | None, trackers: tuple[str, ...], as_json: bool, **flags: Any) -> None:
    """Meta-train an encoder on a task, and report its scores against zero-shot.

    \b
    Examples:
      metasearch train --mode mono-bi-multi
      metasearch train --task lareqa --mode trans --encoder minilm --data ~/data --max-steps 90 -o runs/lareqa
      metasearch resume runs/lareqa
    """
    from metasearch.pipelines.train import TrainRun

    config = configure(**flags)
    run = TrainRun(config, output or fresh_folder(config.data.task.name, config.recipe.learner))
    execute(run, trackers, flags["trust_remote_code"], as_json)


def configure(
    mode: str | None, learner: str | None, recipe: str | None, assignments: Sequence[str], **flags: Any
) -> RunConfig:
    """Return the settings of a run, with all names checked."""
    from metasearch.config.run import DataConfig

    library = _settings.library(flags["include"])
    whole = library.fold(DataConfig(task=flags["task"]))
    whole.task.require_training()
    if mode is None:
        raise ConfigError(f"--mode is missing; one of {', '.join(library.names('mode'))}")
    parsed = library.mode(mode)
    library.arrangements(whole.task, parsed)
    flags["encoder"] = flags["encoder"] or whole.task.encoder
    chosen = library.choose_recipe(parsed, flags["encoder"], learner, recipe, assignments)
    return _settings.configure(RunConfig, flags, whole, mode=parsed, recipe=chosen)


LEARNERS = (("fine-tune", "trans"), ("maml", "trans"), ("maml-align", "mono-bi-multi"))
"""Each learner with the mode that it does best in, in Table 1 of the MAML-Align paper."""

BUDGET = ("meta_train=120", "meta_valid=40", "epochs=1", "eval_every=10", "patience=0")
"""Of learners that have no recipe for the encoder: the papers' budgets are for days."""

_QUESTION = "How do sailors know at night which lighthouse they are looking at?"


@_options.command("demo")
@_options.encoder("Built-in name, local folder or hub name; by default `mini`.")
@_options.seed("Random seed of the runs.")
@click.option("--max-steps", type=click.IntRange(min=1), help="Optimizer steps of each learner at most.")
@_options.options_group(_options.device, _options.output("Folder of the runs; by default a new one below runs/."))
@_options.as_json()
def demo(encoder: str | None, output: Path | None, as_json: bool, **flags: Any) -> None:
    """Train fine-tune, MAML and MAML-Align on the embedded benchmark, and compare them with zero-shot in one table.

    It names the commands that index its articles with the last encoder, and search them in any language.
    """
    from metasearch.io.output import claim
    from metasearch.pipelines.train import TrainRun
    from metasearch.runs.progress import ProgressBar

    folder = output or fresh_folder("demo")
    claim(folder)
    library, results = _settings.library(()), []
    encoder = encoder or library.task("demo").encoder
    for learner, mode in LEARNERS:
        tuned = library.recipe_for(learner, encoder) != learner
        budget = () if tuned else [f"budget.{value}" for value in BUDGET]
        config = configure(
            mode=mode, task="demo", encoder=encoder, learner=learner, recipe=None, assignments=budget, include=(),
            data=None, **flags,
        )  # fmt: skip
        results.append(TrainRun(config, folder / learner).execute(ProgressBar))
    show(_side_by_side(folder, results), as_json)
    click.echo("index and search the articles with the last encoder:", err=as_json)
    for line in _write_articles(folder, folder / LEARNERS[-1][0] / "model"):
        click.echo(f"  {line}", err=as_json)


def _side_by_side(folder: Path, results: "Sequence[RunResult]") -> "RunResult":
    from metasearch.config.recipe import ZERO_SHOT
    from metasearch.io import atomic_write
    from metasearch.pipelines.run import RunResult
    from metasearch.runs.markdown import by_language

    rows = [row for i, result in enumerate(results) for row in result.rows if i == 0 or row["learner"] != ZERO_SHOT]
    parts = ["# Learners side by side", by_language(rows, "test"), by_language(rows, "dev")]
    combined = "\n\n".join(parts) + "\n"
    atomic_write(folder / "report.md", combined)
    return RunResult(folder, rows, combined)


def _write_articles(folder: Path, encoder: Path) -> list[str]:
    """Write the sentences of the benchmark beside the runs; return the commands that index and search them."""
    from metasearch.data.benchmark import load_benchmark
    from metasearch.data.records import RetrievalData
    from metasearch.io import atomic_write_all

    data = load_benchmark("demo").data
    assert isinstance(data, RetrievalData)
    rows: dict[Path, str] = {}
    for candidate in data.candidates:
        path = folder / "articles" / f"{candidate.language}.jsonl"
        row = json.dumps({"text": candidate.shown or candidate.text}, ensure_ascii=False)
        rows[path] = f"{rows.get(path, '')}{row}\n"
    atomic_write_all(rows)
    articles, index = quoted(folder / "articles"), quoted(folder / "index")
    return [
        f"metasearch index {articles} -o {index} --encoder {quoted(encoder)}",
        f'metasearch search {index} "{_QUESTION}"',
    ]
