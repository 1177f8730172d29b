"""Tunes an encoder from Python, or continues a tuning that was stopped."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from metasearch.config import registry, yaml
from metasearch.config.run import DEFAULT_ENCODER, Device, TuneConfig
from metasearch.data.benchmark import Benchmark
from metasearch.data.records import RetrievalData
from metasearch.encoders.encoder import Encoder
from metasearch.errors import RunFolderError
from metasearch.pipelines import factory
from metasearch.pipelines.run import CallbackFactory, RunResult, silent
from metasearch.pipelines.tune.choice import Choice, read_choice
from metasearch.pipelines.tune.job import TuneRun
from metasearch.runs.folder import CONFIG, RunFolder

Paths = str | Path | Sequence[str | Path]


@dataclass(frozen=True)
class TuneResult:
    """A finished tuning.

    Attributes:
        folder: holds `model/`, `index/` where documents were given, `report.html` and `report.md`.
        report: the text of `report.md`.
        choice: what was kept and why; None where there were too few labels to hold any out.
    """

    folder: Path
    report: str
    choice: Choice | None

    @property
    def encoder(self) -> Encoder:
        """The encoder that was kept, loaded from `model/`."""
        return factory.load_encoder(str(self.folder / "model"))

    @property
    def table(self) -> list[dict[str, Any]]:
        """The lines of the report, the simplest first: step, pool, mean, interval, difference from the base encoder."""
        return [
            {
                "step": each.step,
                "pool": each.pool,
                "mean": each.mean.mean,
                "low": each.mean.low,
                "high": each.mean.high,
                "gain": each.gain.mean,
                "p_against_best": each.p,
                "kept": self.choice is not None and each == self.choice.kept,
            }
            for each in (self.choice.standings if self.choice else ())
        ]


def tune(
    labels: Any,
    output: str | Path = "tuned",
    *,
    documents: Paths = (),
    translations: Paths = (),
    encoder: str = DEFAULT_ENCODER,
    columns: Mapping[str, str] | None = None,
    learners: Sequence[str] = (),
    folds: int = 5,
    time: float | None = None,
    seed: int = 0,
    device: Device = "auto",
    trust_remote_code: bool = False,
    open_callback: CallbackFactory = silent,
) -> TuneResult:
    """Climb from the base encoder to a fine-tuned one on held-out folds, and keep the simplest that is good enough.

    The same call continues a tuning that was stopped.

    Args:
        labels: a path, dicts, a pandas or `datasets` table (see `RetrievalData.from_rows`), `RetrievalData`, or a
            `Benchmark`, whose folds and pools are then used.
        output: folder of the result.
        documents: files and folders to index.
        translations: files and folders of translations, on which the encoder is aligned first.
        encoder: built-in name, local folder or hub name.
        columns: name of a value → its column, such as `{"query": "question"}`.
        learners: further learners to try, such as `maml`.
        folds: held-out folds; fewer where there are few labels.
        time: seconds it may take; the most expensive steps and folds are dropped.
        seed: of folds and episodes.
        device: where encoders run.
        trust_remote_code: run Python code that comes with the encoder.
        open_callback: opens a callback that hears of the progress.

    Raises:
        MetasearchError: of every kind; what was reached is saved.

    Example:
        >>> import metasearch as ms
        >>> result = ms.tune("labels.csv", "shop", documents="help-pages/")  # doctest: +SKIP
        >>> print(result.choice)  # doctest: +SKIP
    """
    path = isinstance(labels, str | Path)
    asked = {
        "labels": _absolute_name(str(labels)) if path else "",
        "columns": dict(columns or {}),
        "documents": _absolute(documents),
        "translations": _absolute(translations),
        "encoder": {"name": _absolute_name(encoder), "trust_remote_code": trust_remote_code},
        "learners": tuple(learners),
        "folds": folds,
        "device": device,
        "seed": seed,
    }
    config = yaml.check(asked, TuneConfig, "tune")
    given = None
    if not path:
        given = labels if isinstance(labels, Benchmark | RetrievalData) else RetrievalData.from_rows(labels, columns)
    run = open_tuning(config, Path(output), given, time)
    return read_result(run.execute(open_callback, trust_remote_code))


def open_tuning(
    config: TuneConfig, folder: Path, labels: Benchmark | RetrievalData | None = None, limit: float | None = None
) -> TuneRun:
    """Return a new tuning, or the one in the folder.

    Raises:
        RunFolderError: the tuning in the folder has other settings.
    """
    run = TuneRun(config, folder, labels, limit)
    if not (folder / CONFIG).is_file():
        return run
    _, begun = RunFolder.open(folder, TuneConfig)
    before, now = begun.config.model_dump(mode="json"), config.model_dump(mode="json")
    differing = [f"{key} is {before[key]}, not {now[key]}" for key in now if before[key] != now[key]]
    if differing:
        raise RunFolderError(f"{folder} holds a tuning with other settings ({'; '.join(differing)}); choose another -o")
    run.began = begun
    return run


def read_result(result: RunResult) -> TuneResult:
    """Return what a finished run found."""
    return TuneResult(result.folder, result.report, read_choice(RunFolder(result.folder)) if result.rows else None)


def _absolute(paths: Paths) -> tuple[str, ...]:
    listed = [paths] if isinstance(paths, str | Path) else paths
    return tuple(str(Path(path).resolve()) for path in listed)


def _absolute_name(name: str) -> str:
    """Return an absolute path for a local name; a hub name stays."""
    return str(Path(name).resolve()) if name not in registry.names("encoders") and Path(name).exists() else name
