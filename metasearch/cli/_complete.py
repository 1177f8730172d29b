"""What a shell offers to complete a word with: names of tasks, recipes, learners and encoders, and folders of runs.

Nothing here imports torch, reads a declaration or raises: who presses the tab key waits for it, and wants no error.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from metasearch.errors import MetasearchError

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]

_RUN = ("config.yaml", "study.yaml")
_MODEL = ("modules.json", "model.safetensors", "pytorch_model.bin")
_DEPTH = 3
"""Folders below the one that is being typed in which runs and models are looked for."""
_MOST = 200
"""Folders that are offered, at most."""
_UNTRAINED = ("zero-shot", "neutral")
"""What `crossval` knows as learners, too."""


def declared(kind: str, listed: bool = False) -> Completer:
    """Return what offers the names of a kind of declarations, those of `--include` as well.

    Args:
        kind: `task`, `mode`, `recipe` or `distillation`.
        listed: whether the value is a list with commas, each as `NAME` or `NAME:MODE`.
    """

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return _offered(_declared(ctx, kind), ctx, incomplete, listed)

    return complete


def learners(listed: bool = False) -> Completer:
    """Return what offers the names of learners; `listed` as in `declared`, with those that train nothing."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return _offered([*_plug_ins("learners"), *(_UNTRAINED if listed else ())], ctx, incomplete, listed)

    return complete


def encoders(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the built-in encoders, the models in folders here, and any folder."""
    named = _offered(_plug_ins("encoders"), ctx, incomplete, listed=False)
    anywhere, *models = folders(*_MODEL)(ctx, param, incomplete)
    return [anywhere, *named, *models]


def folders(*holding: str) -> Completer:
    """Return what offers the folders here that hold one of some files, and any folder on the way to one."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        found = sorted(_holding(incomplete, holding))[:_MOST]
        # The shell offers any folder, too, as for other commands; bash does so where there is no name, and forgets
        # what stands before such an item.
        return [CompletionItem(incomplete, type="dir"), *(CompletionItem(name) for name in found)]

    return complete


runs = folders(*_RUN)
"""Offers runs, distillations and studies."""
runs_and_models = folders(*_RUN, *_MODEL)
"""Offers models, too."""
indexes = folders("manifest.json")
"""Offers what `metasearch index` made."""


def kinds(values: Iterable[str]) -> Completer:
    """Return what offers some words."""
    words = tuple(values)

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return _offered(words, ctx, incomplete, listed=False)

    return complete


def shown(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer all that is declared, whatever its kind."""
    every = [name for kind in ("task", "recipe", "distillation") for name in _declared(ctx, kind)]
    return _offered(every, ctx, incomplete, listed=False)


def launcher_settings(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the keys of what is asked of the launcher that is named, or of any."""
    from metasearch.spec.launchers import SETTINGS

    named: Any = ctx.params.get("launcher")
    keys = sorted({key for name, known in SETTINGS.items() if named in (None, name) for key in known})
    return [CompletionItem(f"{key}=") for key in keys if key.startswith(incomplete)]


def _offered(names: Iterable[str], ctx: click.Context, incomplete: str, listed: bool) -> list[CompletionItem]:
    before, comma, word = incomplete.rpartition(",") if listed else ("", "", incomplete)
    learner, colon, mode = word.partition(":") if listed else (word, "", "")
    if colon:
        return [
            CompletionItem(f"{before}{comma}{learner}:{name}")
            for name in _declared(ctx, "mode")
            if name.startswith(mode)
        ]
    taken = set(before.split(","))
    known = sorted(name for name in set(names) if name.startswith(word) and name not in taken)
    return [CompletionItem(f"{before}{comma}{name}") for name in known]


def _declared(ctx: click.Context, kind: str) -> list[str]:
    from metasearch.spec.library import names

    include: Any = ctx.params.get("include") or ()
    return sorted(set(names(kind, include)))


def _plug_ins(kind: str) -> list[str]:
    from metasearch.spec import registry

    try:
        return registry.names(kind)
    except MetasearchError:  # two packages offer the same name, which the command itself says
        return []


def _holding(incomplete: str, holding: Iterable[str]) -> Iterable[str]:
    above, slash, begun = incomplete.rpartition("/")
    place = Path(f"{above}{slash}" or ".").expanduser()
    try:
        nearest = [path for path in place.iterdir() if path.name.startswith(begun) and _seen(path, begun)]
        for path in nearest:
            for found in _below(path, tuple(holding), _DEPTH):
                yield f"{above}{slash}{found.relative_to(place).as_posix()}"
    except OSError:  # a folder that may not be read
        return


def _below(folder: Path, holding: tuple[str, ...], depth: int) -> Iterable[Path]:
    if any((folder / name).is_file() for name in holding):
        yield folder
    if depth > 1 and not (folder / _MODEL[0]).is_file():
        for path in folder.iterdir():
            if _seen(path, ""):
                yield from _below(path, holding, depth - 1)


def _seen(path: Path, begun: str) -> bool:
    """Return whether a path is a folder to look into: hidden ones are asked for by their dot."""
    return path.is_dir() and not path.is_symlink() and (not path.name.startswith(".") or begun.startswith("."))
