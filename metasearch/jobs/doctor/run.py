"""Whether a run folder is sound: configuration, log, scores, checkpoints, model and report."""

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from metasearch.encoders.incomplete import assumption
from metasearch.encoders.open import open_checkpoint
from metasearch.errors import MetasearchError, RunFolderError
from metasearch.jobs.doctor.finding import Finding, bad, checked, note
from metasearch.jobs.resume import CONFIGS, Kind
from metasearch.runs.checksums import SUMS
from metasearch.runs.folder import CHECKPOINT_FOLDERS, CONFIG, RunFolder
from metasearch.runs.log import damaged_lines
from metasearch.runs.rows import read_rows, require_complete
from metasearch.spec import yaml
from metasearch.spec.distill_run import DistillConfig
from metasearch.study.read import study_of
from metasearch.training.checkpoint import Checkpoint, CheckpointStore


def run(folder: Path, kind: Kind, trust_remote_code: bool) -> Iterator[Finding]:
    """Yield the findings about a run, a distillation with its stages, or a score; the folder is left as it is."""
    try:
        files, began = RunFolder.open(folder, CONFIGS[kind])
    except MetasearchError as error:
        yield bad("config.yaml", error)
        return
    yield Finding("config.yaml", "readable")
    if isinstance(began.config, DistillConfig):
        for number, name, _ in began.config.stages:
            yield from stage(folder / f"{number}-{name}", trust_remote_code)
    scores = [*_log(files), *_results(files)]
    yield from scores
    yield from _checkpoints(files)
    if kind != "score":
        yield from _model(files, trust_remote_code)
    if files.finished:
        facts = checked("facts.json", lambda: "readable" if files.facts() else "none")
        yield facts
        # Of a file that has been found bad, its hash says nothing more.
        if all(each.state != "bad" for each in (*scores, facts)):
            yield checked(SUMS, lambda: _unchanged(files))
    yield _end(files)


def stage(folder: Path, trust_remote_code: bool) -> Iterator[Finding]:
    """Yield the findings about a stage of a distillation, each named by its folder."""
    files = RunFolder(folder)
    if not folder.is_dir():
        yield note(folder.name, "not begun")
        return
    found = [*_log(files), *_checkpoints(files), *_model(files, trust_remote_code)]
    found.append(Finding("report.md", "finished") if files.finished else note("report.md", "not finished"))
    yield from (Finding(f"{folder.name}/{each.about}", each.found, each.state, each.code) for each in found)


def going_on(folder: Path) -> str:
    """Return the command that goes on with a folder."""
    return f"go on with: {shlex.join(['metasearch', 'resume', str(folder)])}"


def model(folder: Path, about: str, trust_remote_code: bool) -> Finding:
    """Return whether an encoder can be loaded from a folder and its weights fit its configuration.

    What is assumed of an incomplete folder is a note.
    """
    try:
        encoder = open_checkpoint(str(folder), trust_remote_code=trust_remote_code)
    except MetasearchError as error:
        return bad(about, error)
    loads = f"loads: {encoder.parameter_count:,} parameters, {encoder.dimension()} dimensions"
    assumed = assumption(encoder.model, str(folder), local=True)
    return note(about, f"{loads}; {assumed[0]}") if assumed else Finding(about, loads)


def _log(files: RunFolder) -> Iterator[Finding]:
    path = files.path / "log.jsonl"
    if not path.is_file():
        return
    events = files.events()
    damaged, last = damaged_lines(path), len(path.read_bytes().splitlines())
    steps = f"{max((event['step'] for event in events), default=0)} outer steps"
    if damaged == [last] and not files.finished:
        yield note("log.jsonl", f"{steps}; line {last} is cut off, as by a crash: what goes on writes it again")
    elif damaged:
        lines = f"line{'s' * (len(damaged) > 1)} {', '.join(map(str, damaged[:5]))}{', ...' * (len(damaged) > 5)}"
        yield bad("log.jsonl", RunFolderError(f"{path}:{damaged[0]}: no event of a run ({lines} of {last})"))
    else:
        yield Finding("log.jsonl", steps)


def _results(files: RunFolder) -> Iterator[Finding]:
    path = files.path / "results.jsonl"
    if files.finished:
        tree = yaml.tree(files.path / CONFIG)["config"]
        assert isinstance(tree, dict)  # it has been read as a configuration
        # A distillation may have no task to be scored on; its stages' own scores are there all the same.
        yield checked("results.jsonl", lambda: _complete(path, tree))
    elif path.is_file():
        yield checked("results.jsonl", lambda: f"{len(files.results())} scores")


def _complete(path: Path, config: Mapping[str, Any]) -> str:
    require_complete(path, rows := read_rows(path), config)
    return f"{len(rows)} scores"


def _checkpoints(files: RunFolder) -> Iterator[Finding]:
    for folder, found in CheckpointStore(files.path).found():
        if not isinstance(found, Checkpoint):
            yield bad(folder.name, RunFolderError(found))
        elif files.finished:
            yield note(folder.name, f"intact, but the run is finished and needs it no more; delete {folder}")
        else:
            yield Finding(folder.name, f"intact, of outer step {found.state.get('step')}")
    left = files.path / CHECKPOINT_FOLDERS[-1]
    if left.is_dir():
        yield note(left.name, "half written, by a process that is at work or was stopped; the next one replaces it")


def _model(files: RunFolder, trust_remote_code: bool) -> Iterator[Finding]:
    if files.model.is_dir():
        yield model(files.model, "model", trust_remote_code)
    elif study_of(files.path):
        yield note("model", "none: studies keep the models of their cells with --keep-models only")
    elif files.finished:
        yield bad("model", RunFolderError(f"{files.model} is missing, though the run is finished"))


def _unchanged(files: RunFolder) -> str:
    files.require_unchanged()
    return "the files are as the run wrote them" if (files.path / SUMS).is_file() else "none"


def _end(files: RunFolder) -> Finding:
    if files.finished:
        return Finding("report.md", "finished")
    return note("report.md", f"not finished; {going_on(files.path)}")
