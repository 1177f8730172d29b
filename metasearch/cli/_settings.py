"""What commands that run something make of their flags."""

import json
import os
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from metasearch.config import registry
from metasearch.errors import ConfigError


def absolute_encoder(name: str) -> str:
    """Return an encoder's name; of a local folder the absolute path, so that a resumed run finds it from elsewhere."""
    local = name not in registry.names("encoders") and Path(name).is_dir()
    return str(Path(name).resolve()) if local else name


def absolute_folders(include: Sequence[str], data: str | None, beside: bool = False) -> dict[str, Any]:
    """Return `include` and `data` of a configuration as absolute paths, which a run that is resumed elsewhere finds.

    Args:
        include: folders, as `--include` named them.
        data: `--data`, where it was said; by default the folder that `METASEARCH_DATA` names.
        beside: whether the data lies beside the task and needs no folder.
    """
    from metasearch.data.locate import VARIABLE

    folder = data or (None if beside else os.environ.get(VARIABLE))
    return {
        "include": tuple(str(Path(each).resolve()) for each in include),
        "data": str(Path(folder).resolve()) if folder else None,
    }


def reject_conflicting_options(what: str = "run", allowed: Collection[str] = ()) -> None:
    """Raise `ConfigError` for flags beside `--resume`, which goes on as the run was configured.

    Args:
        what: is gone on with.
        allowed: parameters that may stand beside it, besides those of every command.
    """
    given = _given_options()
    others = sorted(set(given) - {"resume", "as_json", "trust_remote_code", *allowed})
    if others:
        flags = ", ".join(given[name] for name in others)
        raise ConfigError(f"--resume goes on with a {what} as it was configured; leave out {flags}")


def reject_unused_options(*names: str, why: str) -> None:
    """Raise `ConfigError` for flags that were given and would do nothing.

    Args:
        names: of their parameters.
        why: they would, and what else to say, such as `no task is read; say --task, too`.
    """
    given = _given_options()
    idle = [given[name] for name in names if name in given]
    if idle:
        raise ConfigError(f"{', '.join(idle)}: {why}, or leave {'it' if len(idle) == 1 else 'them'} out")


def _given_options() -> dict[str, str]:
    """Return the flags of the command line by their parameters, each with the longest of its names: `--output`."""
    context = click.get_current_context()
    flags = {parameter.name: max(parameter.opts, key=len) for parameter in context.command.params}
    said = (name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE)
    return {name: flags[name] for name in said}


def fresh_folder(*words: str) -> Path:
    """Return a folder below `runs/` that does not exist yet."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    base = Path("runs") / "-".join([stamp, *words])
    # Several runs may begin within one second.
    return next(p for i in range(1, 1000) if not (p := base if i == 1 else base.with_name(f"{base.name}-{i}")).exists())


# What commands print on stdout when a run is finished.

if TYPE_CHECKING:
    from metasearch.pipelines.run import RunResult


def show(result: "RunResult", as_json: bool, what: str = "run") -> None:
    """Print the report of a run or study and its folder, or its scores as one JSON object."""
    if as_json:
        click.echo(json.dumps({what: str(result.folder), "results": result.rows}, ensure_ascii=False))
    else:
        click.echo(f"{result.report}\n{what}: {result.folder}")
