"""The environment report in `metasearch doctor`: versions, machine, data and cache."""

import os
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from metasearch import __version__
from metasearch.config import registry
from metasearch.config.library import Library
from metasearch.data.locate import VARIABLE as DATA
from metasearch.data.locate import locate
from metasearch.errors import DataError, EncoderError, MetasearchError, first_line
from metasearch.io import VARIABLE as CACHE
from metasearch.io import cache_folder
from metasearch.runs.versions import LIBRARIES, cores, installed, memory, processor


@dataclass(frozen=True)
class Finding:
    """One line: the checked thing, its value or problem, and the exit code of a problem."""

    about: str
    found: str
    state: Literal["ok", "note", "bad"] = "ok"
    code: int = 0


@dataclass(frozen=True)
class Section:
    """Findings about one thing, such as a folder."""

    title: str
    findings: Sequence[Finding]


def note(about: str, found: str) -> Finding:
    """Return a finding that is no problem."""
    return Finding(about, found, "note")


def bad(about: str, error: MetasearchError) -> Finding:
    """Return the problem that an error reports, in one line."""
    return Finding(about, " ".join(str(error).split()), "bad", error.exit_code)


def environment() -> Iterator[Section]:
    """Yield versions, machine, data and cache; changes nothing and uses no network."""
    versions = {"python": platform.python_version(), "metasearch": __version__}
    versions |= {name: version for name in LIBRARIES if (version := installed(name))}
    yield Section("versions", [Finding(*each) for each in versions.items()])
    yield Section("machine", [*_machine()])
    yield Section("data", [*_data(), Finding("cache", f"{cache_folder()}; {CACHE} changes it")])


def _machine() -> Iterator[Finding]:
    yield Finding("processor", f"{processor()}, {cores()} cores to use")
    yield Finding("memory", _gibibytes(memory()))
    try:
        import torch
    except (ImportError, OSError) as error:  # missing, or its shared libraries are
        yield bad("torch", EncoderError(f"cannot be imported: {first_line(error)}"))
        return
    yield Finding("threads", f"{torch.get_num_threads()}; set OMP_NUM_THREADS to change")
    for number in range(torch.cuda.device_count()):
        known = torch.cuda.get_device_properties(number)
        bf16 = "bf16" if known.major >= 8 else "no bf16: use fp32"  # from compute capability 8 on
        yield Finding(f"cuda:{number}", f"{known.name}, {_gibibytes(known.total_memory)}, {bf16}")
    if not torch.cuda.is_available():
        yield note("cuda", f"none{'' if torch.version.cuda else '; this torch is built without CUDA'}")
    yield Finding("mps", "available") if torch.backends.mps.is_available() else note("mps", "none")


def _gibibytes(count: int) -> str:
    return f"{count / 2**30:.1f} GiB"


def _data() -> Iterator[Finding]:
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
