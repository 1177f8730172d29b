"""A real Slurm of one node, for tests: its two daemons as children of this process, without accounting."""

import getpass
import os
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager

import pytest

_PROGRAMS = ("slurmctld", "slurmd", "sbatch", "squeue", "scancel")
_PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"
_CONF = """\
ClusterName=tests
SlurmctldHost={host}
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
CredType=cred/none
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0
ReturnToService=2
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
NodeName={host} CPUs=2 RealMemory=4000 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def slurm(*command):
    """Run a command of Slurm; return its output."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@contextmanager
def cluster(folder):
    """Start the daemons with `SLURM_CONF` set; skip the test where Slurm is not installed."""
    if missing := [name for name in _PROGRAMS if shutil.which(name, path=_PATH) is None]:
        pytest.skip(f"Slurm is not installed ({', '.join(missing)}): apt-get install slurm-wlm")
    for name in ("state", "spool"):
        (folder / name).mkdir()
    with socket.socket() as one, socket.socket() as other:
        one.bind(("", 0))
        other.bind(("", 0))
        ports = [one.getsockname()[1], other.getsockname()[1]]
    conf = folder / "slurm.conf"
    conf.write_text(_CONF.format(host="localhost", ports=ports, user=getpass.getuser(), folder=folder))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", str(conf))
        patch.setenv("PATH", _PATH)
        daemons = []
        try:
            for command in (["slurmctld", "-D"], ["slurmd", "-D", "-N", "localhost"]):
                daemons.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            _wait_until(lambda: slurm("sinfo", "--noheader", "--format=%T").strip() == "idle", folder)
            yield
            slurm("scancel", "--full", "--signal=KILL", f"--user={getpass.getuser()}")
            _wait_until(lambda: not slurm("squeue", "--noheader"), folder)
        finally:
            for daemon in reversed(daemons):
                daemon.terminate()
                daemon.wait()


def _wait_until(ready, folder):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            if ready():
                return
        except subprocess.CalledProcessError:  # a daemon that does not answer yet
            pass
        time.sleep(0.2)
    logs = "\n".join(path.read_text(errors="replace")[-2000:] for path in folder.glob("*.log"))
    pytest.fail(f"Slurm's daemons do not come up:\n{logs}")
