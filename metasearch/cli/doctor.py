"""`metasearch doctor`: report the environment and check indexes. The report works without torch, too."""

import dataclasses
import json
import os
import platform
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from metasearch.cli import _options
from metasearch.data.locate import VARIABLE as DATA
from metasearch.errors import DataError, EncoderError, first_line
from metasearch.io import VARIABLE as CACHE
from metasearch.io import cache_folder
from metasearch.runs.findings import Finding, Section
from metasearch.runs.versions import LIBRARIES, cores, installed, processor
from metasearch.version import __version__

# The limit as a container with cgroup v2 sees it; the root group of a host has no such file.
_CGROUP = Path("/sys/fs/cgroup/memory.max")
_MARKS = {"ok": "ok ", "note": "-  ", "bad": "bad"}


@_options.command("doctor")
@click.argument("folders", metavar="[INDEX]...", nargs=-1, type=click.Path(path_type=Path))
@_options.as_json("all findings")
@click.pass_context
def command(ctx: click.Context, folders: Sequence[Path], as_json: bool) -> None:
    """Print versions, devices, data and the cache, and check each INDEX.

    A line that begins with `bad` is a problem, and the exit code is that of the worst one; a line with `-` is no
    problem. Nothing is fetched or changed.

    \b
    Examples:
      metasearch doctor
      metasearch doctor help.index
    """
    sections: list[Section] = []

    def show(section: Section) -> None:
        sections.append(section)
        if not as_json:
            click.echo(section.title)
            width = max((len(each.about) for each in section.findings), default=0)
            for each in section.findings:
                click.echo(f"  {_MARKS[each.state]}  {each.about.ljust(width)}  {each.found}")

    for section in environment():
        show(section)
    if folders:  # what reads them imports torch, which may be missing
        from metasearch.pipelines.folders import examine_index

        for folder in folders:
            show(examine_index(folder))
    codes = [each.code for section in sections for each in section.findings if each.state == "bad"]
    if as_json:
        tree = {"sections": [dataclasses.asdict(each) for each in sections], "exit_code": max(codes, default=0)}
        click.echo(json.dumps(tree, ensure_ascii=False))
    else:
        click.echo(f"problems: {len(codes) or 'none'}")
    ctx.exit(max(codes, default=0))


def environment() -> Iterator[Section]:
    """Yield versions, machine, data and cache; changes nothing and uses no network."""
    versions = {"python": platform.python_version(), "metasearch": __version__}
    versions |= {name: version for name in LIBRARIES if (version := installed(name))}
    yield Section("versions", [Finding(*each) for each in versions.items()])
    machine = {"processor": f"{processor()}, {cores()} cores to use", "memory": f"{_memory() / 2**30:.1f} GiB"}
    found = [
        *(Finding(*each) for each in machine.items()),
        Finding.of("devices", _devices),
        Finding.of("precision", _precision),
    ]
    yield Section("machine", found)
    yield Section(
        "data", [Finding.of(DATA, _data), Finding.of("cache", lambda: f"{cache_folder()}; {CACHE} changes it")]
    )


def _memory() -> int:
    """Return the bytes of memory in the machine, or the container's limit."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = _CGROUP.read_text(encoding="ascii").strip() if _CGROUP.is_file() else "max"
    return total if limit == "max" else min(total, int(limit))


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


def _precision() -> str:
    from metasearch.encoders.device import fast_in_bfloat16

    return f"--precision auto takes {'bfloat16' if fast_in_bfloat16() else 'float32'} on this CPU"


def _data() -> str:
    folder = os.environ.get(DATA)
    if folder and not Path(folder).is_dir():
        raise DataError(f"{folder}: no such folder")
    return folder or "not set; it names a folder with the data of tasks"
