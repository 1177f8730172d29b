"""Processor, memory and accelerators, and what bfloat16 costs on each."""

import torch

from metasearch.jobs.doctor.finding import Finding, note
from metasearch.runs.host import cores, memory
from metasearch.runs.versions import processor
from metasearch.training.machine import cpu_bf16_time


def hardware() -> list[Finding]:
    """Return what this process can compute on; changes nothing."""
    bf16 = cpu_bf16_time()
    pays = "it pays" if bf16 < 1 else "use fp32"
    return [
        Finding("processor", f"{processor()}, {cores()} cores to use"),
        Finding("threads", f"{torch.get_num_threads()}, which OMP_NUM_THREADS changes"),
        Finding("memory", _gibibytes(memory())),
        Finding("bf16 on CPU", f"matrix products take {bf16:.2f} times as long as in fp32: {pays}"),
        *_cuda(),
        Finding("mps", "available") if torch.backends.mps.is_available() else note("mps", "none here"),
    ]


def _cuda() -> list[Finding]:
    if not torch.cuda.is_available():
        built = "" if torch.version.cuda else "; this torch is built without CUDA"
        return [note("cuda", f"none here{built}")]
    found = []
    for number in range(torch.cuda.device_count()):
        known = torch.cuda.get_device_properties(number)
        # From compute capability 8 on in hardware; torch's own question is about the current device alone.
        bf16 = "fast" if known.major >= 8 else "emulated: use fp32"
        found.append(Finding(f"cuda:{number}", f"{known.name}, {_gibibytes(known.total_memory)}, bf16 {bf16}"))
    return found


def _gibibytes(count: int) -> str:
    return f"{count / 2**30:.1f} GiB"
