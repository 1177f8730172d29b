"""Versions, optional packages, data and cache: what is here, what is missing, and how to get it."""

import os
import platform
import shlex
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, metadata, requires
from pathlib import Path

from packaging.requirements import Requirement

from metasearch import __version__
from metasearch.cache import VARIABLE, cache_folder, intact, kept
from metasearch.data.locate import VARIABLE as DATA
from metasearch.data.locate import locate
from metasearch.errors import ConfigError, DataError, EncoderError
from metasearch.jobs.doctor.finding import Finding, bad, note
from metasearch.runs.versions import LIBRARIES, installed
from metasearch.spec import registry
from metasearch.spec.library import Library

_PACKAGE = "metasearch"


def libraries() -> Iterator[Finding]:
    """Yield the versions that scores depend on, and every package that metasearch requires and that is not there."""
    yield Finding("python", platform.python_version())
    yield Finding(_PACKAGE, __version__)
    for name in LIBRARIES:
        if version := installed(name):
            yield Finding(name, version)
    try:
        needed = [each for each in map(Requirement, requires(_PACKAGE) or ()) if _applies(each, "")]
    except PackageNotFoundError:
        yield note("requirements", "not known: metasearch runs without being installed; pip install --editable FOLDER")
        return
    for each in needed:
        if not _satisfied(each):
            yield bad(each.name, ConfigError(f"{_found(each)}, metasearch needs {each}: {_pip([each])}"))


def extras() -> Iterator[Finding]:
    """Yield what is installed of each extra of the package, or the command that installs what is missing."""
    try:
        names = metadata(_PACKAGE).get_all("Provides-Extra") or []
        every = [Requirement(text) for text in requires(_PACKAGE) or ()]
    except PackageNotFoundError:
        return
    for extra in names:
        own = [each for each in every if _applies(each, extra) and not _applies(each, "")]
        missing = [each for each in own if not _satisfied(each)]
        about = f"extra {extra}"
        if not own:
            yield note(about, "not for this system")
        elif missing:
            yield note(about, f"{', '.join(f'{each.name} {_found(each)}' for each in missing)}: {_pip(missing)}")
        else:
            yield Finding(about, ", ".join(f"{each.name} {installed(each.name)}" for each in own))


def data() -> Iterator[Finding]:
    """Yield where data is looked for, and of each task whether its files are there or where to get them."""
    named = os.environ.get(DATA)
    if named and not Path(named).is_dir():
        yield bad(DATA, DataError(f"{named}: no such folder"))
    else:
        yield Finding(DATA, named) if named else note(DATA, "not set; it names a folder with the data of tasks")
    library = Library()
    for name in library.names("task"):
        task, path = library.task(name), library.path("task", name)
        try:
            folder = locate(task, path, registry.load("readers", task.reader).files(task))
            yield Finding(f"task {name}", "comes with metasearch" if task.data else str(folder))
        except DataError as error:
            # What comes with metasearch must be there, all else need not.
            wrong = bad(f"task {name}", error)
            yield wrong if task.data else note(wrong.about, wrong.found)


def cache() -> Iterator[Finding]:
    """Yield the folder of the cache and of each folder in it the size, and whether its files are those written."""
    place, folders = cache_folder(), kept()
    yield Finding("cache", f"{place}{'' if folders else ', empty'}; {VARIABLE} names another folder")
    for folder in folders:
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        shown = f"{size / 2**20:.1f} MiB"
        if intact(folder):
            yield Finding(folder.name, f"{shown}, intact")
        else:
            why = f"{shown}, not what was written; it is made again when it is needed, or delete {folder}"
            yield bad(folder.name, EncoderError(why))


def _applies(requirement: Requirement, extra: str) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


def _satisfied(requirement: Requirement) -> bool:
    version = installed(requirement.name)
    return version is not None and requirement.specifier.contains(version, prereleases=True)


def _found(requirement: Requirement) -> str:
    return installed(requirement.name) or "not installed"


def _pip(requirements: list[Requirement]) -> str:
    return shlex.join(["pip", "install", *(f"{each.name}{each.specifier}" for each in requirements)])
