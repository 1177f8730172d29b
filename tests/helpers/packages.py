"""Packages of others, with the files that pip leaves of a wheel."""

from collections.abc import Mapping
from pathlib import Path


def install(folder: Path, name: str, modules: Mapping[str, str], entry_points: Mapping[str, Mapping[str, str]]) -> Path:
    """Install a package and return the folder to put on the path.

    Args:
        folder: where the package is installed, below `site`.
        name: name of the package.
        modules: name of a module of it → its source.
        entry_points: group → name → value, such as `metasearch.algorithms` → `mine` → `package.learner`.
    """
    site, info = folder / "site", f"{name}-1.0.dist-info"
    groups = (
        f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in offered.items())
        for group, offered in entry_points.items()
    )
    files = {
        f"{name}/__init__.py": "",
        **{f"{name}/{module}.py": source for module, source in modules.items()},
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: 1.0\n",
        f"{info}/entry_points.txt": "\n".join(groups),
    }
    for path, text in files.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text(text, encoding="utf-8")
    return site
