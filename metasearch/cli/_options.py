"""Command options: generated from the settings of a run, or shared by several commands."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

import click
from pydantic.fields import FieldInfo

from metasearch.config import yaml
from metasearch.config.base import Flag, Settings
from metasearch.config.precision import ALIASES, EncodingPrecision
from metasearch.config.roles import ROLE_NAMES
from metasearch.config.run import ComputeConfig, DataConfig, EncoderConfig, Folders
from metasearch.config.study import SETTINGS
from metasearch.config.task import Mode, Task
from metasearch.errors import ConfigError, nearest

TRACKERS = ("tensorboard", "wandb", "mlflow")
"""Names of experiment trackers, which the extra `track` installs."""


F = TypeVar("F", bound=Callable[..., Any])
M = TypeVar("M", bound=Settings)


class Choice(click.Choice):  # type: ignore[type-arg]  # not generic in older versions of click
    """A choice among names whose error suggests the nearest one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if ALIASES.get(value) in self.choices:
            value = ALIASES[value]
        if value not in self.choices:
            self.fail(f"unknown choice '{value}'.{nearest(str(value), self.choices)}", param, ctx)
        return super().convert(value, param, ctx)


class Parsed(click.ParamType):  # type: ignore[type-arg]  # as above
    """A value that a function parses; its `ValueError` becomes a usage error."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name, self._parse = name, parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return self._parse(value) if isinstance(value, str) else value
        except ValueError as error:
            self.fail(f"'{value}': {error}", param, ctx)


class ListOption(click.Option):
    """A repeatable option whose values may be lists with commas; it gives the distinct ones."""

    def __init__(self, *args: Any, **keys: Any) -> None:
        super().__init__(*args, **{**keys, "multiple": True})

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        words = [word.strip() for each in value or () for word in str(each).split(",")]
        if not all(words):  # such as an unset variable
            raise ConfigError(f"{self.opts[0]} {','.join(value)}: expected names separated by commas")
        return super().type_cast_value(ctx, tuple(dict.fromkeys(words)))


def _parse_layers(value: str) -> int | tuple[int, ...]:
    words = value.split(",")
    if not all(word.strip().isdecimal() for word in words):
        raise ValueError("expected a number, or numbers such as 1,4,7")
    return tuple(map(int, words)) if len(words) > 1 else int(value)


class Command(click.Command):
    """A command with `--debug`, and errors with the nearest choice; `sections` are headings of its options by name."""

    def __init__(self, *args: Any, sections: Mapping[str, str] | None = None, **keys: Any) -> None:
        super().__init__(*args, **keys)
        self.sections = sections or {}
        for parameter in self.params:
            if type(parameter.type) is click.Choice:
                parameter.type = Choice(parameter.type.choices)
        self.params.append(click.Option(["--debug"], is_flag=True, expose_value=False, help="Show tracebacks."))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        shown = (each for each in self.get_params(ctx) if isinstance(each, click.Option))
        rows = {each.name: row for each in shown if (row := each.get_help_record(ctx))}
        sections = {heading: [rows.pop(name) for name in names.split()] for heading, names in self.sections.items()}
        for heading, own in {**sections, "Options": [*rows.values()]}.items():
            with formatter.section(heading):
                formatter.write_dl(own, col_max=28)


command = partial(click.command, cls=Command)


def options_group(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Return one decorator for several options, listed in `--help` in this order."""

    def decorate(function: F) -> F:
        # As with stacked decorators, the last one is applied first.
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def settings(
    model: type[Settings],
    *,
    first: Sequence[str] = (),
    without: Collection[str] = (),
    unset: bool = False,
    **defaults: Any,
) -> Callable[[F], F]:
    """Return options for all settings of a model and its sections, in the order of `--help`.

    Args:
        model: settings; fields without a help text, such as a recipe, have no option.
        first: names of fields whose options are listed first.
        without: names of fields that get no option.
        unset: give options no default value, for settings that are kept unless an option changes them.
        **defaults: default values of options, in place of the model's defaults.
    """
    fields = {name: field for name, field in settings_in(model) if name not in without}
    names = [*first, *(name for name in fields if name not in first)]
    if unset:
        defaults |= {parameter_name(name, field): None for name, field in fields.items()}
    return options_group(*(_option(name, fields[name], defaults) for name in names))


def setting(model: type[Settings], name: str) -> Callable[[F], F]:
    """Return the option for one setting."""
    return _option(name, model.model_fields[name], {})


def tree(model: type[Settings], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a model's settings as a tree of sections, from option values."""
    found: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        if (section := _section(field)) is not None:
            found[name] = tree(section, values)
        elif (key := parameter_name(name, field)) in values:
            found[name] = values[key]
    return found


def given(model: type[Settings], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings given on the command line, for options without a default."""
    return {name: value for name, value in tree(model, values).items() if value not in (None, (), {})}


def validate(model: type[M], values: Mapping[str, Any], where: str) -> M:
    """Return a model's settings from option values; a `ConfigError` names the option."""
    places: yaml.Places = {(name,): flag_for(name, field).name for name, field in model.model_fields.items()}
    return yaml.check(tree(model, values), model, where, places)


def settings_in(model: type[Settings]) -> Iterator[tuple[str, FieldInfo]]:
    """Yield all settings with an option, in a model and its sections."""
    for name, field in model.model_fields.items():
        if (section := _section(field)) is not None:
            yield from settings_in(section)
        elif field.description is not None:
            yield name, field


def _section(field: FieldInfo) -> type[Settings] | None:
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, Settings) else None


def flag_for(name: str, field: FieldInfo) -> Flag:
    """Return the flag for a setting."""
    known = next((each for each in field.metadata if isinstance(each, Flag)), Flag())
    return known if known.name else replace(known, name=f"--{name.replace('_', '-')}")


def parameter_name(name: str, field: FieldInfo) -> str:
    """Return an option's parameter name, derived from its flag."""
    return flag_for(name, field).name[2:].replace("-", "_")


def _option(name: str, field: FieldInfo, defaults: Mapping[str, Any]) -> Callable[[F], F]:
    flag, key = flag_for(name, field), parameter_name(name, field)
    default = defaults.get(key, None if field.is_required() else field.default)
    shown = isinstance(default, str | int | tuple) and default != () and not isinstance(default, bool)
    how: dict[str, Any] = {"help": str(field.description).replace("\n", " "), "metavar": flag.metavar}
    how |= {"default": default, "show_default": shown}
    how |= _type(field.annotation, [*field.metadata], flag)
    either = default is not False and how.get("is_flag")
    return click.option(f"{flag.name}/--no-{flag.name[2:]}" if either else flag.name, key, **how)


_TYPES: dict[Any, dict[str, Any]] = {
    bool: {"is_flag": True},
    str: {},
    Mode: {},
    Task: {},
    Path: {"type": click.Path(path_type=Path)},
    tuple[Path, ...]: {"type": click.Path(path_type=Path), "multiple": True},
}
"""Type of a setting → arguments of `click.option`, where they follow from nothing else."""


def _type(annotation: Any, metadata: list[Any], flag: Flag) -> dict[str, Any]:
    if flag.comma:
        item, *_ = get_args(annotation)
        return {"cls": ListOption, **({"type": Choice(get_args(item))} if get_origin(item) is Literal else {})}
    if NoneType in get_args(annotation):
        annotation, *others = (each for each in get_args(annotation) if each is not NoneType)
        if others:  # `int | tuple[int, ...]`
            return {"type": Parsed("N|LIST", _parse_layers)}
        if get_origin(annotation) is Annotated:
            annotation, *further = get_args(annotation)
            metadata += [one for each in further for one in (each.metadata if isinstance(each, FieldInfo) else [each])]
    if get_origin(annotation) is Literal:
        return {"type": Choice(get_args(annotation))}
    if annotation in _TYPES:
        return dict(_TYPES[annotation])
    if annotation in (int, float):
        return {"type": _range(annotation, metadata)}
    if get_origin(annotation) is tuple:
        return {"multiple": True}
    return {"multiple": True, "callback": _parse_prompts}


def _range(kind: type, metadata: list[Any]) -> click.ParamType:  # type: ignore[type-arg]  # as above
    bounds = {name: getattr(each, name) for each in metadata for name in ("gt", "ge", "le") if hasattr(each, name)}
    if not bounds:
        return click.INT if kind is int else click.FLOAT
    if kind is int:
        return click.IntRange(bounds.get("ge"), bounds.get("le"))
    return click.FloatRange(bounds.get("gt", bounds.get("ge")), bounds.get("le"), min_open="gt" in bounds)


def _parse_prompts(ctx: click.Context, param: click.Parameter, written: Sequence[str]) -> dict[str, str]:
    """Return the prompt for each role from `ROLE=TEXT`; a usage error for another form, and if a role has two."""
    found: dict[str, str] = {}
    for each in written:
        name, equals, text = each.partition("=")
        role = ROLE_NAMES.get(name, name)
        if not equals:
            raise click.BadParameter(f"'{each}': expected ROLE=TEXT, such as \"document=passage: \"", ctx, param)
        if role not in ROLE_NAMES.values():
            raise click.BadParameter(f"'{each}': no role '{name}'.{nearest(name, ROLE_NAMES)}", ctx, param)
        if role in found:
            raise click.BadParameter(f"'{each}': the role already has the prompt '{found[role]}'", ctx, param)
        found[role] = text
    return found


# Options that several commands share.

include, data = setting(Folders, "include"), setting(Folders, "data")
fold, fold_seed = setting(DataConfig, "fold"), setting(DataConfig, "fold_seed")
FOLD = ("fold", "fold_seed", "data", "include")
one_fold = options_group(fold, fold_seed, data, include)
"""The fold of a task, for `load_benchmark`; `FOLD` are the parameters."""
device = setting(ComputeConfig, "device")
query_precision = click.option(
    "--precision", type=click.Choice(get_args(EncodingPrecision)), default="auto",
    help="Encode queries in this precision; auto follows the index where this machine is fast in it, else float32.",
)  # fmt: skip
prompts, trust = setting(EncoderConfig, "prompts"), setting(EncoderConfig, "trust_remote_code")


def encoder(help: str, **more: Any) -> Callable[[F], F]:
    """Return the option `--encoder`; `more` are arguments of `click.option`."""
    return click.option("--encoder", help=help, **more)


def task(help: str, **more: Any) -> Callable[[F], F]:
    """Return the option `--task`, or another one that takes a task; likewise."""
    return click.option("--task", help=help, **more)


def output(help: str, **more: Any) -> Callable[[F], F]:
    """Return the option `--output`; `more` are arguments of `click.option`."""
    return click.option("-o", "--output", type=click.Path(path_type=Path), help=help, **more)


def _parse_column(value: str) -> tuple[str, str]:
    name, _, column = (each.strip() for each in value.partition("="))
    if not (name and column):
        raise ValueError("expected NAME=COLUMN,... such as query=question,document=answer")
    return name, column


columns = click.option(
    "--columns", cls=ListOption, type=Parsed("columns", _parse_column), callback=lambda _, param, pairs: dict(pairs),
    metavar="NAME=COLUMN,...", help="Columns with other names, such as query=question,document=answer.",
)  # fmt: skip


def as_json(what: str = "scores") -> Callable[[F], F]:
    """Return the option `--json`, which prints `what`."""
    return click.option("--json", "as_json", is_flag=True, help=f"Print {what} as one JSON object on stdout.")


def seed(help: str) -> Callable[[F], F]:
    """Return the option `--seed` with its help."""
    seeds = click.IntRange(0, 2**63 - 1)  # which every library takes
    return click.option("--seed", type=seeds, default=0, show_default=True, metavar="SEED", help=help)


def jobs(what: str = "Runs at a time") -> Callable[[F], F]:
    """Return the option `--jobs`; `what` begins its help."""
    how = f"{what}; by default 1, with another launcher as many as its cluster takes."
    return click.option("--jobs", type=click.IntRange(min=1), metavar="N", help=how)


moved_encoder = encoder("New place of the index's encoder, if it has moved.")


launcher = options_group(
    click.option(
        "--launcher", type=click.Choice(list(SETTINGS)),
        help="Launcher of the runs: this machine, Slurm or a Ray cluster; by default the one used before.",
    ),
    click.option(
        "--launcher-set", "launcher_settings", multiple=True, metavar="KEY=VALUE",
        help="Request to the launcher for each run, such as cpus=4 or time=4:00:00; repeatable.",
    ),
)  # fmt: skip
"""Where the cells of a study run."""

track = click.option(
    "--track", "trackers", cls=ListOption, type=Choice(TRACKERS),
    help="Send loss and dev scores to experiment trackers.",
)  # fmt: skip
assignments = click.option(
    "--set", "assignments", multiple=True, metavar="KEY=VALUE", help="Override a recipe value; repeatable."
)
run = options_group(output("Run folder; by default a new one below runs/."), track, as_json())
"""Where a run goes, and what it prints."""
