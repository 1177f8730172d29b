"""The script of a Slurm array, of which each task is a cell. It lies in the study's folder, to be read."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from metasearch.config.launchers import SBATCH, LauncherConfig
from metasearch.pipelines.study.folder import StudyFolder
from metasearch.pipelines.study.process import THREADS

BEFORE_SECONDS = 120
"""How long before its time limit a cell is asked to save a checkpoint and end; Slurm may be a minute early."""
STOP = "USR1"
"""The signal by which a cell is asked that. Not SIGTERM, which Slurm sends when it cancels a job."""
STOPPED = "stopped"
"""What stands behind the exit code of a cell that was."""

_SCRIPT = """\
#!/bin/bash
# Cells of a study, one a task of the array. `metasearch crossval` wrote this and handed it in as:
#   {submitted}
# Each cell writes to cells/NAME.log, and its exit code to the file that is `code` here.

study={study}
cells=(
{cells}
)
cell=${{cells[SLURM_ARRAY_TASK_ID]}}
code="$study"/submitted/{token}_"$SLURM_ARRAY_TASK_ID".code
# A job that Slurm has put back into its queue begins once more.
rm -f "$code"
exec >> "$study/cells/$cell.log" 2>&1 < /dev/null
{exports}

# Slurm sends this some time before the time limit, and `metasearch crossval` on Ctrl-C.
trap 'asked=" {stopped}"; [ -z "$cell_process" ] || kill -TERM "$cell_process"' {stop}
# Where Slurm cancels the job, the cell gets the signal itself, and this waits until it has saved its checkpoint.
trap : TERM
{python} -m metasearch resume "$study/cells/$cell" --cell{trust} &
cell_process=$!
[ -z "$asked" ] || kill -TERM "$cell_process"
while wait "$cell_process"; ended=$?; kill -0 "$cell_process" 2> /dev/null; do :; done
# Whole or not at all: it is read while this writes.
echo "$ended$asked" > "$code.new" && mv "$code.new" "$code"
exit "$ended"
"""


def sbatch_options(place: LauncherConfig, folder: Path, token: str, count: int, threads: int) -> list[str]:
    """Return the options of `sbatch` for an array of so many cells, whose files lie in a folder."""
    asked = dict(place.settings)
    before = asked.get("before", BEFORE_SECONDS)
    options = {
        "job-name": token,
        "array": f"0-{count - 1}",
        "cpus-per-task": asked.get("cpus", threads),
        "signal": f"B:{STOP}@{before}",
        # Slurm fills in names for what begins with %, in the folder's path, too.
        "output": f"{str(folder).replace('%', '%%')}/{token}_%a.out",
        "open-mode": "append",
    }
    if gpus := int(asked.get("gpus", 0)):
        options["gres"] = f"gpu:{gpus}"
    if "memory" in asked:
        options["mem"] = asked["memory"]
    options |= {name: asked[name] for name in SBATCH if name in asked}
    # Slurm itself begins a cell once more whose node died or was wanted for another job.
    return ["--parsable", "--requeue", *(f"--{name}={value}" for name, value in options.items())]


def script_of(
    study: StudyFolder, token: str, names: Sequence[str], submitted: Sequence[str], threads: int, trust: bool
) -> str:
    """Return the script of an array.

    Args:
        study: whose cells they are.
        token: name of the array.
        names: of the cells, one a task.
        submitted: the command by which it is handed in.
        threads: of each cell.
        trust: run code that comes with the encoder.
    """
    return _SCRIPT.format(
        submitted=shlex.join(submitted),
        study=shlex.quote(str(study.path)),
        cells="\n".join(f"  {shlex.quote(name)}" for name in names),
        token=token,
        exports="\n".join(f"export {name}={value}" for name, value in [*((n, threads) for n in THREADS), *_EXPORTS]),
        stop=STOP,
        stopped=STOPPED,
        python=shlex.quote(sys.executable),
        trust=" --trust-remote-code" if trust else "",
    )


_EXPORTS = (("PYTHONUNBUFFERED", 1),)
