"""Runs a command in a process of its own that gets a signal at a moment of its life."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import metasearch

# Python imports `sitecustomize` when it starts. An audit hook hears of every import, and of files that are opened or
# renamed; the signal then comes in the middle of that. With a shell of jobs in the background Ctrl-C may be ignored.
_SITE = """
import os, signal, sys

_event, _name, _number = {moment!r}
signal.signal(signal.SIGINT, signal.default_int_handler)

def _hook(event, arguments):
    global _event
    if event == _event and any(str(each).endswith(_name) for each in arguments[:2]):
        _event = None
        os.kill(os.getpid(), _number)

sys.addaudithook(_hook)
"""


def at_moment(folder: Path, event: str, name: str, number: int, *args: object, cwd: Path | None = None):
    """Run `metasearch ARGS`, which gets a signal when an audit event of Python names something that ends in `name`.

    Events are `import`, `open` and `os.rename`, whose second argument is the new name. Returns the finished process.
    """
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(_SITE.format(moment=(event, name, int(number))), encoding="utf-8")
    places = [str(folder), str(Path(metasearch.__file__).parents[1])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
    command = [sys.executable, "-m", "metasearch", *map(str, args)]
    return subprocess.run(command, env=environment, cwd=cwd, capture_output=True, text=True, check=False, timeout=200)


NUMBERS = {signal.SIGINT: 130, signal.SIGTERM: 143}
"""Signals, and the exit codes of a command that they stop."""
