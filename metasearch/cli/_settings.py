"""Settings of a run from command options, and option checks."""

import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from metasearch.cli import _options
from metasearch.config.base import Settings
from metasearch.data.locate import absolute, absolute_encoder
from metasearch.errors import ConfigError

if TYPE_CHECKING:
    from metasearch.config.library import Library
    from metasearch.config.run import TaskConfig
    from metasearch.pipelines.run import Run, RunResult

M = TypeVar("M", bound=Settings)


def library(include: Sequence[str]) -> "Library":
    """Return all declarations by name: this is where the command line looks names up."""
    from metasearch.config.library import Library

    return Library(include)


def configure(model: type[M], flags: Mapping[str, Any], task: "TaskConfig | None" = None, **own: Any) -> M:
    """Return the settings of a run with absolute paths, so it can be resumed from any folder.

    If the data lies beside the `task`, `METASEARCH_DATA` is ignored. `own` are settings without an option.
    """
    from metasearch.data.locate import VARIABLE

    beside = task is not None and task.task.data
    values = {**flags, "data": flags["data"] or (None if beside else os.environ.get(VARIABLE))}
    for name, field in _options.settings_in(model):
        key, kind = _options.parameter_name(name, field), _options.flag_for(name, field).kind
        if kind in _ABSOLUTE and values.get(key):
            change, value = _ABSOLUTE[kind], values[key]
            values[key] = change(value) if isinstance(value, str) else tuple(map(change, value))
    tree = {**_options.tree(model, values), **own}
    if task is not None:
        tree["data"] |= {"task": task.task, "declared_in": task.declared_in}
    return model.model_validate(tree)


_ABSOLUTE = {"encoders": absolute_encoder, "folders": absolute, "paths": absolute}
"""Kind of names of a setting (`Flag.kind`) → the change that makes a name absolute."""


def reject_unused_options(*names: str, why: str) -> None:
    """Raise `ConfigError` for given options, by parameter name, without effect; `why` also says how to use them."""
    context = click.get_current_context()
    flags = {parameter.name: max(parameter.opts, key=len) for parameter in context.command.params}
    given = (name for name in names if context.get_parameter_source(name) is ParameterSource.COMMANDLINE)
    if idle := [flags[name] for name in given]:
        raise ConfigError(f"{', '.join(idle)}: {why}, or leave {'it' if len(idle) == 1 else 'them'} out")


def fresh_folder(*words: str) -> Path:
    """Return a folder below `runs/` that does not exist yet."""
    base = Path("runs") / "-".join([time.strftime("%Y%m%d-%H%M%S"), *words])
    # Several runs may begin within one second.
    return next(p for i in range(1, 1000) if not (p := base if i == 1 else base.with_name(f"{base.name}-{i}")).exists())


def execute(
    run: "Run[Any]", trackers: Sequence[str], trust_remote_code: bool, as_json: bool, patience: float = 0
) -> None:
    """Run to the end with a progress bar and trackers, and print the report."""
    from metasearch.runs.progress import ProgressBar
    from metasearch.runs.trackers import add_trackers

    callback = add_trackers(ProgressBar, trackers, run.files.path)
    show(run.execute(callback, trust_remote_code, patience), as_json)


def show(result: "RunResult", as_json: bool, what: str = "run") -> None:
    """Print the report of a run or study and its folder, or its scores as one JSON object."""
    tree = {what: str(result.folder), "results": result.rows}
    print_result(as_json, tree, f"{result.report}\n{what}: {result.folder}")


def print_result(as_json: bool, tree: Mapping[str, Any], text: str) -> None:
    """Print a result as one JSON object, or as text."""
    click.echo(json.dumps(tree, ensure_ascii=False) if as_json else text)
