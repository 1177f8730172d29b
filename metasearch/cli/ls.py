"""`metasearch ls` and `show`: list names, print a declaration, and check a task."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from metasearch.cli import _options
from metasearch.cli._settings import library, reject_unused_options
from metasearch.config import registry
from metasearch.errors import ConfigError, nearest

if TYPE_CHECKING:
    from metasearch.config.library import Library
    from metasearch.config.run import DataConfig

KINDS = ("tasks", "modes", "recipes", "distillations", *registry.KINDS)
_DECLARED = ("task", "mode", "recipe", "distillation")


@_options.command("ls")
@click.argument("kind", required=False, metavar="[KIND]", type=click.Choice(KINDS))
@_options.include
def command(kind: str | None, include: Sequence[str]) -> None:
    """List all names, or the names of one KIND.

    KIND is tasks, modes, recipes, distillations, learners, losses, metrics, readers, encoders (the built-in ones),
    sections (of reports), documents (formats of them) or stores.

    \b
    Example:
      metasearch ls modes
    """
    found = library(include)
    for shown in (kind,) if kind else KINDS:
        click.echo(f"{shown}:")
        entries = list(_entries(found, shown))
        width = max((len(name) for name, _ in entries), default=0)
        for name, text in entries:
            click.echo(f"  {name.ljust(width)}  {text}")
        if shown == "encoders":
            click.echo("  Any sentence-transformers or transformers checkpoint works too, by hub name or folder.")


def _entries(library: "Library", kind: str) -> Iterator[tuple[str, str]]:
    if kind in registry.KINDS:
        yield from ((name, registry.summary(kind, name)) for name in registry.names(kind))
        return
    single = kind.removesuffix("s")
    for name in library.names(single):
        yield name, getattr(library, single)(name).description


@_options.command("show")
@click.argument("name")
@click.option("--mode", help="Transfer mode: print its arrangements for the task, and draw one episode.")
@click.option("--episode", type=click.IntRange(min=0), default=0, show_default=True, help="Number of the episode.")
@click.option("--recipe", help="Recipe that says how to draw; by default the recipe of the mode's learner.")
@_options.seed("Random seed of the draw.")
@click.option(
    "--check", "checked", is_flag=True,
    help="Check a task: read its data, cut its folds, draw and embed an episode of every mode.",
)  # fmt: skip
@_options.options_group(_options.fold, _options.data, _options.include)
def show(
    name: str, mode: str | None, episode: int, recipe: str | None, seed: int, checked: bool, fold: int,
    data: str | None, include: Sequence[str],
) -> None:  # fmt: skip
    """Print a task, mode, recipe or distillation by NAME.

    \b
    Examples:
      metasearch show demo --mode mono-bi-multi
      metasearch show demo --check
      metasearch show maml-align
    """
    from metasearch.config import yaml
    from metasearch.config.run import DataConfig

    if mode is None:
        reject_unused_options("episode", "recipe", "seed", "fold", why="no episode is drawn; pass --mode")
        if not checked:
            reject_unused_options("data", why="no data is read; pass --mode or --check")
    found = library(include)
    kind = next((kind for kind in _DECLARED if name in found.names(kind)), None)
    if kind is None:
        everything = [known for kind in _DECLARED for known in found.names(kind)]
        raise ConfigError(f"no task, mode, recipe or distillation '{name}'.{nearest(name, everything)}")
    declared = getattr(found, kind)(name)
    click.echo(yaml.dump(declared.model_dump(mode="json", exclude_none=kind != "distillation")))
    if (mode is not None or checked) and kind != "task":
        raise ConfigError(f"{'--check' if mode is None else '--mode'} needs a task; '{name}' is a {kind}")
    if mode is not None:
        ref = DataConfig(task=name, fold=fold, data=data, include=tuple(include))
        for line in _episode(found, ref, mode, recipe, seed, episode):
            click.echo(line)
    if checked:
        from metasearch.pipelines.check_task import check_task

        for line in check_task(found, DataConfig(task=name, data=data, include=tuple(include))):
            click.echo(f"ok  {line}")


def _episode(
    library: "Library", ref: "DataConfig", mode: str, recipe: str | None, seed: int, index: int
) -> Iterator[str]:
    from metasearch.data.benchmark import build
    from metasearch.episodes.episode import whole as described
    from metasearch.episodes.samplers import samplers

    chosen_mode, whole = library.mode(mode), library.fold(ref)
    benchmark = build(whole, library.arrangements(whole.task, chosen_mode))
    changes = ("budget.meta_valid=0",) if benchmark.only_translated else ()
    chosen = library.choose_recipe(chosen_mode, benchmark.task.encoder, None, recipe, changes)
    yield f"mode {mode} on {ref.task}, fold {ref.fold}: {benchmark.data.describe()}"
    for phase, arrangements in benchmark.arrangements.items():
        yield f"  {phase}: {' | '.join(map(str, arrangements))}"
    # Of meta-train, or of meta-valid where a recipe has no other.
    drawn = samplers(benchmark.trained_on(chosen.translate), chosen, seed)
    if not drawn:
        raise ConfigError(f"recipe '{chosen.recipe}' draws no episodes: budget.meta_train and budget.meta_valid are 0")
    phase, sampler = next(iter(drawn.items()))
    episode = sampler.episode(index)
    yield f"\n{phase} episode {index} of seed {seed}, recipe {chosen.recipe}: {episode.arrangement}"
    yield from described(episode)
