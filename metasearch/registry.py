"""Plug-ins by file name: a file in `metasearch/<kind>/` is a plug-in, its name with dashes is the plug-in's name.

Listing looks at file names only and imports nothing. Modules named `base` and those that begin with an underscore
are not plug-ins.
"""

from importlib import import_module
from pathlib import Path
from types import ModuleType

from metasearch.errors import ConfigError, nearest

KINDS = {"learners": "learners", "encoders": "encoders", "readers": "data/readers"}
_PACKAGE = Path(__file__).parent


def names(kind: str) -> list[str]:
    """Return the names of all plug-ins of a kind, sorted.

    Args:
        kind: one of `KINDS`.
    """
    folder = _PACKAGE / KINDS[kind]
    stems = (path.stem for path in folder.glob("*.py"))
    return sorted(stem.replace("_", "-") for stem in stems if stem != "base" and not stem.startswith("_"))


def load(kind: str, name: str) -> ModuleType:
    """Import one plug-in.

    Raises:
        ConfigError: no plug-in has that name; the message names the nearest one.
    """
    require(kind, name)
    dotted = KINDS[kind].replace("/", ".")
    return import_module(f"metasearch.{dotted}.{name.replace('-', '_')}")


def require(kind: str, name: str) -> None:
    """Raise `ConfigError` naming the nearest plug-in unless there is one of that name."""
    if name not in names(kind):
        raise ConfigError(f"unknown {kind.removesuffix('s')} '{name}'.{nearest(name, names(kind))}")


def summary(kind: str, name: str) -> str:
    """Return the first line of a plug-in's docstring, read from the file without importing it."""
    path = _PACKAGE / KINDS[kind] / f"{name.replace('-', '_')}.py"
    return path.read_text(encoding="utf-8").split('"""')[1].splitlines()[0].strip()
