"""Names that a shell offers to complete a word: tasks, modes, recipes, learners and encoders; click completes the rest.

Nothing here imports torch, reads a declaration or raises: a shell waits for it.
"""

from collections.abc import Callable, Iterable
from typing import Any

import click
from click.shell_completion import CompletionItem

from metasearch.errors import MetasearchError

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]

_UNTRAINED = ("zero-shot", "neutral")
"""Learners of `crossval` alone."""


def declared(*kinds: str, listed: bool = False) -> Completer:
    """Return the completer for kinds of declarations, such as `task`; `listed` for a list of NAME or NAME:MODE."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return _items([name for kind in kinds for name in _declared(ctx, kind)], ctx, incomplete, listed)

    return complete


def learners(listed: bool = False) -> Completer:
    """Return the completer for learners; a list also has learners that train nothing."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return _items([*_plug_ins("learners"), *(_UNTRAINED if listed else ())], ctx, incomplete, listed)

    return complete


def encoders(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete a built-in encoder name or a folder."""
    # bash forgets what stands before a folder.
    return [CompletionItem(incomplete, type="dir"), *_items(_plug_ins("encoders"), ctx, incomplete)]


def named(kind: str | None) -> Completer | None:
    """Return the completer named by a setting: `paths`, `folders`, `encoders` or a kind of declaration."""
    if kind in ("folders", "paths"):
        shown = "dir" if kind == "folders" else "file"
        return lambda _ctx, _param, incomplete: [CompletionItem(incomplete, type=shown)]
    return encoders if kind == "encoders" else declared(kind) if kind else None


def _items(names: Iterable[str], ctx: click.Context, incomplete: str, listed: bool = False) -> list[CompletionItem]:
    before, comma, word = incomplete.rpartition(",") if listed else ("", "", incomplete)
    learner, colon, mode = word.partition(":") if listed else (word, "", "")
    if colon:
        found = [f"{learner}:{name}" for name in _declared(ctx, "mode") if name.startswith(mode)]
    else:
        taken = before.split(",")
        found = sorted(name for name in set(names) if name.startswith(word) and name not in taken)
    return [CompletionItem(f"{before}{comma}{name}") for name in found]


def _declared(ctx: click.Context, kind: str) -> list[str]:
    from metasearch.config.library import names

    include: Any = ctx.params.get("include") or ()
    return sorted(set(names(kind, include)))


def _plug_ins(kind: str) -> list[str]:
    from metasearch.config import registry

    try:
        return registry.names(kind)
    except MetasearchError:  # two packages offer the same name; the command itself reports that
        return []
