"""Command-line options that follow from the settings of a run, and the settings that follow from their values."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from types import NoneType
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

import click
from pydantic.fields import FieldInfo

from metasearch.cli import _complete
from metasearch.config.base import Flag, Settings
from metasearch.config.recipe import Role
from metasearch.errors import nearest

ROLES = get_args(Role)

F = TypeVar("F", bound=Callable[..., Any])


class Prompt(click.ParamType):  # type: ignore[type-arg]  # not generic in older versions of click
    """A prompt as ROLE=TEXT."""

    name = "prompt"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return role and text."""
        role, equals, text = value.partition("=")
        if not equals:
            self.fail(f"'{value}': expected ROLE=TEXT, such as \"candidate=passage: \"", param, ctx)
        if role not in ROLES:
            self.fail(f"'{value}': no role '{role}'.{nearest(role, ROLES)}", param, ctx)
        return role, text


def _by_role(ctx: click.Context, param: click.Parameter, pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return the prompt of each role; a usage error where one has two."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise click.BadParameter(
            f"a role has one prompt; {', '.join(role for role, _ in pairs)} were given", ctx, param
        )
    return found


def options_group(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Return one decorator for several options, listed in `--help` in this order."""

    def decorate(function: F) -> F:
        # As with stacked decorators, the last one is applied first, and click lists them from the top.
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def settings(
    model: type[Settings], *, first: Sequence[str] = (), without: Collection[str] = (), **defaults: Any
) -> Callable[[F], F]:
    """Return the options of all settings of a model, its sections included, listed in `--help` in their order.

    Args:
        model: settings of a run; fields that are no settings, such as a recipe, have no option.
        first: names of fields whose options are listed first.
        without: names of fields that get no option.
        **defaults: default values of options, instead of those of the model.
    """
    fields = {name: field for name, field in _settings_in(model) if name not in without}
    names = [*first, *(name for name in fields if name not in first)]
    return options_group(*(_option(name, fields[name], defaults) for name in names))


def setting(model: type[Settings], name: str, **changes: Any) -> Callable[[F], F]:
    """Return the option of one setting; `changes` are arguments of `click.option`, such as another default."""
    return _option(name, model.model_fields[name], {}, **changes)


def tree(model: type[Settings], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a model as a tree of its sections, from the values of their options."""
    found: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        if (section := _section(field)) is not None:
            found[name] = tree(section, values)
        elif (key := _parameter(name, field)) in values:
            found[name] = values[key]
    return found


def _settings_in(model: type[Settings]) -> Iterator[tuple[str, FieldInfo]]:
    for name, field in model.model_fields.items():
        if (section := _section(field)) is not None:
            yield from _settings_in(section)
        elif field.description is not None:
            yield name, field


def _section(field: FieldInfo) -> type[Settings] | None:
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, Settings) else None


def _flag(name: str, field: FieldInfo) -> Flag:
    known = next((each for each in field.metadata if isinstance(each, Flag)), Flag())
    return known if known.name else replace(known, name=f"--{name.replace('_', '-')}")


def _parameter(name: str, field: FieldInfo) -> str:
    """Return the name of an option's value, which is that of its flag."""
    return str(_flag(name, field).name)[2:].replace("-", "_")


def _option(name: str, field: FieldInfo, defaults: Mapping[str, Any], **changes: Any) -> Callable[[F], F]:
    flag, key = _flag(name, field), _parameter(name, field)
    default = None if field.is_required() else field.default
    default = defaults.get(key, default)
    shown = isinstance(default, str | int) and not isinstance(default, bool)
    how: dict[str, Any] = {"help": str(field.description).replace("\n", " "), "metavar": flag.metavar}
    how |= {"default": default, "show_default": shown, "shell_complete": _completer(flag.complete)}
    how |= _type(field.annotation, [*field.metadata], flag)
    return click.option(str(flag.name), key, **{**how, **changes})


def _completer(kind: str | None) -> Any:
    known = {None: None, "folders": _complete.folders, "encoders": _complete.encoders}
    return known[kind] if kind in known else _complete.declared(str(kind))


def _type(annotation: Any, metadata: list[Any], flag: Flag) -> dict[str, Any]:
    """Return the arguments of `click.option` that follow from the type of a setting."""
    if NoneType in get_args(annotation):
        (annotation,) = (each for each in get_args(annotation) if each is not NoneType)
        if get_origin(annotation) is Annotated:
            annotation, *further = get_args(annotation)
            metadata += [one for each in further for one in (each.metadata if isinstance(each, FieldInfo) else [each])]
    if get_origin(annotation) is Literal:
        return {"type": click.Choice(get_args(annotation))}
    if annotation is bool:
        return {"is_flag": True}
    if annotation is int:
        low = next((each.ge for each in metadata if hasattr(each, "ge")), None)
        high = next((each.le for each in metadata if hasattr(each, "le")), None)
        return {"type": int if low is None and high is None else click.IntRange(low, high)}
    if get_origin(annotation) is tuple:
        if not flag.comma:
            return {"multiple": True}
        return {"default": None, "callback": lambda _ctx, _param, value: tuple(value.split(",")) if value else ()}
    if annotation is str:
        return {}
    return {"type": Prompt(), "multiple": True, "callback": _by_role}  # a prompt for each role
