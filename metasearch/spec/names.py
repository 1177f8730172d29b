"""The names of what is declared in folders, without reading a declaration: a shell that completes words is quick."""

from collections.abc import Iterable, Iterator
from pathlib import Path

WHERE = {"task": "", "mode": "modes", "recipe": "recipes", "distillation": "distillation"}
"""Kind of a declaration → the folder of its files."""

_PACKAGE = Path(__file__).parents[1]


def shipped() -> Path:
    """Return the folder of tasks that ships: inside the package, or beside it in a checkout."""
    installed = _PACKAGE / "tasks"
    return installed if installed.is_dir() else _PACKAGE.parent / "tasks"


def files(folder: Path, kind: str) -> list[Path]:
    """Return the files that declare something of a kind in a folder; the name of each is what it declares."""
    return sorted((folder / WHERE[kind]).glob("*.yaml"))


def names(kind: str, include: Iterable[str | Path] = ()) -> Iterator[str]:
    """Yield the names of a kind in the folder that ships and in further ones, which need not exist."""
    for folder in (shipped(), *map(Path, include)):
        yield from (path.stem for path in files(folder, kind))
