"""Puts together what is looked at: always what is installed here, and the folders that are named."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from metasearch.errors import EncoderError, first_line
from metasearch.jobs.doctor.finding import Finding, Section, bad
from metasearch.jobs.doctor.installed import cache, data, extras, libraries


def examine(folders: Sequence[Path] = (), trust_remote_code: bool = False) -> Iterator[Section]:
    """Yield what is installed and what is missing, then what each folder is and whether it is sound.

    Changes nothing, and uses no network.

    Args:
        folders: runs, distillations, studies, encoders and tokenizers.
        trust_remote_code: run code that comes with an encoder, without which it cannot be loaded.
    """
    # First, as a library that is loaded says its whole version.
    machine = _hardware()
    yield Section("versions", list(libraries()))
    yield Section("machine", machine)
    yield Section("optional", [*extras(), *data()])
    yield Section("cache", list(cache()))
    if folders:
        from metasearch.jobs.doctor.folders import sections_of

        for folder in folders:
            yield from sections_of(folder, trust_remote_code)


def _hardware() -> list[Finding]:
    try:
        from metasearch.jobs.doctor.hardware import hardware
    except (ImportError, OSError) as error:  # missing, or its shared libraries are
        return [bad("torch", EncoderError(f"cannot be imported: {first_line(error)}"))]
    return hardware()
