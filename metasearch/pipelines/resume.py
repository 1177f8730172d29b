"""`metasearch resume`: opens the run in a folder, whichever kind it is."""

from pathlib import Path
from typing import Any, Literal, cast

from metasearch.errors import ConfigError, RunFolderError, nearest, require_known, to_resume
from metasearch.evaluation.study.read import STUDY_FILE
from metasearch.pipelines.folders import CONFIGURED
from metasearch.pipelines.run import Run, holds_something
from metasearch.runs.folder import CONFIG, read_config

RunKind = Literal["study", "train", "distill", "score", "tune"]


def kind_of(folder: Path) -> RunKind:
    """Return the kind of work in a folder, by its configuration; an error names a nearby run."""
    if not holds_something(folder):
        raise RunFolderError(describe_missing(folder))
    if (folder / STUDY_FILE).is_file():
        return "study"
    config = read_config(folder)
    require_known(
        f"{folder / CONFIG}: config.kind:", str(config.get("kind")), [kind for kind in CONFIGURED if kind != "study"]
    )
    return cast(RunKind, config["kind"])


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
