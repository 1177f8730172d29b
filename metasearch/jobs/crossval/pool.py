"""Runs the cells of a study, several processes at a time, until all are done or have failed."""

import time
from subprocess import Popen

from metasearch.errors import MetasearchError
from metasearch.jobs.crossval.board import CellStatus, StatusBoard, Watcher
from metasearch.jobs.crossval.folder import Stored, StudyFolder
from metasearch.jobs.crossval.prepare import prepare
from metasearch.jobs.crossval.process import begin_attempt, how_ended, last_error, start_cell
from metasearch.jobs.lifecycle import stopped

_TICK_SECONDS = 0.25


class Pool:
    """The processes that are at work on the cells of a study, `jobs` of them at a time."""

    def __init__(self, study: StudyFolder, stored: Stored, board: StatusBoard, jobs: int, watcher: Watcher) -> None:
        self.study = study
        self.stored = stored
        self.board = board
        self.jobs = jobs
        self.watcher = watcher
        self._processes: dict[str, Popen[bytes]] = {}
        self._killed = False

    def run(self) -> None:
        """Run until nothing is left to do.

        Raises:
            Interrupted: by Ctrl-C or SIGTERM; every cell has saved what it had reached. A second one kills them.
            RunFolderError: a log cannot be written.
        """
        try:
            try:
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
        while len(self._processes) < self.jobs and (status := self.board.next()):
            status.state, status.began, status.error = "running", time.monotonic(), ""
            self.watcher.changed(self.board, status)
            self._begin_cell(status)
        for status in self.board.within("skipped"):
            if status not in before:
                self.watcher.changed(self.board, status)
        return bool(self._processes)

    def _begin_cell(self, status: CellStatus) -> None:
        name, config = status.cell.name, self.stored.config
        try:
            prepare(self.study, status.cell, self.stored)
        # A cell that cannot be prepared fails alone, as if its process had; the others go on.
        except MetasearchError as error:
            begin_attempt(self.study, name, str(error))
            self._end(status, error.exit_code)
        else:
            self._processes[name] = start_cell(self.study, name, config.threads or 1, config.trust_remote_code)

    def _look(self, stopping: bool = False) -> None:
        """See how far the cells are and which have ended; wait for a moment where none has."""
        ended = []
        for name, process in self._processes.items():
            status = self.board.cells[name]
            status.follow(self.study.at(name))
            status.hear(self.study.log(name), self.study.at(name))
            if (code := process.poll()) is not None:
                self._end(status, code, stopping)
                ended.append(name)
        for name in ended:
            del self._processes[name]
        self.watcher.ticked(self.board)
        # Where one has ended, the next one begins at once.
        if not ended:
            time.sleep(_TICK_SECONDS)

    def _end(self, status: CellStatus, code: int, stopping: bool = False) -> None:
        name = status.cell.name
        status.seconds = time.monotonic() - status.began
        # The exit code alone does not do: a run is finished when its report, written last, is there.
        if code == 0 and self.study.done(name):
            self.study.tidy(status.cell, self.stored.config.keep_models)
            status.state = "done"
        elif stopping:
            status.state = "stopped"
        else:
            status.state = "failed"
            message = last_error(self.study, name) or "it wrote no error"
            status.error = f"{how_ended(code)}: {message} (log: {self.study.log(name)})"
        self.watcher.changed(self.board, status)

    def _stop(self) -> None:
        """Ask all processes to end, and wait for that; Ctrl-C meanwhile, whatever it interrupts, kills them."""
        self.board.stopping = bool(self._processes)
        while self._processes:
            try:
                for process in self._processes.values():
                    # SIGTERM lets a cell save a checkpoint first; `Popen` signals no process that has ended.
                    (process.kill if self._killed else process.terminate)()
                while self._processes:
                    self._look(stopping=True)
            except KeyboardInterrupt:
                self._killed = True
