"""Encodes new passages in jobs of a launcher; each takes shards until none is left."""

import logging
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from metasearch.config.study import LauncherConfig
from metasearch.errors import CellsFailed
from metasearch.pipelines.study.cell import last_error
from metasearch.pipelines.study.launchers import JobEnd, JobFolder, Launcher, open_launcher
from metasearch.search.index.maps import Vectors
from metasearch.search.query.passages import EncodePortions, Portion
from metasearch.search.query.shards import EncoderPlan, Shards, remove_shards

_LOG = " (log: "

log = logging.getLogger(__name__)


class _Jobs:
    """Encodes passages by jobs: has the vectors of a shard as soon as a job has written them."""

    def __init__(self, shards: Shards, launcher: Launcher, jobs: int) -> None:
        self._shards, self._launcher, self._jobs = shards, launcher, jobs
        self._waiting: list[str] = []
        self._errors: dict[str, str] = {}  # job that has failed → why

    def encode(self, portions: Iterable[Portion]) -> Iterator[tuple[Portion, Vectors]]:
        """Write all portions as shards, submit the jobs, and yield each with its vectors `(n, D)`, to be stored.

        `CellsFailed` if no job is left that could encode them.
        """
        self._shards.write(portions)
        self._submit()
        for name, some in self._shards.passages():
            texts = [passage.text for passage in some]
            while (vectors := self._shards.vectors(name, texts)) is None:
                self._look()
                if not (self._launcher.active or self._waiting):
                    self._require_no_error()
                    self._submit()  # jobs of an earlier runner had its shards
            yield some, vectors

    def stop(self) -> None:
        """Let all jobs end, also those that wait in a queue, and wait for that; Ctrl-C meanwhile ends them at once."""
        again = False
        while self._launcher.active:
            try:
                self._launcher.stop(again)
                while self._launcher.active:
                    if not self._launcher.collect():
                        time.sleep(self._launcher.tick)
            except KeyboardInterrupt:
                again = True

    def tell_errors(self) -> None:
        """Log why jobs have failed whose texts others have encoded."""
        for name, error in self._errors.items():
            log.warning("%s failed, and others have encoded its texts: %s", name, error.rpartition(_LOG)[0])

    def _submit(self) -> None:
        names = [f"job-{number}" for number in range(1, min(self._jobs, len(self._shards)) + 1)]
        self._waiting = [name for name in names if name not in self._launcher.active]

    def _look(self) -> None:
        """Submit jobs that wait, note those that have failed, and wait for a moment."""
        if self._waiting:
            taken = self._launcher.submit(self._waiting)
            self._waiting = [name for name in self._waiting if name not in taken]
        ended = self._launcher.collect()
        for name, end in ended.items():
            if end != JobEnd(0):
                path = self._launcher.folder.log(name)
                why = end.reason if end.code is None else f"exit code {end.code}"
                self._errors[name] = f"{why}: {last_error(path) or 'it wrote no error'}{_LOG}{path})"
        if not ended:
            time.sleep(self._launcher.tick)

    def _require_no_error(self) -> None:
        # Jobs mostly fail for the same reason, but each has a log of its own.
        told = {error.rpartition(_LOG)[0]: f"{name}: {error}" for name, error in reversed(self._errors.items())}
        if told:
            raise CellsFailed(
                f"{len(self._errors)} of the jobs failed. Encoded texts are kept; run the same command again to "
                "continue:\n" + "\n".join(f"  {line}" for line in reversed(told.values()))
            )


@contextmanager
def by_jobs(
    place: LauncherConfig, jobs: int | None, trust_remote_code: bool, plan: EncoderPlan, folder: Path
) -> Iterator[EncodePortions]:
    """Give what encodes the passages of an index in jobs, with their shards in its folder, locked by the caller.

    Raises:
        CellsFailed: all jobs ended, some failed, and texts are left.
        ConfigError: the launcher cannot be used here.
    """
    jobs = jobs or place.jobs
    shards = Shards(folder, plan)
    # Not by the number of jobs: the number of threads can change the last bits.
    launcher = open_launcher(JobFolder(shards.folder), place, int(place.settings.get("cpus", 1)), trust_remote_code)
    own = _Jobs(shards, launcher, jobs)
    try:
        yield own.encode
    finally:
        own.stop()
    own.tell_errors()
    remove_shards(folder)
