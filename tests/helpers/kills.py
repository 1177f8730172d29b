"""Runs a command in a process that dies before, or in the middle of, one chosen thing that it does to the disk."""

import io
import itertools
import multiprocessing
import os
import re
import resource
import signal
import sqlite3
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import safetensors.torch

PROCESSES = multiprocessing.get_context("fork")
KILLED = 137
"""Exit code of a process that died as by `kill -9`."""
TORN = 7
"""Bytes of a file that a torn write leaves."""


@dataclass(frozen=True)
class Moment:
    """What a command does to the disk, by what it is and to which file, and whether it dies in the middle of it."""

    what: str
    torn: bool = False

    def __str__(self):
        return f"{self.what}, torn" if self.torn else self.what


def moments(command, folder):
    """Return the distinct moments of a command that runs whole, in their order."""
    seen = PROCESSES.SimpleQueue()
    code, said = _in_process(command, folder, lambda what: seen.put(what))
    assert code == 0, said
    found = {}
    while not seen.empty():
        found.setdefault(seen.get())
    before = [Moment(what) for what in found]
    # The file that only shows which mode new ones get is empty.
    torn = [
        what
        for what in found
        if (what.startswith("write") or what.endswith("COMMIT")) and not what.endswith(".mode.new")
    ]
    return before + [Moment(what, torn=True) for what in torn]


def killed(command, folder, moment):
    """Run a command that dies at the first such moment; return whether it came to it."""

    def die(what):
        if what != moment.what:
            return
        if not moment.torn:
            os._exit(KILLED)
        # The next byte beyond the limit is what kills the process, in whatever library it is written.
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (TORN, resource.RLIM_INFINITY))

    code, _ = _in_process(command, folder, die)
    return code in (KILLED, -signal.SIGXFSZ)


def finished(command, folder):
    """Run a command to its end; return its exit code and what it said."""
    return _in_process(command, folder, lambda what: None)


def _in_process(command, folder, hear):
    said = PROCESSES.SimpleQueue()
    process = PROCESSES.Process(target=_child, args=(command, Path(folder).resolve(), hear, said))
    process.start()
    process.join(300)
    return process.exitcode, "" if said.empty() else said.get()


def _child(command, folder, hear, said):
    output = io.StringIO()
    _listen(folder, hear)
    code = 0
    with redirect_stdout(output), redirect_stderr(output):
        try:
            command()
        except SystemExit as ended:
            code = ended.code or 0
    said.put(output.getvalue())
    os._exit(code)


def _listen(folder, hear):
    """Tell of everything that is done to the disk below a folder, before it is done."""

    def tell(what, path):
        # What has no path is a descriptor of a file whose writing was told of.
        name = os.fsdecode(path) if isinstance(path, str | bytes | os.PathLike) else ""
        if name.startswith(f"{folder}"):
            hear(f"{what} {re.sub(r'[0-9a-f]{16}|[0-9]+', 'N', os.path.relpath(name, folder))}")

    def audit(event, args):
        if event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR):
            tell("write", args[0])
        elif event == "os.rename":
            tell("rename to", args[1])
        elif event in ("os.remove", "os.rmdir", "os.mkdir"):
            tell(event.removeprefix("os."), args[0])

    connect, statements = sqlite3.connect, itertools.count()
    fsync, serialise = os.fsync, safetensors.torch.serialize_file

    def synced(descriptor):
        tell("fsync", os.readlink(f"/proc/self/fd/{descriptor}"))
        fsync(descriptor)

    def serialised(tensors, path, *args, **keys):
        tell("write", path)
        serialise(tensors, path, *args, **keys)

    def connected(*args, **keys):
        connection = connect(*args, **keys)
        connection.set_trace_callback(lambda sql: hear(f"sql {next(statements)} {sql[:30]}"))
        return connection

    sqlite3.connect = connected
    os.fsync, safetensors.torch.serialize_file = synced, serialised
    sys.addaudithook(audit)
