"""Settings of a run from command options, and option checks."""

import json
import os
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from metasearch.cli import _options
from metasearch.config import registry
from metasearch.config.base import Settings
from metasearch.data.hub import is_hub_name
from metasearch.errors import ConfigError

M = TypeVar("M", bound=Settings)


def configure(model: type[M], flags: Mapping[str, Any], beside: bool = False, **own: Any) -> M:
    """Return the settings of a run with absolute paths, so it can be resumed from any folder.

    Args:
        model: the settings.
        flags: values of their options.
        beside: whether the data lies beside the task and needs no folder, such as the one that `METASEARCH_DATA` names.
        **own: settings without an option, such as a recipe.
    """
    from metasearch.data.locate import VARIABLE

    values = {**flags, "data": flags["data"] or (None if beside else os.environ.get(VARIABLE))}
    for name, field in _options.settings_in(model):
        key, complete = _options.parameter_name(name, field), _options.flag_for(name, field).complete
        if complete in _ABSOLUTE and values.get(key):
            change, value = _ABSOLUTE[complete], values[key]
            values[key] = change(value) if isinstance(value, str) else tuple(map(change, value))
    return model.model_validate({**_options.tree(model, values), **own})


def _absolute_encoder(name: str) -> str:
    """Return an encoder's name, or the absolute path for a local folder."""
    local = name not in registry.names("encoders") and Path(name).is_dir()
    return _absolute_path(name) if local else name


def _absolute_path(path: str) -> str:
    return path if is_hub_name(path) else str(Path(path).resolve())


_ABSOLUTE = {"encoders": _absolute_encoder, "folders": _absolute_path, "paths": _absolute_path}
"""Kind of names of a setting (`Flag.complete`) → the change that makes a name absolute."""


def reject_conflicting_options(what: str = "run", allowed: Collection[str] = ()) -> None:
    """Raise `ConfigError` for flags beside `--resume`, which continues with the stored configuration.

    Args:
        what: is gone on with.
        allowed: parameters that may stand beside it, besides those of every command.
    """
    given = _given_options()
    others = sorted(set(given) - {"resume", "as_json", "trust_remote_code", "trackers", *allowed})
    if others:
        flags = ", ".join(given[name] for name in others)
        raise ConfigError(f"--resume continues a {what} as configured; omit {flags}")


def reject_unused_options(*names: str, why: str) -> None:
    """Raise `ConfigError` for flags that were given and would do nothing.

    Args:
        names: of their parameters.
        why: they would, and what else to say, such as `no task is read; pass --task`.
    """
    given = _given_options()
    idle = [given[name] for name in names if name in given]
    if idle:
        raise ConfigError(f"{', '.join(idle)}: {why}, or leave {'it' if len(idle) == 1 else 'them'} out")


def _given_options() -> dict[str, str]:
    """Return the given flags by parameter, each with its longest name, such as `--output`."""
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
