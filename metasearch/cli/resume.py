"""`metasearch resume`: continue a run, a distillation or a study."""

import logging
import os
import signal
import threading
from collections.abc import Sequence
from pathlib import Path

import click

from metasearch.cli import _options
from metasearch.cli._settings import execute, library
from metasearch.config.base import Settings
from metasearch.config.study import LauncherConfig
from metasearch.errors import ConfigError

log = logging.getLogger(__name__)


@_options.command("resume")
@click.argument("folder", type=click.Path(path_type=Path))
@_options.jobs("Runs at a time, of a study")
@_options.launcher
@click.option("--cell", is_flag=True, hidden=True, help="Wait for a running process; show the traceback of a bug.")
@click.option("--until-eof", is_flag=True, hidden=True, help="Same as --cell; also stop at the end of standard input.")
@_options.options_group(_options.trust, _options.track, _options.as_json())
def command(
    folder: Path, jobs: int | None, launcher: str | None, launcher_settings: Sequence[str], cell: bool,
    until_eof: bool, trust_remote_code: bool, trackers: tuple[str, ...], as_json: bool,
) -> None:  # fmt: skip
    """Continue FOLDER with its stored settings, to the same result as without interruption.

    FOLDER is the output of train, distill or crossval, or a run of a study. A finished run only prints its report.

    \b
    Examples:
      metasearch resume runs/lareqa
      metasearch resume studies/lareqa --jobs 2
      metasearch resume studies/lareqa/cells/maml-trans/fold-0-seed-1
    """
    from metasearch.pipelines.folders import kind_of, open_run
    from metasearch.pipelines.run import WAIT_SECONDS

    if kind_of(folder) == "study":
        from metasearch.cli.crossval import run
        from metasearch.pipelines.study.folder import StudyFolder
        from metasearch.runs.torchrun_env import require_alone

        require_alone("a study")
        if trackers:
            raise ConfigError(f"--track is for runs; {folder} is a study")
        _tell_changes(StudyFolder(folder).stored().config)
        run(None, folder, jobs, LauncherConfig.parse(launcher, launcher_settings), as_json, trust_remote_code)
        return
    for name, value in (("jobs", jobs), ("launcher", launcher), ("launcher-set", launcher_settings)):
        if value:
            raise ConfigError(f"--{name} is for studies; {folder} is one run")
    if until_eof:
        threading.Thread(target=_stop_at_eof, daemon=True).start()
    # What the process of a killed runner has reached is saved first.
    patience = WAIT_SECONDS if cell or until_eof else 0
    resumed = open_run(folder)
    if not resumed.files.finished:
        _tell_changes(resumed.config)
    execute(resumed, trackers, trust_remote_code, as_json, patience)


def _tell_changes(config: Settings) -> None:
    """Log each declaration that has changed since a run began; the run has its own, whole."""
    include = getattr(getattr(config, "data", None), "include", ())
    try:
        changes = dict.fromkeys(library([each for each in include if Path(each).is_dir()]).changed(config))
    except ConfigError as error:
        changes = {str(error): None}
    for change in changes:
        log.warning("%s; it continues as it began", change)


def _stop_at_eof() -> None:
    """Wait for the end of standard input, then ask this process to stop as a user would."""
    while os.read(0, 1024):
        continue
    # A signal reaches the main thread wherever it is; an exception of this one would not.
    os.kill(os.getpid(), signal.SIGTERM)
