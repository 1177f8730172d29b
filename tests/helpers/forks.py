"""Runs a command in a fork of this process, which has imported torch already: a new interpreter takes seconds to.

For tests of what a process does when a signal comes, when it dies, or beside other processes. What only a new
interpreter shows, such as what a command imports, is tested by `subprocess`.
"""

import os
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

import torch

from metasearch import __main__
from metasearch.encoders import open as _encoders  # noqa: F401 - imports sentence-transformers once, before the fork
from metasearch.pipelines import distill, folders, train  # noqa: F401

SECONDS = 300


class Fork:
    """A call in a fork of this process, with `subprocess.Popen`'s attributes.

    Args:
        call: takes no arguments; returns for exit code 0, or raises `SystemExit`.
        **environment: variables that it has beside those of this process.

    Attributes:
        pid: id of the process.
        returncode: exit code, or minus the number of the signal that killed it; None before `poll` saw it end.
        out: file with its standard output.
        errors: file with its standard error.
    """

    def __init__(self, call, **environment):
        folder = Path(tempfile.mkdtemp())
        self.out, self.errors = folder / "out", folder / "errors"
        self.returncode = None
        read, self._stdin = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._stdin)
            _run(call, environment, read, self.out, self.errors)
        os.close(read)

    def poll(self):
        """Return the exit code; None while it runs."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def send_signal(self, number):
        """Send a signal."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def close_stdin(self):
        """Let it read the end of its standard input."""
        os.close(self._stdin)

    def wait_until(self, reached):
        """Wait until something holds while it runs."""
        until = time.monotonic() + SECONDS
        while not reached():
            assert self.poll() is None, self.errors.read_text(encoding="utf-8")
            assert time.monotonic() < until
            time.sleep(0.02)

    def finished(self):
        """Wait for its end; return its exit code and what it wrote to stdout and stderr."""
        until = time.monotonic() + SECONDS
        while self.poll() is None:
            if time.monotonic() > until:
                self.send_signal(signal.SIGKILL)
            time.sleep(0.02)
        return self.returncode, *(path.read_text(encoding="utf-8") for path in (self.out, self.errors))


def metasearch(*args):
    """Return a call of the command line."""

    def call():
        sys.argv = ["metasearch", *map(str, args)]
        __main__.main()

    return call


def _run(call, environment, stdin, out, errors):
    """Run a call in a child, whose signals and streams are those of a new process, and end the child."""
    code = 1
    try:
        os.environ |= {"TOKENIZERS_PARALLELISM": "false", **environment}
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        torch.set_num_threads(1)  # threads of operations do not survive a fork
        os.dup2(stdin, 0)
        sys.stdout, sys.stderr = (path.open("w", buffering=1, encoding="utf-8") for path in (out, errors))
        for number, stream in ((1, sys.stdout), (2, sys.stderr)):
            os.dup2(stream.fileno(), number)
        call()
        code = 0
    except SystemExit as ended:
        code = ended.code or 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)
