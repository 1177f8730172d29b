"""Runs the cells of a study, several at a time, until all are done or have failed."""

import time

from metasearch.errors import MetasearchError
from metasearch.pipelines.run import stopped
from metasearch.pipelines.study.folder import StudyFolder, StudyMetadata
from metasearch.pipelines.study.launchers.base import JobStatus, Launcher
from metasearch.pipelines.study.prepare import prepare
from metasearch.pipelines.study.process import begin_attempt, how_ended, last_error
from metasearch.pipelines.study.status import CellStatus, StatusBoard, Watcher

_FRUITLESS = 3
"""Attempts at a cell in a row that were stopped from outside without a further step, after which it has failed."""


class Pool:
    """The cells of a study that are at work, `jobs` of them at a time, wherever a launcher runs them."""

    def __init__(
        self,
        study: StudyFolder,
        stored: StudyMetadata,
        board: StatusBoard,
        launcher: Launcher,
        jobs: int,
        watcher: Watcher,
    ) -> None:
        self.study = study
        self.stored = stored
        self.board = board
        self.launcher = launcher
        self.jobs = jobs
        self.watcher = watcher
        self._killed = False

    def run(self) -> None:
        """Run until nothing is left to do.

        Raises:
            ConfigError: the launcher can run no cell.
            Interrupted: by Ctrl-C or SIGTERM; every cell has saved what it had reached. A second one kills them.
            RunFolderError: a log cannot be written.
        """
        try:
            try:
                # What an earlier runner has left at work is not begun again.
                self._see()
                # The inner block waits for the cells before the outer one reports, whatever ended the loop.
                while self._begin():
                    self._look()
            finally:
                self._stop()
        except KeyboardInterrupt:
            reached = "killed; the last checkpoints are there" if self._killed else "stopped; what was reached is saved"
            raise stopped(self.study.path, reached) from None

    def _begin(self) -> bool:
        """Begin as many cells as may run; return whether any is at work."""
        # `next` marks cells as skipped on its way; the watcher hears of those that were not before.
        before = self.board.within("skipped")
        begun = []
        while len(self.board.at_work) < self.jobs and (status := self.board.next()):
            self._queue(status)
            if self._prepared(status):
                begun.append(status)
        self._start(begun)
        for status in self.board.within("skipped"):
            if status not in before:
                self.watcher.changed(self.board, status)
        return bool(self.board.at_work or self.board.within("waiting"))

    def _queue(self, status: CellStatus) -> None:
        status.state, status.began, status.error = "queued", time.monotonic(), ""

    def _start(self, begun: list[CellStatus]) -> None:
        taken = self.launcher.start([status.cell.name for status in begun]) if begun else ()
        for status in begun:
            if status.cell.name not in taken:
                status.state = "waiting"

    def _prepared(self, status: CellStatus) -> bool:
        """Make the folder of a cell; return whether that could be done."""
        if status.attempted:
            return True
        try:
            prepare(self.study, status.cell, self.stored)
        # A cell that cannot be prepared fails alone, as if its process had; the others go on.
        except MetasearchError as error:
            begin_attempt(self.study, status.cell.name, str(error))
            self._end(status, JobStatus("ended", error.exit_code))
            return False
        status.attempted = True
        return True

    def _look(self, stopping: bool = False) -> None:
        """See how far the cells are and which have ended; wait for a moment where none has."""
        ended = self._see(stopping)
        self.watcher.ticked(self.board)
        # Where one has ended, the next one begins at once.
        if not ended:
            time.sleep(self.launcher.tick)

    def _see(self, stopping: bool = False) -> bool:
        """See how far the cells are; return whether any has ended."""
        seen = self.launcher.look()
        if stopping:
            # What stopped this may have come before they were begun.
            for status in self.board.at_work:
                if status.cell.name not in seen:
                    status.state = "waiting"
        for name, each in seen.items():
            status = self.board.cells[name]
            if status.state == "waiting":  # begun by an earlier runner, or by this one as it was stopped
                self._queue(status)
            if each.state == "ended":
                self._follow(status)
                self._end(status, each, stopping)
            elif each.state != status.state:
                status.state, status.began = each.state, time.monotonic()
                self.watcher.changed(self.board, status)
            elif each.state == "running":
                self._follow(status)
        return any(each.state == "ended" for each in seen.values())

    def _follow(self, status: CellStatus) -> None:
        folder = self.study.at(status.cell.name)
        status.follow(folder)
        status.hear(self.study.log(status.cell.name), folder)

    def _end(self, status: CellStatus, seen: JobStatus, stopping: bool = False) -> None:
        name = status.cell.name
        status.seconds = time.monotonic() - status.began
        # The exit code alone does not do: a run is finished when its report, written last, is there.
        if seen.code == 0 and self.study.done(name):
            self.study.tidy(status.cell, self.stored.config.keep_models)
            status.state = "done"
        elif stopping:
            status.state = "stopped"
        else:
            status.error = self._why(name, seen)
            # What was stopped from outside goes on from its checkpoint, wherever that will be.
            goes_on = seen.again and (status.further() or status.fruitless < _FRUITLESS)
            status.state = "waiting" if goes_on else "failed"
        self.watcher.changed(self.board, status)

    def _why(self, name: str, seen: JobStatus) -> str:
        """Return why a cell failed, and where its log is."""
        ended = [seen.why] if seen.why else []
        if seen.code is not None:
            ended.insert(0, how_ended(seen.code))
        message = last_error(self.study, name) or "it wrote no error"
        return f"{', '.join(ended)}: {message} (log: {self.study.log(name)})"

    def _stop(self) -> None:
        """Ask all cells to end, and wait for that; Ctrl-C meanwhile, whatever it interrupts, kills them."""
        looked = False
        while not looked or self.board.at_work:
            try:
                self._see(stopping=True)
                looked, self.board.stopping = True, bool(self.board.at_work)
                if self.board.at_work:
                    self.launcher.stop(kill=self._killed)
                while self.board.at_work:
                    self._look(stopping=True)
            except KeyboardInterrupt:
                self._killed = True
