"""The commands of Slurm for tests without one, as one program: jobs are processes of this machine.

It understands what is asked for: scripts, `srun`, `scancel` with a state or a signal, `scontrol requeue`, `squeue`. A
partition `none` is refused. `helpers/slurm_cluster.py` starts the real one.
"""

import fcntl
import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

_COMMANDS = ("sbatch", "srun", "scancel", "scontrol", "squeue")


@contextmanager
def cluster(folder):
    """Put the commands on the path; jobs that are left are killed at the end."""
    for name in _COMMANDS:
        (folder / name).write_text(f'#!/bin/sh\nexec {sys.executable} {__file__} {name} "$@"\n')
        (folder / name).chmod(0o755)
    import pytest  # the commands themselves need none

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
        patch.setenv("TESTS_SLURM", str(folder))
        for name in ("SLURM_CONF", "TESTS_SLURM_CONF"):
            patch.setenv(name, str(folder / "slurm.conf"))
        yield folder
        for job in _jobs(folder).values():
            _signal(job, signal.SIGKILL)


def running(folder):
    """Return the numbers of the jobs that run."""
    return [number for number, job in _jobs(folder).items() if job["state"] == "RUNNING"]


def _jobs(folder):
    return {path.stem: json.loads(path.read_text()) for path in Path(folder).glob("*.json")}


def _note(folder, number, **changes):
    path = Path(folder) / f"{number}.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    (new := path.with_suffix(".new")).write_text(json.dumps({**known, **changes}))
    new.replace(path)


def _signal(job, number):
    if job["state"] == "RUNNING" and job.get("step"):
        os.kill(job["step"], number)


def sbatch(folder, script):
    """Begin a job, with a process that watches over it; `SLURM_CONF` has to be as the caller has it."""
    text = Path(script).read_text()
    if os.environ.get("SLURM_CONF") != os.environ.get("TESTS_SLURM_CONF"):
        sys.exit("sbatch: fatal: Could not establish a configuration source")
    if "--partition=none" in text:
        sys.exit("sbatch: error: invalid partition specified: none")
    number = str(100 + len(list(folder.glob("*.sh"))))
    (folder / f"{number}.sh").write_text(text)
    _note(folder, number, state="PENDING", script=script)
    command = [sys.executable, __file__, "node", number]
    subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    sys.stdout.write(f"Submitted batch job {number}\n")


def node(folder, number):
    """Run a job to its end, again where it was requeued; one job at a time, as on a cluster with room for one."""
    with (folder / "room").open("w") as room:
        fcntl.flock(room, fcntl.LOCK_EX)
        while _jobs(folder)[number]["state"] == "PENDING":
            _note(folder, number, state="RUNNING", step=None)
            environment = {**os.environ, "SLURM_JOB_ID": number}
            code = subprocess.run(["bash", folder / f"{number}.sh"], env=environment, check=False).returncode
            if _jobs(folder)[number]["state"] != "PENDING":
                _note(folder, number, state="FAILED" if code else "COMPLETED")


def srun(folder, *args):
    """Become the step of a job, which has the signals of `scancel`."""
    options = [arg for arg in args if arg.startswith("--")]
    command = list(args)
    while command[0].startswith("--"):
        command = command[2:] if command[0] in ("--output", "--error") else command[1:]
    assert "--unbuffered" in options
    number = os.environ["SLURM_JOB_ID"]
    output = args[args.index("--output") + 1].replace("%j", number).replace("%t", "0")
    _note(folder, number, step=os.getpid())
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.execvp(command[0], command)


def scancel(folder, *args):
    """Signal the steps of jobs, or cancel the jobs that wait."""
    options = dict(arg[2:].split("=") for arg in args if arg.startswith("--"))
    for number in (arg for arg in args if not arg.startswith("--")):
        job = _jobs(folder)[number]
        if job["state"] == "PENDING" and "signal" not in options:
            _note(folder, number, state="CANCELLED")
        elif "state" not in options:
            _signal(job, signal.Signals[f"SIG{options.get('signal', 'TERM')}"])


def scontrol(folder, requeue, number):
    """Put a job back into the queue."""
    assert requeue == "requeue"
    _note(folder, number, state="PENDING")


def squeue(folder, *args):
    """Write the states of all jobs."""
    assert args == ("--noheader", "--states=all", f"--user={os.getuid()}", "--format=%i|%T|%o")
    for number, job in _jobs(folder).items():
        sys.stdout.write(f"{number}|{job['state']}|{job['script']}\n")


if __name__ == "__main__":
    globals()[sys.argv[1]](Path(os.environ["TESTS_SLURM"]), *sys.argv[2:])
