"""Shows what a study would do and cost."""

import os

from metasearch.cli._live_table import clock
from metasearch.jobs.crossval.estimate import Forecast

_GIB = 2**30
_MACHINE = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
"""Bytes of memory of this machine."""

_ROOMY = 0.8
"""Share of the machine's memory above which a study is warned of."""


def shown(forecast: Forecast) -> str:
    """Return the cells and the estimate as lines."""
    seconds, left = forecast.seconds, {cell.name for cell in forecast.left}
    width = max((len(cell.name) for cell in forecast.cells), default=0)
    lines = []
    for cell in forecast.cells:
        cost = clock(seconds[cell.name]) if cell.name in seconds else "?" if cell.name in left else "done"
        waits = f"  after {', '.join(cell.needs)}" if cell.needs else ""
        lines.append(f"{cell.name.ljust(width)}  {cell.kind:7}  {cost:>8}{waits}")
    lines += [
        "",
        f"{len(left)} of {len(forecast.cells)} cells to do, {forecast.jobs} at a time with {forecast.threads} threads "
        "each",
        f"time: about {clock(forecast.total)}, by one measured step of each arm; early stopping may end it before",
        f"memory: {forecast.memory / _GIB:.1f} GiB "
        + (f"of {_MACHINE / _GIB:.1f} GiB" if forecast.together else "at most for a cell"),
    ]
    if unknown := len(left - seconds.keys()):
        lines.append(f"not in the estimate: {unknown} cells of distillations")
    if forecast.together and forecast.memory > _ROOMY * _MACHINE:
        lines.append("warning: that may be more memory than there is; choose fewer --jobs")
    return "\n".join(lines)


def tree(forecast: Forecast) -> dict[str, object]:
    """Return the same as JSON."""
    seconds, left = forecast.seconds, {cell.name for cell in forecast.left}
    cells = [
        {
            "name": cell.name, "kind": cell.kind, "needs": list(cell.needs), "done": cell.name not in left,
            "seconds": seconds.get(cell.name),
        }
        for cell in forecast.cells
    ]  # fmt: skip
    return {"cells": cells, "seconds": forecast.total, "memory": forecast.memory, "machine": _MACHINE}
