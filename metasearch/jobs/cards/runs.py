"""The card of a run: what its own `config.yaml` and `results.jsonl` say, written into `model/README.md`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from metasearch.data.translate.train import described
from metasearch.encoders.encoder import Encoder
from metasearch.files import write_whole
from metasearch.jobs.cards.encoders import base_of, limits_of, usage_of
from metasearch.jobs.merge_stage import said_of
from metasearch.publish.about import About, Figures, Interval, Source
from metasearch.publish.card import render
from metasearch.publish.figures import tasks
from metasearch.publish.intervals import intervals
from metasearch.publish.licence import CARD, UNKNOWN, licence_in
from metasearch.runs.folder import CONFIG, RunFolder
from metasearch.runs.rows import Row
from metasearch.spec import yaml
from metasearch.spec.distill_run import DistillConfig
from metasearch.spec.library import Library
from metasearch.spec.recipe import ZERO_SHOT
from metasearch.spec.run import RunConfig
from metasearch.spec.task import Task

_NOT_SETTINGS = ("description", "sources")
"""Of a recipe: why values were chosen, which the recipe's own file says."""


def write_card(files: RunFolder, config: RunConfig | DistillConfig, encoder: Encoder) -> None:
    """Write the card of a run's model, once its scores are in the results and the model is saved."""
    card = files.model / CARD
    write_whole(card, card_of(files, config, encoder, licence_in(card)))


def card_of(files: RunFolder, config: RunConfig | DistillConfig, encoder: Encoder, licence: str = UNKNOWN) -> str:
    """Return the card of a run's model.

    Args:
        files: the run folder, with its scores.
        config: what the run was asked.
        encoder: the model as it was saved.
        licence: of the model as a whole.

    Raises:
        RunFolderError: scores are damaged or were changed.
    """
    rows = files.results()
    made = _of_training if isinstance(config, RunConfig) else _of_distillation
    about = made(files, config, rows, encoder)  # type: ignore[arg-type]  # each takes its own kind
    return render(replace(about, licence=licence))


def _of_training(files: RunFolder, config: RunConfig, rows: Sequence[Row], encoder: Encoder) -> About:
    recipe, label = config.recipe, config.recipe.delivers
    weights = next((str(row["weights"]) for row in rows if "weights" in row), "")
    bases = (base_of("base", config.encoder, weights),)
    task = Library(config.include).task(config.task)
    figures = Figures(
        rows, label, ZERO_SHOT, {config.task: task.kind}, _intervals(files, rows, label, ZERO_SHOT, {config.task: task})
    )
    usage, languages = usage_of(encoder), tuple(task.languages)
    if recipe.translate:
        languages = (*languages, *sorted(task.trained_languages - set(languages)))
    limits = [
        f"One seed ({config.seed}) and one fold ({config.fold}): training again may gain less, or lose.",
        *limits_of(usage, bases, languages),
    ]
    if any(row.get("seeded") for row in rows):
        limits.insert(
            0, "Its weights began as random numbers: it is made to try things out, and is no good for search."
        )
    return About(
        title=f"{label} on {config.task}",
        summary=f"A sentence encoder for search across {len(languages)} languages, trained by metasearch: {label} "
        f"from {bases[0].name}, in mode {config.mode}, on {config.task} ({task.description.rstrip('.')}).",
        usage=usage,
        bases=bases,
        data=(_source("trained and scored on", task, rows),),
        languages=languages,
        figures=figures,
        made=_training(config, rows, label, task),
        recipe=_recipe(recipe.model_dump(mode="json")),
        limits=tuple(limits),
        tags=("meta-learning",),
    )


def _training(config: RunConfig, rows: Sequence[Row], label: str, task: Task) -> dict[str, str]:
    """Return the facts of how a run was trained."""
    recipe, stage = config.recipe, config.recipe.neutralise
    step = next((row["step"] for row in rows if row["learner"] == label), None)
    pairs = " pair" if task.kind == "similarity" else ""
    return {
        "command": "`metasearch train`",
        "learner": f"{recipe.learner}, recipe {recipe.recipe}",
        "transfer mode": config.mode,
        "outer steps": "none" if step is None else f"the weights of step {step}",
        **({"at most": f"{config.max_steps} steps"} if config.max_steps else {}),
        **({"labels": f"{recipe.labels} of each language{pairs}"} if recipe.labels else {}),
        **({"trained on translations": described(task.translate)} if task.translate and recipe.translate else {}),
        "fold, seed": f"{config.fold}, {config.seed}",
        **({"shuffled with": f"fold seed {config.fold_seed}"} if config.fold_seed is not None else {}),
        **({"vocabulary": f"cut to the words of {', '.join(config.trim)}"} if config.trim else {}),
        **({"merged with the weights before training": said_of(recipe.merge, rows)} if recipe.merge else {}),
        **({"language taken out": f"{stage.when} training"} if stage else {}),
        "precision, gradients": f"{config.precision}, {config.engine}",
        "versions": _versions(rows),
    }


def _of_distillation(files: RunFolder, config: DistillConfig, rows: Sequence[Row], encoder: Encoder) -> About:
    number, name, last = config.stages[-1]
    label, before = f"{number} {name}", f"{config.stages[0][2].trains}, before"
    bases = tuple(base_of(role, named) for role in config.used if (named := config.named(role)) is not None)
    library = Library(config.include)
    scored = {task: library.task(task) for task in tasks(rows)}
    figures = None
    if scored:
        kinds = {task: each.kind for task, each in scored.items()}
        found = _intervals(files, rows, label, before, scored)
        figures = Figures([row for row in rows if row["task"] in scored], label, before, kinds, found)
    usage = usage_of(encoder)
    data = [*_corpora(files, config), *(_source("scored on", task, rows) for task in scored.values())]
    made = {
        "command": "`metasearch distill`",
        "recipe": config.recipe.recipe,
        "stages": ", ".join(f"{n} {each}" for n, each, _ in config.stages),
        **({"at most": f"{config.max_steps} steps a stage"} if config.max_steps else {}),
        "seed": str(config.seed),
        "precision, gradients": f"{config.precision}, {config.engine}",
        "versions": _versions(rows),
    }
    limits = [
        f"One seed ({config.seed}): a distillation with another may come out better or worse.",
        *limits_of(usage, bases, ()),
    ]
    return About(
        title=f"{last.trains} of {config.recipe.recipe}",
        summary=f"A sentence encoder distilled by metasearch: the {last.trains} after the stages "
        f"{', '.join(each for _, each, _ in config.stages)}. {config.recipe.description}.",
        usage=usage,
        bases=bases,
        data=tuple(data),
        figures=figures,
        made=made,
        recipe=_recipe(config.recipe.model_dump(mode="json")),
        limits=tuple(limits),
        tags=("distillation",),
    )


def _corpora(files: RunFolder, config: DistillConfig) -> list[Source]:
    """Return the data of each stage, by the names of its files alone: no path of this machine is told."""
    found = []
    for number, name, stage in config.stages:
        path = files.path / f"{number}-{name}" / "data.txt"
        fingerprint, _, described = (path.read_text(encoding="utf-8").strip() if path.is_file() else "").partition(" ")
        names = ", ".join(Path(each).name for each in config.files(stage))
        found.append(Source(f"stage {name}", names, described, fingerprint=fingerprint))
    return found


def _source(use: str, task: Task, rows: Sequence[Row]) -> Source:
    data = next((str(row["data"]) for row in rows if row["task"] == task.task), "")
    return Source(use, task.task, task.description, task.source.url, task.source.licence, data)


def _intervals(
    files: RunFolder, rows: Sequence[Row], label: str, before: str, of: Mapping[str, Task]
) -> tuple[Interval, ...]:
    config = yaml.tree(files.path / CONFIG)["config"]
    assert isinstance(config, dict)  # it has been read as a configuration
    found: list[Interval] = []
    for name, task in of.items():
        own = [row for row in rows if row["task"] == name]
        known = {row["learner"] for row in own if row["split"] == "test"}
        if label in known:
            found += intervals(files.path, config, own, label, before if before in known else None, task.monitor)
    return tuple(found)


def _versions(rows: Sequence[Row]) -> str:
    versions = rows[-1]["versions"] if rows else {}
    return ", ".join(f"{name} {value}" for name, value in versions.items())


def _recipe(tree: Mapping[str, Any]) -> str:
    return yaml.dump({key: value for key, value in tree.items() if key not in _NOT_SETTINGS})
