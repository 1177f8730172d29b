"""Find tasks, transfer modes and recipes by name, among shipped and user folders.

A folder holds `*.yaml` (tasks), `modes/*.yaml`, `recipes/*.yaml` and, for recipes of several stages,
`distillation/*.yaml`. A later folder may not redefine a name.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from metasearch.config import registry, yaml
from metasearch.config.arrangement import Arrangement
from metasearch.config.distillation import Distillation
from metasearch.config.recipe import SET, Recipe
from metasearch.config.run import DataConfig, FoldConfig
from metasearch.config.task import Mode, Phase, Task, resolve
from metasearch.errors import ConfigError, first_line, nearest, quoted, require_known

WHERE = {"task": "", "mode": "modes", "recipe": "recipes", "distillation": "distillation"}
"""Kind of a declaration → the folder of its files."""

_PACKAGE = Path(__file__).parents[1]

Assignments = Sequence[str] | Mapping[str, Any]
"""`KEY=VALUE` as on the command line, or values by dotted key."""


def shipped() -> Path:
    """Return the shipped folder of tasks: inside the package, or beside it in a checkout."""
    installed = _PACKAGE / "tasks"
    return installed if installed.is_dir() else _PACKAGE.parent / "tasks"


def files(folder: Path, kind: str) -> list[Path]:
    """Return the files in a folder that declare a kind, by name."""
    return sorted((folder / WHERE[kind]).glob("*.yaml"))


class Library:
    """All declarations that can be used by name.

    Args:
        include: a user's own folders, searched beside the shipped one; each must exist, and take no name twice.
    """

    def __init__(self, include: Iterable[str | Path] = ()) -> None:
        self.folders = [shipped(), *map(Path, include)]
        for folder in self.folders:
            if not folder.is_dir():
                raise ConfigError(f"--include {folder}: no such folder")
        self._paths = {kind: self._index(kind) for kind in WHERE}

    def names(self, kind: str) -> list[str]:
        """Return all names of a kind: `task`, `mode`, `recipe` or `distillation`."""
        return sorted(self._paths[kind])

    def path(self, kind: str, name: str) -> Path:
        """Return the file that declares a name; `ConfigError` names the nearest one, or the folder to include."""
        if name not in self._paths[kind] and (file := _file_named(kind, name)):
            known = self._paths[kind].get(file.stem)
            folder = file.absolute().parent.parent if WHERE[kind] else file.parent
            include = "" if known and known.samefile(file) else f" --include {quoted(folder)}"
            raise ConfigError(f"unknown {kind} '{name}'; to use the file {file}, write: {file.stem}{include}")
        require_known(kind, name, self._paths[kind])
        return self._paths[kind][name]

    def task(self, name: str) -> Task:
        """Return a task by name."""
        return self._read("task", name, Task)

    def fold(self, ref: DataConfig) -> FoldConfig:
        """Return settings with the task in place of its name."""
        return FoldConfig(**{**dict(ref), **self.declared(ref.task)})

    def scored(self, task: str, where: Mapping[str, Any]) -> FoldConfig:
        """Return a further task to score on. Its own data folder takes precedence over the shared one."""
        found = self.declared(task)
        data = None if found["task"].data else where.get("data")
        return FoldConfig(**found, include=tuple(where.get("include") or ()), data=data)

    def declared(self, task: str) -> dict[str, Any]:
        """Return a task, and the folder of its file, as fields of a `TaskConfig`."""
        folder = self.path("task", task).parent
        return {"task": self.task(task), "declared_in": None if folder == shipped() else str(folder.absolute())}

    def arrangements(self, task: Task, mode: Mode) -> dict[Phase, list[Arrangement]]:
        """Return a task's arrangements for a mode; `ConfigError` names the modes that it has some for."""
        return resolve(task, mode, self.modes())

    def mode(self, mode: Mode | str) -> Mode:
        """Return a transfer mode by name; a mode that is parsed already is returned unchanged."""
        return mode if isinstance(mode, Mode) else self._read("mode", mode, Mode)

    def modes(self) -> list[Mode]:
        """Return all transfer modes."""
        return [self.mode(name) for name in self.names("mode")]

    def recipe(self, name: str, overrides: Mapping[str, Any] | None = None) -> Recipe:
        """Return a recipe by name, with values put over it, which its `sources` name."""
        self._refuse_bare_keys(name, overrides or {})
        chosen = self._read("recipe", name, Recipe, overrides)
        own = dict.fromkeys(yaml.flatten(overrides or {}), SET)
        return chosen.model_copy(update={"sources": chosen.sources | own}) if own else chosen

    def _refuse_bare_keys(self, name: str, overrides: Mapping[str, Any]) -> None:
        """Raise `ConfigError` for a key that belongs in a section of the recipe, with the section."""
        for key in (key for key in overrides if key not in Recipe.model_fields):
            recipe = self._read("recipe", name, Recipe)
            options = registry.load("learners", recipe.learner).LEARNER.Options.model_fields
            sections = {**recipe.model_dump(exclude={"sources"}), "options": options}
            found = [
                f"{section}.{key}" for section, keys in sections.items() if isinstance(keys, Mapping) and key in keys
            ]
            if found:
                raise ConfigError(f"--set {key}: unknown key. Did you mean '{' or '.join(found)}'?")

    def distillation(self, name: str, overrides: Mapping[str, Any] | None = None) -> Distillation:
        """Return a recipe with several stages by name, with values changed."""
        # Without the overrides first: a stage whose name is wrong would be reported as one that lacks all keys.
        known = self._read("distillation", name, Distillation).stages
        for stage in (overrides or {}).get("stages") or {}:
            if stage not in known:
                raise ConfigError(f"--set stages.{stage}: unknown stage.{nearest(stage, known)}")
        return self._read("distillation", name, Distillation, overrides)

    def recipe_for(self, learner: str, encoder: str) -> str:
        """Return the recipe a learner uses when none is named: `<learner>-<encoder>` where there is one.

        A built-in encoder without one of its own gets that of its family: `mini-e5` that of `mini`.
        """
        family = encoder.split("-")[0] if encoder in registry.names("encoders") else encoder
        tuned = (f"{learner}-{encoder}", f"{learner}-{family}")
        return next((name for name in tuned if name in self._paths["recipe"]), learner)

    def choose_recipe(
        self, mode: Mode | str, encoder: str, learner: str | None, recipe: str | None, assignments: Assignments = ()
    ) -> Recipe:
        """Return a run's recipe: the named one, else the learner's, else the one for the mode's learner.

        A mode of three links is learned by `maml-align`, one of two by `maml`. An encoder that a recipe of the learner
        is tuned to (`maml-tiny`) gets that one.
        """
        if learner is not None:
            registry.require("learners", learner)
        elif recipe is None:
            learner = "maml-align" if self.mode(mode).links == 3 else "maml"
        name = recipe or self.recipe_for(str(learner), encoder)
        if recipe is None and name not in self._paths["recipe"]:
            raise ConfigError(
                f"learner '{learner}' has no recipe; name one with --recipe. If it belongs to a stage, see `metasearch "
                "ls distillations`"
            )
        chosen = self.recipe(name, overrides(assignments))
        if learner not in (None, chosen.learner):
            raise ConfigError(f"recipe '{name}' is for learner '{chosen.learner}', not '{learner}'")
        return chosen

    def changed(self, config: BaseModel) -> Iterator[str]:
        """Yield a line for each task and mode of stored settings whose file has changed or is gone."""
        for value in chain.from_iterable(value if isinstance(value, tuple) else (value,) for _, value in config):
            if not isinstance(value, Task | Mode):
                yield from self.changed(value) if isinstance(value, BaseModel) else ()
                continue
            kind, name = ("task", value.name) if isinstance(value, Task) else ("mode", value.mode)
            try:
                if getattr(self, kind)(name) != value:
                    yield f"{self.path(kind, name)}: {kind} '{name}' has changed since"
            except ConfigError as error:
                yield f"{kind} '{name}': {first_line(error)}"

    def _index(self, kind: str) -> dict[str, Path]:
        paths: dict[str, Path] = {}
        for folder in self.folders:
            for path in files(folder, kind):
                if path.stem in paths:
                    raise ConfigError(f"{path}: {kind} '{path.stem}' is declared already in {paths[path.stem]}")
                paths[path.stem] = path
        return paths

    def _read(
        self, kind: str, name: str, model: type[yaml.Model], overrides: Mapping[str, Any] | None = None
    ) -> yaml.Model:
        path = self.path(kind, name)
        declaration = yaml.read(path, model, overrides)
        written = getattr(declaration, {"distillation": "recipe", "task": "name"}.get(kind, kind))
        if written != name:
            raise ConfigError(f"{path}: {kind}: '{written}' must be the file's name, '{name}'")
        return declaration


def _file_named(kind: str, name: str) -> Path | None:
    """Return the YAML file that a path, or a name in the working directory, meant, if it declares a kind."""
    known = (Path(name), Path(f"{name}.yaml"))
    file = next((path for path in known if path.suffix == ".yaml" and path.is_file()), None)
    return file if file is not None and (not WHERE[kind] or file.absolute().parent.name == WHERE[kind]) else None


def overrides(assignments: Assignments) -> yaml.Tree:
    """Turn `--set` assignments such as `outer.lr=1e-4`, or values by dotted key, into a nested tree."""
    if isinstance(assignments, Mapping):
        return _nested(assignments)
    values: dict[str, Any] = {}
    written: dict[str, str] = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"--set {assignment}: expected KEY=VALUE such as outer.lr=1e-4")
        # Merged, the one would be gone without a word.
        for other, said in written.items():
            short, long = sorted((key.strip(), other), key=len)
            if long.startswith(f"{short}."):
                raise ConfigError(f"--set {said} and --set {assignment}: {long} is part of {short}; omit one")
        written[key.strip()] = assignment
        values[key.strip()] = yaml.parse_value(value.strip(), f"--set {assignment}")
    return _nested(values)


def _nested(values: Mapping[str, Any]) -> yaml.Tree:
    tree: yaml.Tree = {}
    for key, branch in values.items():
        for part in reversed(key.split(".")):
            branch = {part: branch}
        tree = yaml.overlay(tree, branch)
    return tree


# The Python API.


def load_recipe(
    name: str, assignments: Assignments = (), include: Sequence[str] = (), encoder: str | None = None
) -> Recipe:
    """Return a recipe such as `maml-align`, with assignments such as `outer.lr=1e-4` put over it.

    Args:
        name: a recipe's; with an `encoder` a learner's, and its recipe for this encoder is taken if there is one.
        assignments: `KEY=VALUE`, or a mapping from dotted keys to values.
        include: folders with further recipes.
        encoder: as above.
    """
    recipe: Recipe = _load("recipe", name, include, encoder, overrides=overrides(assignments))
    return recipe


def load_distillation(name: str, assignments: Assignments = (), include: Sequence[str] = ()) -> Distillation:
    """Return a recipe with several stages such as `compress`, as `load_recipe` does.

    Assignments are such as `student.bottleneck=64` or `stages.contrast.outer.lr=1e-4`.
    """
    recipe: Distillation = _load("distillation", name, include, overrides=overrides(assignments))
    return recipe


def load_mode(name: str, include: Sequence[str] = ()) -> Mode:
    """Return a transfer mode such as `mono-bi`, also from further folders."""
    mode: Mode = _load("mode", name, include)
    return mode


def _load(kind: str, name: str, include: Sequence[str], encoder: str | None = None, **given: Any) -> Any:
    library = Library(include)
    return getattr(library, kind)(library.recipe_for(name, encoder) if encoder else name, **given)
