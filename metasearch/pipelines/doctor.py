"""`metasearch doctor FOLDER`: a folder's kind and damage, by the checks of its readers."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from metasearch.compress.onnx_encoder import OnnxEncoder
from metasearch.data.parallel.saved import SavedTable
from metasearch.encoders.open import open_checkpoint
from metasearch.errors import ConfigError, MetasearchError, RunFolderError, to_resume
from metasearch.evaluation.study.read import STUDY_FILE, find_study, read_cells
from metasearch.pipelines.folders import CONFIGURED, OTHERS, describe_missing, kind_of
from metasearch.pipelines.study.folder import StudyFolder
from metasearch.runs.findings import Finding, Section
from metasearch.runs.folder import CONFIG, SUMS, RunFolder
from metasearch.training.checkpoint import Checkpoint, CheckpointStore


def examine_folder(folder: Path, trust_remote_code: bool = False) -> Section:
    """Return what a folder is, and whether it is sound: a run, study, index, encoder or prepared corpus."""
    if (folder / CONFIG).is_file() or (folder / STUDY_FILE).is_file():
        try:
            kind = CONFIGURED[kind_of(folder)]
            return Section(f"{folder}: {kind.title}", kind.findings(folder, trust_remote_code))
        except MetasearchError as error:
            about = STUDY_FILE if (folder / STUDY_FILE).is_file() else CONFIG
            return Section(f"{folder}: unreadable configuration", [Finding.of_error(about, error)])
    if found := next((kind for kind in OTHERS if kind.holds(folder)), None):
        return Section(f"{folder}: {found.title}", found.findings(folder, trust_remote_code))
    return Section(f"{folder}: unknown", [Finding.of_error("folder", _unknown(folder))])


def _settings(about: str, read: Callable[[], object], finished: bool) -> Finding:
    """Return whether settings are readable; only unfinished work needs the keys of this version."""
    try:
        read()
    except ConfigError as error:
        found = Finding.of_error(about, error)
        return Finding(about, f"skipped, since all is finished: {found.found}", "note") if finished else found
    return Finding(about, "readable")


def check_run(folder: Path, trust_remote_code: bool) -> Iterator[Finding]:
    """Yield the findings of a run."""
    kind, files = kind_of(folder), RunFolder(folder)
    yield _settings(CONFIG, partial(files.stored, CONFIGURED[kind].work.settings), files.finished)
    # A distillation has a folder for each stage.
    for place in (folder, *sorted(path.parent for path in folder.glob("[0-9]*-*/log.jsonl"))):
        for path, found in CheckpointStore(place).found():
            name = path.relative_to(folder).as_posix()
            if isinstance(found, Checkpoint):
                yield Finding(name, f"intact, of outer step {found.state.get('step')}")
            else:
                yield Finding.of_error(name, RunFolderError(found))
    if files.model.is_dir():
        yield Finding.of("model", partial(_model, files.model, trust_remote_code))
    elif files.finished and kind != "score" and not find_study(folder):
        yield Finding.of_error("model", RunFolderError(f"{files.model} is missing, though the run is finished"))
    yield Finding.of("files", partial(_files, files))
    if files.finished and not (folder / SUMS).is_file():
        yield Finding(SUMS, "missing: what was changed or deleted is not noticed", "note")
    if not files.finished:
        yield Finding("report.md", f"not finished; continue with: {to_resume(folder)}", "note")


def _files(files: RunFolder) -> str:
    """Return the number of scores of a run whose files are there and unchanged."""
    files.require_unchanged(complete=files.finished)
    return f"{len(files.results())} scores"


def check_study(folder: Path, trust_remote_code: bool) -> Iterator[Finding]:
    """Yield the findings of a study, and the problems of its runs."""
    study = StudyFolder(folder)
    try:
        cells = read_cells(folder)
    except ConfigError:
        study.stored()  # its error names line and key
        raise
    unfinished = sum(not study.done(name) for name in cells)
    yield _settings(STUDY_FILE, study.stored, finished=not unfinished)
    for name in cells:
        if (study.at(name) / CONFIG).is_file():
            found: Iterable[Finding] = examine_folder(study.at(name), trust_remote_code).findings
            yield from (replace(each, about=f"cells/{name}/{each.about}") for each in found if each.state == "bad")
    if unfinished or not study.report.is_file():
        left = f"{unfinished} of {len(cells)} runs unfinished; continue with: {to_resume(folder)}"
        yield Finding("report.md", left, "note")
    else:
        yield Finding("report.md", f"finished, {len(cells)} runs")


def check_corpus(folder: Path, trust_remote_code: bool) -> Iterator[Finding]:
    """Yield whether a prepared corpus is sound."""
    yield Finding.of("files", lambda: f"{len(SavedTable(folder)):,} pairs, all files sound")


def check_export(folder: Path, trust_remote_code: bool) -> Iterator[Finding]:
    """Yield whether an export to ONNX loads."""
    yield Finding.of("graph", lambda: f"{OnnxEncoder(folder).dimension()} dimensions")


def check_encoder(folder: Path, trust_remote_code: bool) -> Iterator[Finding]:
    """Yield whether an encoder loads."""
    yield Finding.of("weights", partial(_model, folder, trust_remote_code))


def _model(folder: Path, trust_remote_code: bool) -> str:
    encoder = open_checkpoint(str(folder), trust_remote_code=trust_remote_code)
    return f"loads: {encoder.parameter_count:,} parameters, {encoder.dimension()} dimensions"


def _unknown(folder: Path) -> RunFolderError:
    """Return the reason why a folder is unknown, with the nearest name, or its content."""
    if not folder.is_dir():
        return RunFolderError(describe_missing(folder))
    held = ", ".join(sorted(path.name for path in folder.iterdir())[:6]) or "nothing"
    return RunFolderError(f"{folder} is no run, study, encoder, index or prepared corpus; it holds {held}")
