"""Shows what a study would do and cost."""

from metasearch.cli._live_table import clock
from metasearch.jobs.crossval.dry_run import Forecast

_GIB = 2**30
_ROOMY = 0.8
"""Share of the machine's memory above which a study is warned of."""


def shown(forecast: Forecast) -> str:
    """Return the cells and the estimate as lines."""
    known, left = forecast.estimate, {cell.name for cell in forecast.left}
    width = max((len(cell.name) for cell in forecast.cells), default=0)
    lines = []
    for cell in forecast.cells:
        cost = clock(known.seconds[cell.name]) if cell.name in known.seconds else "?" if cell.name in left else "done"
        waits = f"  after {', '.join(cell.needs)}" if cell.needs else ""
        lines.append(f"{cell.name.ljust(width)}  {cell.kind:7}  {cost:>8}{waits}")
    side = f"{forecast.jobs} at a time with {forecast.threads} threads each"
    lines += ["", f"{len(left)} of {len(forecast.cells)} cells to do, {side}"]
    lines.append(
        f"time: at most {clock(known.total)}, by one measured step of each arm; early stopping may end it before"
    )
    lines.append(f"memory: {known.memory / _GIB:.1f} GiB of {known.machine / _GIB:.1f} GiB")
    if known.unknown:
        lines.append(f"not in the estimate: {len(known.unknown)} cells of distillations")
    if known.memory > _ROOMY * known.machine:
        lines.append("warning: that may be more memory than there is; choose fewer --jobs")
    return "\n".join(lines)


def tree(forecast: Forecast) -> dict[str, object]:
    """Return the same as JSON."""
    known, left = forecast.estimate, {cell.name for cell in forecast.left}
    cells = [
        {
            "name": cell.name, "kind": cell.kind, "needs": list(cell.needs), "done": cell.name not in left,
            "seconds": known.seconds.get(cell.name),
        }
        for cell in forecast.cells
    ]  # fmt: skip
    return {"cells": cells, "seconds": known.total, "memory": known.memory, "machine": known.machine}
