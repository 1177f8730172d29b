"""Runs of a command while things are killed at random moments, for `METASEARCH_CHAOS_SECONDS`, 60 by default.

Tests print what happened, for docs/reliability.md.
"""

import os
import random
import signal
import subprocess
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from helpers.launchers import Runner

SECONDS = float(os.environ.get("METASEARCH_CHAOS_SECONDS", "60"))


class Chaos:
    """Counts of what was killed and of how runners ended, until the time is over."""

    def __init__(self):
        random.seed(0)
        self.happened, self.ends = Counter(), Counter()
        self._deadline = time.monotonic() + SECONDS

    @property
    def over(self):
        return time.monotonic() > self._deadline

    def run(self, command, disturb, pause, watch=lambda: None):
        """Run a command to its end and return its exit code.

        Args:
            command: arguments of metasearch.
            disturb: is given the runner at random moments, does something and returns its name.
            pause: seconds between two moments, from and to.
            watch: is called after each pause, also when the time is over.
        """
        with Runner(*command) as runner:
            while runner.process.poll() is None:
                with suppress(subprocess.TimeoutExpired):
                    runner.process.wait(random.uniform(*pause))
                if not self.over and runner.process.poll() is None:
                    self.happened[disturb(runner)] += 1
                watch()
            code, _, wrote = runner.ended()
        assert all(line.startswith(("metasearch: ", "  ")) for line in wrote.splitlines() if ".cc:" not in line), wrote
        self.ends[code] += 1
        assert self.ends.total() < 200
        return code

    def __str__(self):
        return f"{SECONDS:.0f} s: {dict(self.happened)}; runners by exit code: {dict(self.ends)}"


class FinishedCells(dict):
    """The cells of a study that are done, by report and its time; none is scored again."""

    def __init__(self, study):
        self.study = study

    def watch(self):
        for report in self.study.path.glob("cells/*/*/report.md"):
            assert self.setdefault(str(report), report.stat().st_mtime) == report.stat().st_mtime


def processes(*words):
    """Return the processes whose command line has all these words."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has ended
            command = path.read_text(errors="replace")
            if all(word in command for word in words):
                found.append(int(path.parent.name))
    return found


def kill_one(*words):
    """Kill one of these processes as the kernel does where memory is short; return whether there is one."""
    found = processes(*words)
    with suppress(ProcessLookupError):
        if found:
            os.kill(random.choice(found), signal.SIGKILL)
    return bool(found)
