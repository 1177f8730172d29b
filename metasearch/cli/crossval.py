"""`metasearch crossval`: learners × modes × folds × seeds as one study."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from metasearch.cli import _options, _settings
from metasearch.config.study import LauncherConfig, StudyConfig
from metasearch.errors import CellsFailed, ConfigError, nearest

if TYPE_CHECKING:
    from metasearch.config.task import Task
    from metasearch.evaluation.study.study import Study

log = logging.getLogger(__name__)

CLAIM = (0, 1, 2)
"""Seeds of a study that trains, unless others are named."""
LEARNERS = ("zero-shot", "fine-tune", "maml", "maml-align")


@_options.command("crossval")
@_options.settings(StudyConfig, first=("task", "name"), task="demo")
@click.option(
    "--learner", cls=_options.ListOption, metavar="NAMES",
    help=f"Learners, each alone or as NAME:MODE; by default all of {','.join(LEARNERS)} that fit a mode; also neutral.",
)  # fmt: skip
@click.option(
    "--recipe", cls=_options.ListOption, metavar="NAMES", help="Further arms by recipe, each alone or as NAME:MODE."
)
@click.option(
    "--mode", "--modes", cls=_options.ListOption, metavar="NAMES",
    help="Transfer modes of learners without one of their own; each runs in all that it fits.",
)  # fmt: skip
@click.option("--folds", metavar="N|LIST", help="Number of folds, or a list such as 0,2; by default all.")
@click.option(
    "--seeds",
    cls=_options.ListOption,
    metavar="LIST",
    help="Seeds; by default 0,1,2 where something is trained. 0 alone is a quick trial.",
)
@_options.jobs()
@click.option(
    "--threads", type=click.IntRange(min=1), help="Threads of each run; by default the cores shared out, or cpus=."
)
@_options.launcher
@click.option(
    "--set", "assignments", multiple=True, metavar="[NAME:]KEY=VALUE",
    help="Override a value of all recipes, or of one learner or recipe; repeatable.",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="List the runs and do nothing.")
@_options.output("Folder of the study: a new one, or one to continue.", required=True, metavar="STUDY")
@_options.as_json()
def command(
    output: Path, jobs: int | None, launcher: str | None, launcher_settings: Sequence[str], dry_run: bool,
    as_json: bool, **flags: Any,
) -> None:  # fmt: skip
    """Train and score every learner in every mode on every fold with every seed, each in its own process.

    The same command continues a study and repeats no finished run. Further folds, seeds and learners are
    added to it. A failed run is named with its log; the others finish.

    Three seeds separate a learner from its seed. A started study keeps its seeds unless --seeds gives others; --seeds 0
    takes a third of the time.

    \b
    Examples:
      metasearch crossval --mode mono-bi-multi --seeds 0 -o studies/demo
      metasearch crossval --task lareqa --learner fine-tune:mono-mono,maml:trans,maml-align:mono-bi-multi
        --encoder minilm --data ~/data --jobs 4 -o studies/lareqa
      metasearch crossval --task lareqa --learner neutral,maml:trans --set maml:neutralise=after -o studies/neutral
      metasearch resume studies/lareqa --jobs 2
      metasearch crossval --mode trans --launcher slurm --launcher-set "partition=gpu time=4:00:00" -o studies/big
    """
    place = LauncherConfig.parse(launcher, launcher_settings)
    config = configure(folder=output, **flags)
    if dry_run:
        _list_cells(config, output, as_json)
    else:
        run(config, output, jobs, place, as_json, flags["trust_remote_code"])


def _list_cells(config: Any, folder: Path, as_json: bool) -> None:
    from metasearch.pipelines.study.runner import listed_cells

    cells = listed_cells(config, folder)
    rows = [{"name": cell.name, "kind": cell.config.kind, "done": done} for cell, done in cells]
    width = max(len(cell.name) for cell, _ in cells)
    lines = [f"{cell.name.ljust(width)}  {cell.config.kind:5}  {'done' if done else 'to do'}" for cell, done in cells]
    lines.append(f"{sum(not done for _, done in cells)} of {len(cells)} runs to do")
    _settings.print_result(as_json, {"cells": rows}, "\n".join(lines))


def run(
    config: Any, folder: Path, jobs: int | None, place: LauncherConfig | None, as_json: bool, trust_remote_code: bool
) -> None:
    """Run the remaining jobs of a new or existing study; print its table."""
    from metasearch.pipelines.run import RunResult
    from metasearch.pipelines.study import runner

    report = folder / "report.md"
    try:
        study = runner.begin(config, folder, jobs, trust_remote_code, place)
    except CellsFailed:
        if report.is_file() and not as_json:  # of the cells that are done
            click.echo(report.read_text(encoding="utf-8"))
        raise
    rows = _means(study) if as_json else []
    _settings.show(RunResult(folder, rows, report.read_text(encoding="utf-8")), as_json, "study")


def _means(study: "Study") -> list[dict[str, Any]]:
    from metasearch.evaluation.report.main_table import ordered, over_languages
    from metasearch.evaluation.study.study import ScoreSelection

    rows = []
    for arm in ordered(study):
        for selection in (
            ScoreSelection(m, p, s) for s in ("test", "dev") for m in study.measures for p in study.pools
        ):
            mean = over_languages(study, arm, selection)
            if mean is not None:
                named = {"arm": arm.label, "split": selection.split, **selection._asdict()}
                rows.append({**named, "mean": mean.mean, "sd": mean.sd, "count": mean.count, "over": mean.over})
    return rows


def configure(
    folder: Path, learner: Sequence[str], recipe: Sequence[str], folds: str | None, seeds: Sequence[str],
    assignments: Sequence[str], mode: Sequence[str], **flags: Any,
) -> StudyConfig:  # fmt: skip
    """Return the settings of a study, with all names checked."""
    from metasearch.config.recipe import NEUTRAL, ZERO_SHOT
    from metasearch.config.run import DataConfig
    from metasearch.pipelines.study.folder import StudyFolder
    from metasearch.pipelines.study.resolve import build_arms, resolve_neutral

    library = _settings.library(flags["include"])
    whole = library.fold(DataConfig(task=flags["task"]))
    task = whole.task
    # Named recipes stand alone: the default learners are not trained beside them.
    learners = learner or ((ZERO_SHOT,) if task.evaluation_only or recipe else LEARNERS)
    changes = _changes(assignments, [*learners, *recipe])
    flags["encoder"] = flags["encoder"] or task.encoder
    trained = bool(recipe or {*learners} - {ZERO_SHOT, NEUTRAL})
    runs = {"folds": parse_folds(folds, task), "seeds": parse_seeds(seeds, folder, trains=trained)}
    config = _settings.configure(StudyConfig, flags, whole, threads=flags["threads"], **runs)
    arms = build_arms(learners, recipe, mode, changes, config, library, bool(learner))
    for key in ("max_steps", "keep_models"):
        if getattr(config, key) and not (arms or StudyFolder(folder).reached):
            log.warning("--%s has no effect: nothing is trained", key.replace("_", "-"))
    own = {"trained": arms, "neutral": resolve_neutral(learners, changes, config)}
    return StudyConfig.model_validate({**dict(config), **own})


def parse_folds(written: str | None, task: "Task") -> tuple[int, ...]:
    """Return the folds for `5` (the first five), `0,2` or `2,` (a list), or None (all folds)."""
    known = task.folds.k if task.folds.method == "kfold" else 1
    if written is None:
        return tuple(range(known))
    words = [word.strip() for word in written.removesuffix(",").split(",")]
    if not all(word.isdecimal() for word in words):
        raise ConfigError(f"--folds {written}: expected a number of folds (5) or a list of folds (0,2)")
    folds: Sequence[int] = sorted({int(word) for word in words})
    if "," not in written:
        folds = range(folds[0])
    if not folds or folds[-1] >= known:
        has = "one fold, 0" if known == 1 else f"{known} folds, 0 to {known - 1}"
        raise ConfigError(f"--folds {written}: task '{task.name}' has {has}; write a number ({known}) or a list (0,)")
    return tuple(folds)


def parse_seeds(written: Sequence[str], folder: Path, trains: bool) -> tuple[int, ...]:
    """Return the given seeds, or the stored ones, or `CLAIM` if something is trained, or one."""
    from metasearch.pipelines.study.folder import StudyFolder

    if not written:
        study = StudyFolder(folder)
        if study.begun and study.reached:
            kept = study.stored().config.seeds
            log.info(f"seeds {_join(kept)}, which the study has; --seeds adds others")
            return kept
        if not trains:
            return CLAIM[:1]
        log.info(f"seeds {_join(CLAIM)}; --seeds {CLAIM[0]} takes a third of the time")
        return CLAIM
    if wrong := [word for word in written if not word.isdecimal() or int(word) >= 2**63]:
        raise ConfigError(f"--seeds: '{wrong[0]}' is not a seed; expected whole numbers such as 1,2,3")
    return tuple(dict.fromkeys(map(int, written)))


def _join(seeds: Sequence[int]) -> str:
    return ", ".join(map(str, seeds))


def _changes(assignments: Sequence[str], arms: Sequence[str]) -> dict[str, list[str]]:
    """Return assignments by the learner or recipe that they are for; those for all at the empty name."""
    from metasearch.config.recipe import ZERO_SHOT

    names = [name for arm in arms if (name := arm.partition(":")[0].strip()) != ZERO_SHOT]
    changes: dict[str, list[str]] = {}
    for assignment in assignments:
        name, colon, rest = assignment.partition(":")
        own = bool(colon) and "=" not in name
        if own and name not in names:
            raise ConfigError(f"--set {assignment}: '{name}' is not trained in this study.{nearest(name, names)}")
        changes.setdefault(name if own else "", []).append(rest if own else assignment)
    return changes
