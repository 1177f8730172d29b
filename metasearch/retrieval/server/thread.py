"""A thread whose work the end of the process need not wait for."""

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from queue import SimpleQueue
from typing import Any

Task = tuple[Future[Any], Callable[..., Any], tuple[Any, ...], dict[str, Any]]


class Thread(Executor):
    """Does one thing after another. Python waits at its end for the threads of other executors, and not for this one.

    Attributes:
        busy: whether something is being done.
    """

    def __init__(self, name: str) -> None:
        self.busy = False
        self._tasks: SimpleQueue[Task | None] = SimpleQueue()
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def submit(self, work: Callable[..., Any], /, *args: Any, **keys: Any) -> Future[Any]:
        """Do something when everything before is done, and return what will have its result."""
        future: Future[Any] = Future()
        self._tasks.put((future, work, args, keys))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the thread when what was submitted is done; that is not waited for."""
        self._tasks.put(None)

    def _run(self) -> None:
        while task := self._tasks.get():
            future, work, args, keys = task
            if future.set_running_or_notify_cancel():
                self.busy = True
                try:
                    result = work(*args, **keys)
                except BaseException as error:  # as of any executor, whoever waits for the result gets it
                    future.set_exception(error)
                else:
                    future.set_result(result)
                finally:
                    self.busy = False
