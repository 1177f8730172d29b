"""Optional packages: the extras and their install commands.

The distribution is called `metasearch-encoders`, since another project has the name `metasearch` on PyPI. The package
that is imported, and the command, are `metasearch`.
"""

from importlib import import_module
from typing import Any

from metasearch.errors import ConfigError, MetasearchError

DISTRIBUTION = "metasearch-encoders"
TRACKERS = ("tensorboard", "wandb", "mlflow")
"""Names of experiment trackers, which the extra `track` installs."""


def install_line(extra: str) -> str:
    """Return the command that installs an extra, such as `pip install 'metasearch-encoders[serve]'`."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def import_extra(module: str, extra: str, purpose: str, error: type[MetasearchError] = ConfigError) -> Any:
    """Import a module from an extra, or a metasearch module that needs one."""
    try:
        return import_module(module)
    except ModuleNotFoundError as failure:
        missing = str(failure.name).partition(".")[0]
        if missing == "metasearch":  # a mistake in metasearch, which no package corrects
            raise
        raise error(f"{purpose} needs the package {missing}: {install_line(extra)}") from None
