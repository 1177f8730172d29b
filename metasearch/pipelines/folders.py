"""Kinds of folders: the name of each, and the functions that recognise, check, resume and export it.

A function is written as `module:name` and imported when it is used, so that a command loads only the kinds it meets.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from metasearch.errors import ConfigError, RunFolderError, nearest, require_known, to_resume
from metasearch.evaluation.study.read import STUDY_FILE
from metasearch.pipelines.run import Run, holds_something
from metasearch.runs.findings import Finding
from metasearch.runs.folder import CONFIG, read_config

_DOCTOR = "metasearch.pipelines.doctor"


@dataclass(frozen=True)
class FolderKind:
    """A kind of folders.

    Attributes:
        title: name of the kind in `metasearch doctor`.
        files: file names, any of which shows the kind.
        recognise: tells whether a folder is of the kind, in place of `files`: `(folder) -> bool`.
        check: `(folder, trust_remote_code) -> Iterator[Finding]`.
        resume: class of the run, or `(folder, trust_remote_code) -> int` for work that has no report.
        named: tells whether the name of an encoder is of the kind: `(name) -> bool`.
        encoder: `(name, trust_remote_code) -> (Encoder, sentence for the model card, its parts from the folder)`.
    """

    title: str
    files: tuple[str, ...] = ()
    recognise: str = ""
    check: str = ""
    resume: str = ""
    named: str = ""
    encoder: str = ""

    def holds(self, folder: Path) -> bool:
        """Return whether a folder is of this kind."""
        if self.recognise:
            return bool(_load(self.recognise)(folder))
        return any((folder / name).is_file() for name in self.files)

    def findings(self, folder: Path, trust_remote_code: bool) -> list[Finding]:
        """Return the results of all checks of a folder."""
        return [*_load(self.check)(folder, trust_remote_code)]

    @property
    def work(self) -> Any:
        """The entry `resume`, imported."""
        return _load(self.resume)


CONFIGURED = {
    "study": FolderKind("a study", check=f"{_DOCTOR}:check_study"),
} | {
    kind: FolderKind(title, check=f"{_DOCTOR}:check_run", resume=f"metasearch.{run}")
    for kind, title, run in (
        ("train", "a training", "pipelines.train:TrainRun"),
        ("distill", "a distillation", "pipelines.distill.job:DistillRun"),
        ("score", "scores of an encoder", "pipelines.score:ScoreRun"),
        ("tune", "a tuning", "search.tune.job:TuneRun"),
    )
}
"""Kind in `study.yaml` or `config.yaml` → kind of the folder."""
SHARDS = FolderKind("shards of an index", ("plan.json",), resume="metasearch.search.query.shards:encode_shards")
OTHERS = (
    FolderKind(
        "a prepared corpus", recognise="metasearch.data.parallel.saved:is_prepared", check=f"{_DOCTOR}:check_corpus"
    ),
    FolderKind(
        "an index",
        recognise="metasearch.search.index.database:exists",
        check="metasearch.search.index.check:check_index",
        named="metasearch.search.index.stores:is_index",
        encoder="metasearch.search.index_encoder:load_index_encoder",
    ),
    FolderKind("an export to ONNX", ("metasearch.json",), check=f"{_DOCTOR}:check_export"),
    FolderKind("an encoder", ("modules.json", "config.json", "adapter_config.json"), check=f"{_DOCTOR}:check_encoder"),
)
"""Kinds without a configuration; the first that recognises a folder counts."""


def _load(entry: str) -> Any:
    """Return a function or class by `module:name`."""
    module, _, name = entry.partition(":")
    return getattr(import_module(module), name)


def encoders_by_name(name: str, trust_remote_code: bool) -> Iterator[tuple[Any, str, str]]:
    """Yield the encoder of a name that is a folder of some kind, and two texts for its model card (`FolderKind`)."""
    for kind in OTHERS:
        if kind.named and _load(kind.named)(name):
            yield _load(kind.encoder)(name, trust_remote_code)


def kind_of(folder: Path) -> str:
    """Return the kind of work in a folder, by its configuration; an error names a nearby run."""
    if not holds_something(folder):
        raise RunFolderError(describe_missing(folder))
    if (folder / STUDY_FILE).is_file():
        return "study"
    config = read_config(folder)
    kind = str(config.get("kind"))
    require_known(f"{folder / CONFIG}: config.kind:", kind, [known for known in CONFIGURED if known != "study"])
    return kind


def open_run(folder: Path) -> Run[Any]:
    """Return the training, distillation, tuning or scoring in a folder; `execute` resumes it."""
    kind = kind_of(folder)
    if kind == "study":
        raise ConfigError(f"{folder} is a study, not a run. Continue with: {to_resume(folder)}")
    run: type[Run[Any]] = CONFIGURED[kind].work
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
