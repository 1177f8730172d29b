"""Kinds of folders: what resumes a run, and what checks an index and opens its encoder.

An entry is written as `module:name` and imported when it is used, so that a command loads only the kinds it meets.
"""

from importlib import import_module
from pathlib import Path
from typing import Any

from metasearch.errors import ConfigError, RunFolderError, nearest, require_known, to_resume
from metasearch.evaluation.study.read import STUDY_FILE
from metasearch.io import near
from metasearch.pipelines.run import Run, holds_something
from metasearch.runs.findings import Finding, Section
from metasearch.runs.folder import CONFIG, read_config

ENTRIES = {
    "train": "metasearch.pipelines.train:TrainRun",
    "distill": "metasearch.pipelines.distill.job:DistillRun",
    "score": "metasearch.pipelines.score:ScoreRun",
    "tune": "metasearch.search.tune.job:TuneRun",
}
"""Kind in `config.yaml` → class of the run."""
INDEX_EXISTS = "metasearch.search.index.database:exists"
INDEX_CHECK = "metasearch.search.index.check:check_index"
INDEX_NAMED = "metasearch.search.index.stores:is_index"
INDEX_ENCODER = "metasearch.search.index_encoder:load_index_encoder"


def load_entry(entry: str) -> Any:
    """Return a function or class by `module:name`."""
    module, _, name = entry.partition(":")
    return getattr(import_module(module), name)


def examine_index(folder: Path) -> Section:
    """Return whether an index is sound and how it is searched; a folder of another kind is a problem."""
    if load_entry(INDEX_EXISTS)(folder):
        return Section(f"{folder}: an index", [*load_entry(INDEX_CHECK)(folder)])
    what = (
        f"is no index; metasearch resume {folder} checks a run" if folder.is_dir() else f"does not exist{near(folder)}"
    )
    return Section(f"{folder}: unknown", [Finding.of_error("folder", RunFolderError(f"{folder} {what}"))])


def load_index_encoder(name: str, trust_remote_code: bool) -> tuple[Any, str, str] | None:
    """Return the encoder of an index, a sentence for the model card, and its parts; None for another name."""
    if not load_entry(INDEX_NAMED)(name):
        return None
    found: tuple[Any, str, str] = load_entry(INDEX_ENCODER)(name, trust_remote_code)
    return found


def kind_of(folder: Path) -> str:
    """Return the kind of work in a folder, by its configuration; an error names a nearby run."""
    if not holds_something(folder):
        raise RunFolderError(describe_missing(folder))
    if (folder / STUDY_FILE).is_file():
        return "study"
    config = read_config(folder)
    kind = str(config.get("kind"))
    require_known(f"{folder / CONFIG}: config.kind:", kind, ENTRIES)
    return kind


def open_run(folder: Path) -> Run[Any]:
    """Return the training, distillation, tuning or scoring in a folder; `execute` resumes it."""
    kind = kind_of(folder)
    if kind == "study":
        raise ConfigError(f"{folder} is a study, not a run. Continue with: {to_resume(folder)}")
    run: type[Run[Any]] = load_entry(ENTRIES[kind])
    return run.open(folder)


def describe_missing(folder: Path) -> str:
    """Return why there is nothing to resume in a folder, and the nearest run."""
    if not folder.exists():
        beside = [str(path) for path in sorted(folder.parent.glob("*")) if holds_something(path)]
        return f"{folder} does not exist.{nearest(str(folder), beside) if beside else ''}"
    problem = f"{folder} is no run, distillation or study: it has neither {CONFIG} nor {STUDY_FILE}."
    above = next((path for path in folder.resolve().parents if holds_something(path)), None)
    below = [str(path) for path in sorted(folder.glob("*")) if holds_something(path)]
    if above is not None:
        return f"{problem} Did you mean {above}?"
    return f"{problem}{nearest(str(folder), below) if below else ''}"
