"""`metasearch.tune`: starts or continues a tuning, and returns its result."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from metasearch.config import yaml
from metasearch.config.run import DEFAULT_ENCODER, Device
from metasearch.data.locate import absolute, absolute_encoder
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.load import load_encoder
from metasearch.errors import RunFolderError
from metasearch.pipelines.run import silent
from metasearch.runs.callbacks import OpenCallback
from metasearch.runs.folder import CONFIG, RunFolder
from metasearch.search.settings import TuneConfig
from metasearch.search.tune.choice import Choice
from metasearch.search.tune.job import TuneRun
from metasearch.search.tune.table import Table

log = logging.getLogger(__name__)

Paths = str | Path | Sequence[str | Path]


@dataclass(frozen=True)
class TuneResult:
    """A finished tuning: its folder, the text of `report.md`, and the kept step, None if no labels were held out."""

    folder: Path
    report: str
    choice: Choice | None

    @property
    def encoder(self) -> Encoder:
        """The encoder that was kept, loaded from `model/`."""
        return load_encoder(str(self.folder / "model"))

    @property
    def table(self) -> list[dict[str, Any]]:
        """The lines of the report, the simplest step first."""
        return [
            {"step": str(each.step), "pool": each.pool, "mean": each.mean.mean, "low": each.mean.low,
             "high": each.mean.high, "gain": each.gain.mean, "p": each.p, "kept": each.kept}
            for each in (self.choice.standings if self.choice else ())
        ]  # fmt: skip


def tune(
    labels: Any,
    output: str | Path = "tuned",
    *,
    documents: Paths = (),
    base: str | Sequence[str] = (),
    translations: Paths = (),
    encoder: str = DEFAULT_ENCODER,
    columns: Mapping[str, str] | None = None,
    ignore_identical_ids: bool = False,
    learners: Sequence[str] = (),
    folds: int = 4,
    time: float | None = None,
    seed: int = 0,
    same_page: bool | None = None,
    accept: bool = False,
    device: Device = "auto",
    trust_remote_code: bool = False,
    open_callback: OpenCallback = silent,
) -> TuneResult:
    """Compare the search without labels with other ones on held-out folds, and keep one that is significantly better.

    The same call continues a tuning that was stopped.

    Args:
        labels: a path, dicts, a pandas or `datasets` table (see `metasearch.load_labels`), `RetrievalData`, or a
            `Benchmark`, whose first folds and pools are then used.
        output: folder of the result.
        documents: files and folders to index.
        base: addresses that stand for the documents, or for a folder of them as `ADDRESS=FOLDER`; found by default.
        translations: files, folders and hub names of translations to align the encoder on first.
        encoder: built-in name, local folder or hub name.
        columns: name of a value → its column, such as `{"query": "question"}`.
        ignore_identical_ids: of labels in a BEIR folder: see `metasearch.load_labels`.
        learners: further learners to try, such as `maml`.
        folds: held-out folds; fewer for few labels.
        time: seconds that it may take; the most expensive steps and folds are dropped.
        seed: random seed of folds and episodes.
        same_page: whether translations of a page answer what it answers; by default where the documents' paths or
            groups show them.
        accept: keep a step although it harms questions in one language, or one side of the search, or the labels may
            be wrong.
        device: device of the encoders.
        trust_remote_code: run Python code that comes with the encoder.
        open_callback: opens a progress callback.

    Raises:
        MetasearchError: of every kind; finished work is saved.
    """
    path = str(labels) if isinstance(labels, str | Path) else ""
    asked = {
        "labels": absolute(path) if path and Path(path).exists() else path,
        "columns": dict(columns or {}), "ignore_identical_ids": ignore_identical_ids,
        "documents": _listed(documents), "translations": _listed(translations),
        "encoder": {"name": absolute_encoder(encoder), "trust_remote_code": trust_remote_code},
        "base": (base,) if isinstance(base, str) else tuple(base),
        "learners": tuple(learners), "folds": folds, "device": device, "seed": seed,
        "same_page": same_page, "accept": accept,
    }  # fmt: skip
    config, folder = yaml.check(asked, TuneConfig, "tune"), Path(output)
    run = TuneRun(config, folder, None if path else labels, time)
    if (folder / CONFIG).is_file():
        run.began = run.files.stored(TuneConfig)
        before, now = (each.model_dump(mode="json") for each in (run.began.config, config))
        if other := "; ".join(f"{key} is {before[key]}, not {now[key]}" for key in now if before[key] != now[key]):
            raise RunFolderError(f"{folder} holds a tuning with other settings ({other}); choose another -o")
    result = run.execute(open_callback, trust_remote_code)
    choice = Choice.of(Table.read(RunFolder(folder), accept)) if result.rows else None
    if choice and f"Kept: {choice.kept}. " not in result.report:
        log.warning("%s: another version chose the model by another rule; see report.md", folder)
    return TuneResult(folder, result.report, choice)


def _listed(paths: Paths) -> tuple[str, ...]:
    return tuple(absolute(str(path)) for path in ([paths] if isinstance(paths, str | Path) else paths))
