"""The environment report of `metasearch doctor`: versions, machine, data and cache. It works without torch, too."""

import os
import platform
from collections.abc import Iterator
from pathlib import Path

from metasearch.data.locate import VARIABLE as DATA
from metasearch.errors import DataError, EncoderError, first_line
from metasearch.io import VARIABLE as CACHE
from metasearch.io import cache_folder
from metasearch.runs.findings import Finding, Section, examine
from metasearch.runs.versions import LIBRARIES, cores, installed, memory, processor
from metasearch.version import __version__


def environment() -> Iterator[Section]:
    """Yield versions, machine, data and cache; changes nothing and uses no network."""
    versions = {"python": platform.python_version(), "metasearch": __version__}
    versions |= {name: version for name in LIBRARIES if (version := installed(name))}
    yield Section("versions", [Finding(*each) for each in versions.items()])
    machine = {"processor": f"{processor()}, {cores()} cores to use", "memory": f"{memory() / 2**30:.1f} GiB"}
    found = [*(Finding(*each) for each in machine.items()), examine("devices", _devices), examine("speed", _speed)]
    yield Section("machine", found)
    yield Section("data", [examine(DATA, _data), examine("cache", _cache)])


def _cache() -> str:
    return f"{cache_folder()}; {CACHE} changes it"


def _devices() -> str:
    try:
        import torch
    except (ImportError, OSError) as error:  # missing, or its shared libraries are
        raise EncoderError(f"torch cannot be imported: {first_line(error)}") from error
    found = [f"cpu with {torch.get_num_threads()} threads; set OMP_NUM_THREADS to change"]
    for number in range(torch.cuda.device_count()):
        known = torch.cuda.get_device_properties(number)
        found.append(f"cuda:{number} {known.name}, {known.total_memory / 2**30:.1f} GiB")
    return "; ".join([*found, *(["mps"] if torch.backends.mps.is_available() else [])])


def _speed() -> str:
    from metasearch.encoders.cpu_rates import cpu_rates, fastest

    rates = ", ".join(f"{name} {rate:,.0f}" if rate else f"{name} none" for name, rate in cpu_rates(False).items())
    return f"GFLOP/s of this CPU: {rates}; --precision auto takes {fastest(False)}"


def _data() -> str:
    folder = os.environ.get(DATA)
    if folder and not Path(folder).is_dir():
        raise DataError(f"{folder}: no such folder")
    return folder or "not set; it names a folder with the data of tasks"
