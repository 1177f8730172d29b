"""Optional packages: the extras and their install commands.

The distribution is called `metasearch-encoders`, since another project has the name `metasearch` on PyPI. The package
that is imported, and the command, are `metasearch`.
"""

from importlib import import_module, metadata
from typing import Any

from metasearch.errors import ConfigError, MetasearchError

DISTRIBUTION = "metasearch-encoders"


def install_line(extra: str) -> str:
    """Return the command that installs the packages of an extra, such as `pip install 'onnx>=1.18'`.

    It names the packages, so that it works for a release, and for a checkout that is on no package index.
    """
    try:
        wanted = [each.replace('"', "'") for each in metadata.requires(DISTRIBUTION) or ()]
    except metadata.PackageNotFoundError:  # run from a checkout
        return f"pip install '.[{extra}]'"
    named = [each.partition(";")[0].strip() for each in wanted if each.endswith(f"extra == '{extra}'")]
    return f"pip install {' '.join(map(repr, named))}"


def import_extra(module: str, extra: str, purpose: str, error: type[MetasearchError] = ConfigError) -> Any:
    """Import a module from an extra, or a metasearch module that needs one."""
    try:
        return import_module(module)
    except ModuleNotFoundError as failure:
        missing = str(failure.name).partition(".")[0]
        if missing == "metasearch":  # a mistake in metasearch, which no package corrects
            raise
        raise error(f"{purpose} needs the package {missing}: {install_line(extra)}") from None
