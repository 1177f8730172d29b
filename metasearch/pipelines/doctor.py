"""`metasearch doctor FOLDER`: a folder's kind and damage, by the checks of its readers."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from metasearch.compress.export.form import FILE as EXPORT
from metasearch.compress.export.onnx_encoder import OnnxEncoder
from metasearch.config import yaml
from metasearch.config.distill_run import DistillConfig
from metasearch.data.parallel.saved import SavedTable, is_prepared
from metasearch.encoders.open import assumption, open_checkpoint
from metasearch.errors import ConfigError, MetasearchError, RunFolderError, first_line, to_resume
from metasearch.evaluation.study.read import STUDY_FILE, find_study
from metasearch.pipelines.environment import Finding, Section, bad, note
from metasearch.pipelines.resume import KINDS, describe_missing, kind_of
from metasearch.pipelines.study.folder import StudyFolder
from metasearch.retrieval.index.database import exists, read_state
from metasearch.retrieval.index.local import LocalStore
from metasearch.runs.folder import CONFIG, SUMS, RunFolder, read_checksums
from metasearch.runs.rows import read_complete_rows
from metasearch.training.checkpoint import Checkpoint, CheckpointStore

_TITLES = {
    "train": "a training", "distill": "a distillation", "score": "an untrained encoder", "study": "a study",
    "tune": "a tuning",
}  # fmt: skip


def examine_folder(folder: Path, trust_remote_code: bool = False) -> Section:
    """Return what a folder is, and whether it is sound: a run, study, encoder, tokenizer, index or prepared corpus."""

    def has(*names: str) -> bool:
        return any((folder / name).is_file() for name in names)

    title, findings = "unknown", [bad("folder", _unknown(folder))]
    if has(CONFIG, STUDY_FILE):
        try:
            kind = kind_of(folder)
            found = _study(folder, trust_remote_code) if kind == "study" else _run(folder, kind, trust_remote_code)
            title, findings = _TITLES[kind], [*found]
        except MetasearchError as error:
            title, findings = "damaged", [bad(STUDY_FILE if has(STUDY_FILE) else CONFIG, error)]
    elif is_prepared(folder):
        title = "a prepared corpus"
        findings = [_check("files", lambda: f"{len(SavedTable(folder)):,} pairs, all files sound")]
    elif exists(folder):
        title, findings = "an index", [_index(folder)]
    elif has(EXPORT):
        title, findings = "an export to ONNX", [_graph(folder)]
    elif has("modules.json", "config.json", "adapter_config.json"):
        title, findings = "an encoder", [_model(folder, "weights", trust_remote_code)]
    elif has("tokenizer.json", "tokenizer_config.json"):
        title, findings = "a tokenizer", [_check("words", lambda: _tokenizer(folder))]
    return Section(f"{folder}: {title}", findings)


def _check(about: str, check: Callable[[], str]) -> Finding:
    """Return a check's result, or the problem that it raises."""
    try:
        return Finding(about, check())
    except MetasearchError as error:
        return bad(about, error)


def _run(folder: Path, kind: str, trust_remote_code: bool) -> Iterator[Finding]:
    files, begun = RunFolder.open(folder, KINDS[kind].settings)
    yield Finding(CONFIG, "readable")
    if isinstance(begun.config, DistillConfig):
        for number, name, _ in begun.config.stages:
            stage = f"{number}-{name}"
            yield from _within(stage, _training(folder / stage, trust_remote_code))

    def scores() -> str:
        if not files.finished:
            return f"{len(files.results())} scores"
        if kind == "tune" and "results.jsonl" not in read_checksums(folder / SUMS):
            return "no scores: too few labels to hold some out"
        tree = yaml.tree(folder / CONFIG)["config"]
        assert isinstance(tree, dict)  # it has been read as a configuration
        return f"{len(read_complete_rows(folder / 'results.jsonl', tree))} scores"

    found = _check("results.jsonl", scores)
    yield found
    yield from _training(folder, trust_remote_code)
    if not files.finished:
        yield note("report.md", f"not finished; continue with: {to_resume(folder)}")
        return
    if kind != "score" and not files.model.is_dir() and not find_study(folder):
        yield bad("model", RunFolderError(f"{files.model} is missing, though the run is finished"))

    def unchanged() -> str:
        files.require_unchanged()
        files.facts()
        return "finished, and no file has changed"

    if found.state != "bad":  # its hash would say nothing more
        yield _check("report.md", unchanged)


def _within(place: str, findings: Iterable[Finding]) -> Iterator[Finding]:
    return (replace(each, about=f"{place}/{each.about}") for each in findings)


def _training(folder: Path, trust_remote_code: bool) -> Iterator[Finding]:
    """Yield the files written by a training or a distillation stage."""
    files = RunFolder(folder)
    if events := files.events():
        yield Finding("log.jsonl", f"{events[-1]['step']} outer steps")
    for place, found in CheckpointStore(folder).found():
        if isinstance(found, Checkpoint):
            yield Finding(place.name, f"intact, of outer step {found.state.get('step')}")
        else:
            yield bad(place.name, RunFolderError(found))
    if files.model.is_dir():
        yield _model(files.model, "model", trust_remote_code)


def _study(folder: Path, trust_remote_code: bool) -> Iterator[Finding]:
    study = StudyFolder(folder)
    stored = study.stored()
    cells = [*stored.made, *stored.cells]
    yield Finding(STUDY_FILE, f"readable, {len(cells)} runs")
    for name in cells:
        if (study.at(name) / CONFIG).is_file():
            found = examine_folder(study.at(name), trust_remote_code).findings
            yield from _within(f"cells/{name}", (each for each in found if each.state == "bad"))
    unfinished = sum(not RunFolder(study.at(name)).finished for name in cells)
    if unfinished or not study.report.is_file():
        yield note("report.md", f"{unfinished} of {len(cells)} runs unfinished; continue with: {to_resume(folder)}")
    else:
        yield Finding("report.md", "finished")


def _model(folder: Path, about: str, trust_remote_code: bool) -> Finding:
    """Check that an encoder can be loaded and its weights fit its configuration; assumptions are notes."""
    try:
        encoder = open_checkpoint(str(folder), trust_remote_code=trust_remote_code)
    except MetasearchError as error:
        return bad(about, error)
    loads = f"loads: {encoder.parameter_count:,} parameters, {encoder.dimension()} dimensions"
    assumed = assumption(encoder.model, str(folder), local=True)
    return note(about, f"{loads}; {assumed[0]}") if assumed else Finding(about, loads)


def _tokenizer(folder: Path) -> str:
    from transformers import AutoTokenizer

    try:
        return f"{len(AutoTokenizer.from_pretrained(str(folder), local_files_only=True)):,}"
    except Exception as error:  # the library raises anything from OSError to bare Exception
        raise RunFolderError(f"{folder}: the tokenizer cannot be loaded: {first_line(error)}") from error


def _graph(folder: Path) -> Finding:
    try:
        encoder = OnnxEncoder(folder)
    except ConfigError as error:  # onnxruntime, which is optional, is missing
        return note("graph", f"not loaded: {error}")
    except MetasearchError as error:
        return bad("graph", error)
    return Finding("graph", f"{encoder.dimension()} dimensions, {encoder.facts.precision}; made of '{encoder.name}'")


def _index(folder: Path) -> Finding:
    try:
        if read_state(folder).get("files") is None:
            return note("files", "not finished; run the same metasearch index again to continue")
        store = LocalStore.open(folder)
        store.verify()
    except MetasearchError as error:
        return bad("files", error)
    about = f"{store.places:,} passages of {len(store.files):,} documents, all sound"
    return Finding("files", f"{about}; encoder '{store.kind.encoder}'")


def _unknown(folder: Path) -> RunFolderError:
    """Return the reason why a folder is unknown, with the nearest name, or its content."""
    if not folder.is_dir():
        return RunFolderError(describe_missing(folder))
    held = ", ".join(sorted(path.name for path in folder.iterdir())[:6]) or "nothing"
    return RunFolderError(f"{folder} is no run, study, encoder, tokenizer, index or prepared corpus; it holds {held}")
