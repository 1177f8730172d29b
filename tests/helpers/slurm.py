"""The commands of Slurm for tests, as one program: jobs are processes of this machine, and `sacct` knows their states.

It understands what submitit asks for: scripts of one job or of an array, `srun`, `scancel` with a state or a signal,
`scontrol requeue` and `sacct`. A partition `none` is refused.
"""

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

_COMMANDS = ("sbatch", "srun", "scancel", "scontrol", "sacct")


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
    """Begin the tasks of a script, each with a process that watches over it."""
    text = Path(script).read_text()
    if "--partition=none" in text:
        sys.exit("sbatch: error: invalid partition specified: none")
    job = 100 + len(list(folder.glob("*.sh")))
    (folder / f"{job}.sh").write_text(text)
    found = re.search(r"--array=0-(\d+)", text)
    names = [f"{job}_{task}" for task in range(int(found[1]) + 1)] if found else [str(job)]
    for name in names:
        _note(folder, name, state="PENDING")
    # One after another, as on a cluster with room for one.
    command = [sys.executable, __file__, "node", *names]
    subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    sys.stdout.write(f"Submitted batch job {job}\n")


def node(folder, *names):
    """Run jobs to their ends, again where they were requeued."""
    for name in names:
        job, _, task = name.partition("_")
        own = {"SLURM_JOB_ID": job} | ({"SLURM_ARRAY_JOB_ID": job, "SLURM_ARRAY_TASK_ID": task} if task else {})
        while _jobs(folder)[name]["state"] in ("PENDING", "REQUEUED"):
            _note(folder, name, state="RUNNING", step=None)
            code = subprocess.run(["bash", folder / f"{job}.sh"], env={**os.environ, **own}, check=False).returncode
            state = _jobs(folder)[name]["state"]
            _note(folder, name, state=state if state == "REQUEUED" else "FAILED" if code else "COMPLETED")


def srun(folder, *args):
    """Become the step of a job, which has the signals of `scancel`."""
    options = [arg for arg in args if arg.startswith("--")]
    command = list(args)
    while command[0].startswith("--"):
        command = command[2:] if command[0] in ("--output", "--error") else command[1:]
    assert "--unbuffered" in options
    job, task = os.environ["SLURM_JOB_ID"], os.environ.get("SLURM_ARRAY_TASK_ID")
    output = args[args.index("--output") + 1]
    for mark, value in (("%A", job), ("%a", task or ""), ("%j", job), ("%t", "0")):
        output = output.replace(mark, value)
    _note(folder, f"{job}_{task}" if task else job, step=os.getpid())
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.execvp(command[0], command)


def scancel(folder, *args):
    """Signal the steps of jobs, or cancel the jobs that wait."""
    options = dict(arg[2:].split("=") for arg in args if arg.startswith("--"))
    for number in (arg for arg in args if not arg.startswith("--")):
        job = _jobs(folder)[number]
        if job["state"] in ("PENDING", "REQUEUED") and "signal" not in options:
            _note(folder, number, state="CANCELLED")
        elif "state" not in options:
            _signal(job, signal.Signals[f"SIG{options.get('signal', 'TERM')}"])


def scontrol(folder, requeue, number):
    """Put a job back into the queue."""
    assert requeue == "requeue"
    _note(folder, number, state="REQUEUED")


def sacct(folder, *args):
    """Write the states of all jobs."""
    assert args[:3] == ("-o", "JobID,State,NodeList", "--parsable2")
    rows = [f"{number}|{job['state']}|localhost" for number, job in _jobs(folder).items()]
    sys.stdout.write("\n".join(["JobID|State|NodeList", *rows]) + "\n")


if __name__ == "__main__":
    globals()[sys.argv[1]](Path(os.environ["TESTS_SLURM"]), *sys.argv[2:])
