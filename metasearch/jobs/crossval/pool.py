"""Runs the cells of a study, several processes at a time, until all are done or have failed."""

import time
from contextlib import suppress
from queue import Empty, SimpleQueue

from metasearch.errors import Interrupted
from metasearch.jobs.crossval.board import Board, Place, Watcher
from metasearch.jobs.crossval.folder import StudyFolder
from metasearch.jobs.crossval.worker import Event, Inbox, Worker, how_ended, last_line

_TICK_SECONDS = 0.25


class Pool:
    """The processes that are at work.

    Args:
        study: whose cells are run.
        board: where they stand.
        jobs: processes at a time.
        threads: of each.
        watcher: hears of changes.
    """

    def __init__(self, study: StudyFolder, board: Board, jobs: int, threads: int, watcher: Watcher) -> None:
        self.study = study
        self.board = board
        self.jobs = jobs
        self.threads = threads
        self.watcher = watcher
        self._workers: dict[str, Worker] = {}
        self._inbox: Inbox = SimpleQueue()
        self._killed = False

    def run(self) -> None:
        """Run until nothing is left to do.

        Raises:
            Interrupted: by Ctrl-C or SIGTERM; every cell has saved what it had reached. A second one kills them.
            RunFolderError: a log cannot be written.
        """
        try:
            try:
                while self._begin():
                    self._hear()
            finally:
                self._stop()
        except KeyboardInterrupt:
            reached = "killed; the last checkpoints are there" if self._killed else "stopped; what was reached is saved"
            raise Interrupted(
                f"{reached}. Go on with the same command, or: metasearch crossval --resume {self.study.path}"
            ) from None

    def _begin(self) -> bool:
        """Begin as many cells as may run; return whether any is at work."""
        before = {place.cell.name for place in self.board.within("skipped")}
        while len(self._workers) < self.jobs and (place := self.board.next()):
            name = place.cell.name
            self._workers[name] = Worker(self.study, name, self.threads, self._inbox)
            place.state, place.began, place.error = "running", time.monotonic(), ""
            self.watcher.changed(self.board, place)
        for place in self.board.within("skipped"):
            if place.cell.name not in before:
                self.watcher.changed(self.board, place)
        return bool(self._workers)

    def _hear(self) -> None:
        """Take what the processes tell, for a moment."""
        with suppress(Empty):
            self._take(*self._inbox.get(timeout=_TICK_SECONDS))
            while True:
                self._take(*self._inbox.get_nowait())
        self.watcher.ticked(self.board)

    def _take(self, name: str, event: Event) -> None:
        place = self.board.places[name]
        if "ended" in event:
            del self._workers[name]
            self._end(place, int(event["ended"]))
        else:
            place.hear(event)

    def _end(self, place: Place, code: int, stopping: bool = False) -> None:
        place.seconds = time.monotonic() - place.began
        if code == 0 and self.study.done(place.cell.name):
            place.state = "done"
        elif stopping:
            place.state = "stopped"
        else:
            place.state = "failed"
            said = place.error or last_line(self.study, place.cell.name) or "it wrote no error"
            place.error = f"{how_ended(code)}: {said} (log: {self.study.log(place.cell.name)})"
        self.watcher.changed(self.board, place)

    def _stop(self) -> None:
        """Ask all processes to end, and wait for that; Ctrl-C meanwhile, whatever it interrupts, kills them."""
        self.board.stopping = bool(self._workers)
        while self._workers:
            try:
                for worker in self._workers.values():
                    (worker.kill if self._killed else worker.stop)()
                while self._workers:
                    self._wait()
            except KeyboardInterrupt:
                self._killed = True

    def _wait(self) -> None:
        """Hear, for a moment, of processes that were asked to end."""
        with suppress(Empty):
            name, event = self._inbox.get(timeout=_TICK_SECONDS)
            if "ended" not in event:
                self.board.places[name].hear(event)
        for name, worker in list(self._workers.items()):
            # Asked of the process itself: Ctrl-C may have come between the inbox and whoever took its last event.
            if worker.code is not None:
                self._end(self.board.places[name], worker.code, stopping=True)
                del self._workers[name]
        self.watcher.ticked(self.board)
