"""Kinds of folders: the name of each, and the functions that recognise, check, resume and export it.

A function is written as `module:name` and imported when it is used, so that a command loads only the kinds it meets.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from metasearch.runs.findings import Finding

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
        encoder: `(name, trust_remote_code) -> (Encoder, sentence for the model card)`.
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
        named="metasearch.search.index_encoder:is_index",
        encoder="metasearch.search.index_encoder:load_index_encoder",
    ),
    FolderKind("an export to ONNX", ("metasearch.json",), check=f"{_DOCTOR}:check_export"),
    FolderKind("an encoder", ("modules.json", "config.json", "adapter_config.json"), check=f"{_DOCTOR}:check_encoder"),
    FolderKind("a tokenizer", ("tokenizer.json",), check=f"{_DOCTOR}:check_tokenizer"),
)
"""Kinds without a configuration; the first that recognises a folder counts."""


def _load(entry: str) -> Any:
    """Return a function or class by `module:name`."""
    module, _, name = entry.partition(":")
    return getattr(import_module(module), name)


def encoders_by_name(name: str, trust_remote_code: bool) -> Iterator[tuple[Any, str]]:
    """Yield the encoder of a name that is a folder of some kind, and the sentence for its model card."""
    for kind in OTHERS:
        if kind.named and _load(kind.named)(name):
            yield _load(kind.encoder)(name, trust_remote_code)
