"""Finds tasks, transfer modes and recipes by name: the ones that ship, and those of a user's own folders.

A folder holds `*.yaml` (tasks), `modes/*.yaml`, `recipes/*.yaml` and, for recipes of several stages,
`distillation/*.yaml`. A later folder may not redefine a name.
"""

from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from metasearch.config import Recipe
from metasearch.data import taskfile
from metasearch.data.stages import Distillation
from metasearch.data.task import Mode, Task
from metasearch.errors import ConfigError, nearest

_WHERE = {"task": "", "mode": "modes", "recipe": "recipes", "distillation": "distillation"}


def shipped() -> Path:
    """Return the folder of tasks that ships: inside the package, or beside it in a checkout."""
    installed = Path(str(files("metasearch"))) / "tasks"
    return installed if installed.is_dir() else installed.parents[1] / "tasks"


class Library:
    """All declarations that can be used by name.

    Args:
        include: a user's own folders, searched beside the shipped one.

    Raises:
        ConfigError: a folder does not exist, or declares a name that is taken.
    """

    def __init__(self, include: Iterable[str | Path] = ()) -> None:
        self.folders = [shipped(), *map(Path, include)]
        for folder in self.folders:
            if not folder.is_dir():
                raise ConfigError(f"--include {folder}: no such folder")
        self._paths = {kind: self._index(kind) for kind in _WHERE}

    def names(self, kind: str) -> list[str]:
        """Return all names of a kind: `task`, `mode`, `recipe` or `distillation`."""
        return sorted(self._paths[kind])

    def path(self, kind: str, name: str) -> Path:
        """Return the file that declares a name; `ConfigError` names the nearest one."""
        if name not in self._paths[kind]:
            raise ConfigError(f"unknown {kind} '{name}'.{nearest(name, self.names(kind))}")
        return self._paths[kind][name]

    def task(self, name: str) -> Task:
        """Return a task by name."""
        task = taskfile.read(self.path("task", name), Task)
        self._same_name("task", name, task.task)
        return task

    def mode(self, name: str) -> Mode:
        """Return a transfer mode by name."""
        mode = taskfile.read(self.path("mode", name), Mode)
        self._same_name("mode", name, mode.mode)
        return mode

    def modes(self) -> list[Mode]:
        """Return all transfer modes."""
        return [self.mode(name) for name in self.names("mode")]

    def recipe(self, name: str, overrides: Mapping[str, Any] | None = None) -> Recipe:
        """Return a recipe by name, with values put over it."""
        recipe = taskfile.read(self.path("recipe", name), Recipe, overrides)
        self._same_name("recipe", name, recipe.recipe)
        return recipe

    def distillation(self, name: str, overrides: Mapping[str, Any] | None = None) -> Distillation:
        """Return a recipe of several stages by name, with values put over it."""
        path = self.path("distillation", name)
        known = taskfile.read(path, Distillation).stages
        for stage in (overrides or {}).get("stages") or {}:
            if stage not in known:
                raise ConfigError(f"--set stages.{stage}: no such stage.{nearest(stage, known)}")
        found = taskfile.read(path, Distillation, overrides)
        self._same_name("distillation", name, found.recipe)
        return found

    def recipe_for(self, learner: str, encoder: str) -> str:
        """Return the recipe a learner uses when none is named: `<learner>-<encoder>` where there is one."""
        tuned = f"{learner}-{encoder}"
        return tuned if tuned in self._paths["recipe"] else learner

    def _index(self, kind: str) -> dict[str, Path]:
        found: dict[str, Path] = {}
        for folder in self.folders:
            for path in sorted((folder / _WHERE[kind]).glob("*.yaml")):
                if path.stem in found:
                    raise ConfigError(f"{path}: {kind} '{path.stem}' is declared already in {found[path.stem]}")
                found[path.stem] = path
        return found

    def _same_name(self, kind: str, name: str, declared: str) -> None:
        if declared != name:
            raise ConfigError(f"{self.path(kind, name)}: {kind}: '{declared}' must be the file's name, '{name}'")


def overrides(assignments: Sequence[str]) -> taskfile.Tree:
    """Turn `--set` assignments such as `outer.lr=1e-4` into a nested tree of strings.

    Raises:
        ConfigError: an assignment has no `=` or no key.
    """
    tree: taskfile.Tree = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"--set {assignment}: expected KEY=VALUE such as outer.lr=1e-4")
        branch = taskfile.value_of(value.strip(), f"--set {assignment}")
        for part in reversed(key.strip().split(".")):
            branch = {part: branch}
        tree = taskfile.merge(tree, branch)
    return tree
