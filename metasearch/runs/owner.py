"""A folder that one process has to itself, wherever the others run that see it.

The lock of `metasearch.files.held` holds on one machine. On a file system that machines share it may not: NFS, Lustre
and others can be mounted so that `flock` is each machine's own. So the owner of a run or study also keeps a file there,
`.owner`, with its host and process, and touches it every few seconds. Whoever else wants the folder watches the file by
a clock of its own, so that clocks which differ between machines, or that of the file server, do not matter.
"""

import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import LeaseCompromise, SoftFileLease, Timeout

from metasearch.errors import RunFolderError
from metasearch.files import OWNER, held, unwritable

BEAT_SECONDS = 10.0
"""How often an owner gives a sign."""
STALE_SECONDS = 60.0
"""After this time without a sign an owner on another machine counts as dead. All machines must have the same."""

_LOOK_SECONDS = 0.5

log = logging.getLogger(__name__)


@contextmanager
def owned(folder: Path, busy: str, patience: float = 0) -> Iterator[None]:
    """Make a folder and keep the processes of this and other machines out of it, as `metasearch.files.held`.

    The folder of a process that died on this machine is free at once; of one that died elsewhere, or was cut off from
    the file system, after `STALE_SECONDS`. A process that lost its folder so, and wakes up, ends at its next sign.

    Args:
        folder: to have alone.
        busy: what is said where another process has it; where that is elsewhere, its host and number follow.
        patience: seconds to wait for that process to end.

    Raises:
        RunFolderError: another process has it, or it cannot be written.
    """
    with held(folder, busy, patience):
        lease = SoftFileLease(
            folder / OWNER, timeout=0, lease_duration=STALE_SECONDS, heartbeat_interval=BEAT_SECONDS,
            on_compromise=_leave,
        )  # fmt: skip
        try:
            _acquire(lease, folder, busy, patience)
        except OSError as error:
            raise unwritable(folder, error) from None
        try:
            yield
        finally:
            lease.release()


def _acquire(lease: SoftFileLease, folder: Path, busy: str, patience: float) -> None:
    """Wait until an owner elsewhere has let go of a folder or is dead; where it lives, not longer than `patience`."""
    began, first, other = time.monotonic(), None, ""
    while True:
        try:
            lease.acquire()
            break
        except Timeout:
            # None where it ended in between.
            owner = lease.owner
        if owner is not None:
            sign = (owner.token, _touched(folder / OWNER))
            if first is None:
                first, other = sign, f"process {owner.pid} on {owner.hostname}"
                log.info(f"{folder} is {other}'s; waiting to see whether that is still at work")
            waited = time.monotonic() - began
            # Two signs, and so one while this waited: it lives. So does what never grows stale, for all that is known.
            if waited >= patience and (sign != first or waited > 2 * STALE_SECONDS):
                raise RunFolderError(f"{busy} ({other})")
        time.sleep(_LOOK_SECONDS)
    if other and time.monotonic() - began >= STALE_SECONDS:
        log.warning(f"{folder} is taken over from {other}, which gave no sign for {STALE_SECONDS:.0f} seconds")


def _touched(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def _leave(lost: LeaseCompromise) -> None:
    """End this process, which another one took for dead: whatever it wrote from now on would mix with the other's."""
    # No exception and no cleaning up, which would write.
    said = f"metasearch: error: {Path(lost.lock_file).parent}: another process has taken over; this one ends\n"
    try:
        os.write(2, said.encode())
    finally:
        os._exit(RunFolderError.exit_code)
