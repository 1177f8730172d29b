"""Jobs that take turns: memory and time of an outer step of each, beside those of the first."""

from collections.abc import Mapping
from pathlib import Path
from statistics import median

from benchmarks.common.clock import Seconds
from benchmarks.common.rows import Row
from benchmarks.speed.race import Job, running


def in_turns(jobs: Mapping[str, Job], rounds: int, apart: bool, folder: Path) -> dict[str, Row]:
    """Return for each job, by name, memory, seconds a step, and times those of the first job.

    Every round runs each job once, every other one in reverse. Figures are medians of the rounds, ratios those of
    ratios within a round. The first gradient of the last round is left in `NAME.pt` of the folder.
    """
    names = list(jobs)
    seconds: dict[str, list[Seconds]] = {name: [] for name in names}
    memory: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    for number in range(rounds):
        for name in names if number % 2 == 0 else names[::-1]:
            with running(jobs[name], apart) as ready:
                memory[name].append(ready.first(folder / f"{name}.pt"))
                seconds[name].append(ready.step())
                memory[name][-1]["tensors"] = ready.tensors()
    return {
        name: {
            **{
                f"{what}_mib": round(median(peak[found] for peak in memory[name]), 1)
                for what, found in (("tensors", "tensors"), ("process", "gradient"))
            },
            "seconds": round(median(wall for wall, _ in seconds[name]), 3),
            **{
                what: round(median(a[i] / b[i] for a, b in zip(seconds[name], seconds[names[0]], strict=True)), 3)
                for i, what in enumerate(("times", "cpu"))
            },
        }
        for name in names
    }
