"""A real cluster of Slurm on this machine: munged, slurmctld and two slurmd, started by hand, without accounting.

`python tests/helpers/slurm_cluster.py` installs Debian's packages where they are missing.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

PACKAGES = ("munge", "slurm-wlm")
_DAEMONS = ("munged", "slurmctld", "slurmd", "sbatch")
_CONFIGURATION = """
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmctldPort={ports[0]}
AuthType=auth/munge
# A requeued job begins once its old credential has expired, by default after two minutes.
AuthInfo=socket={folder}/munge.socket,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=2,bf_interval=2
KillWait=20
ReturnToService=2
NodeName=node1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=1
NodeName=node2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=1
PartitionName=tests Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def missing():
    """Return what a real cluster lacks here, or empty."""
    if lacking := [name for name in _DAEMONS if not shutil.which(name)]:
        return f"{', '.join(lacking)} not found: as root on Debian, python tests/helpers/slurm_cluster.py installs them"
    return "" if os.geteuid() == 0 else "the daemons of Slurm need root"


def install():
    """Install what is missing, without starting a service of the system."""
    if any(not shutil.which(name) for name in _DAEMONS):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(["apt-get", "update", "-q"], check=True)
        command = ["apt-get", "install", "-y", "-q", "--no-install-recommends", *PACKAGES]
        subprocess.run(command, check=True, env=environment)


def slurm(*command):
    """Run a command of Slurm; return what it writes."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


class Cluster:
    """The daemons; `SLURM_CONF` in the environment names their configuration."""

    def __init__(self, folder):
        self.folder, self.nodes = folder, ("node1", "node2")
        self.configuration = folder / "slurm.conf"
        ports = _free_ports(3)
        self._text = _CONFIGURATION.format(host=socket.gethostname().partition(".")[0], folder=folder, ports=ports)

    def begin(self):
        """Start all daemons and wait for the nodes."""
        (self.folder / "state").mkdir()
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        self.configuration.write_text(self._text)
        own = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
        options = [f"--{name}={self.folder}/munge.{end}" for name, end in own.items()]
        subprocess.run(["munged", "--force", *options], check=True, capture_output=True)
        self.begin_controller()
        for node in self.nodes:
            subprocess.run(["slurmd", "-N", node], check=True)
        self.until_idle()

    def begin_controller(self, *more):
        """Start the controller, with more lines of configuration, and wait until it answers."""
        self.configuration.write_text("\n".join([self._text, *more, ""]))
        subprocess.run(["slurmctld"], check=True)
        wait(lambda: subprocess.run(["scontrol", "ping"], capture_output=True, check=False).returncode == 0)

    def configure(self, *lines):
        """Restart the controller in good order, with more lines of configuration."""
        self._kill("slurmctld.pid", signal.SIGTERM)
        self.begin_controller(*lines)

    def kill_controller(self):
        """Kill the controller as `kill -9` does."""
        self._kill("slurmctld.pid", signal.SIGKILL)

    def resume(self, node):
        """Take a node into service again that was set to DOWN; one that has registered since may be there already."""
        subprocess.run(["scontrol", "update", f"nodename={node}", "state=resume"], capture_output=True, check=False)
        self.until_idle()

    def until_idle(self):
        """Wait until both nodes are idle."""
        wait(lambda: slurm("sinfo", "--noheader", "--format=%T %D").split() == ["idle", "2"])

    def clear(self):
        """Cancel all jobs, also one that ended while the controller was killed and is taken for a running one."""
        subprocess.run(["scancel", "--user=root"], capture_output=True, check=False)
        wait(lambda: not slurm("squeue", "--noheader"))

    def end(self):
        """End all jobs and daemons."""
        try:
            self.clear()
        finally:
            for name in ("slurmctld.pid", *(f"{node}.pid" for node in self.nodes), "munge.pid"):
                self._kill(name, signal.SIGTERM)

    def _kill(self, name, number):
        try:
            process = int((self.folder / name).read_text())
            os.kill(process, number)
        except (FileNotFoundError, ProcessLookupError):
            return
        wait(lambda: not _alive(process))


@contextmanager
def cluster():
    """Yield a running cluster, which `SLURM_CONF` names meanwhile."""
    # Not below pytest's folder: the path of a socket may have 107 bytes.
    here = Cluster(Path(mkdtemp(prefix="slurm-")))
    before = os.environ.get("SLURM_CONF")
    os.environ["SLURM_CONF"] = str(here.configuration)
    try:
        here.begin()
        yield here
    finally:
        here.end()
        os.environ.pop("SLURM_CONF")
        os.environ.update({} if before is None else {"SLURM_CONF": before})
        shutil.rmtree(here.folder, ignore_errors=True)


def _free_ports(count):
    """Return ports that nothing listens on."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _alive(process):
    """Whether a process is there, and not a zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait(reached, seconds=60):
    """Wait until something is so."""
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline, "a daemon of Slurm did not get there"
        time.sleep(0.2)


if __name__ == "__main__":
    install()
    sys.stdout.write(missing() or subprocess.run(["slurmctld", "-V"], capture_output=True, text=True).stdout)
