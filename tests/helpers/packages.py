"""Packages of others: built as wheels, and installed into a folder by pip, without a network."""

import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path


def install(folder: Path, name: str, modules: Mapping[str, str], entry_points: Mapping[str, Mapping[str, str]]) -> Path:
    """Install a package and return the folder to put on the path.

    Args:
        folder: where the wheel is written and the package is installed.
        name: name of the package.
        modules: name of a module of it → its source.
        entry_points: group → name → value, such as `metasearch.algorithms` → `mine` → `package.learner`.
    """
    wheel, info = folder / f"{name}-1.0-py3-none-any.whl", f"{name}-1.0.dist-info"
    groups = (
        f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in offered.items())
        for group, offered in entry_points.items()
    )
    files = {
        f"{name}/__init__.py": "",
        **{f"{name}/{module}.py": source for module, source in modules.items()},
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "\n".join(groups),
    }
    record = "".join(f"{path},,\n" for path in (*files, f"{info}/RECORD"))
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in (*files.items(), (f"{info}/RECORD", record)):
            archive.writestr(path, text)
    target = folder / "site"
    flags = ["--no-index", "--no-deps", "--disable-pip-version-check", "--quiet", "--target", str(target)]
    subprocess.run([sys.executable, "-m", "pip", "install", *flags, str(wheel)], check=True)
    return target
