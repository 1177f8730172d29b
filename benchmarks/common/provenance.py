"""The code and the machine that a row comes from."""

import os
import subprocess

import torch

from benchmarks.common.rows import RESULTS, Row
from metasearch.training.hardware import used


def provenance() -> Row:
    """Return the revision of the code and the machine that figures come from."""
    command = ["git", "-C", str(RESULTS), "describe", "--always", "--dirty"]
    revision = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    facts = used(0, torch.device("cpu"))
    hardware = {key: facts[key] for key in ("processor", "cores", "system")}
    load = round(os.getloadavg()[0], 1)
    return {"revision": revision or "unknown", "machine": {**hardware, "torch": torch.__version__, "load": load}}
