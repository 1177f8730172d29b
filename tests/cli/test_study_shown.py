"""What the terminal shows of a study: as many lines as it has at most."""

import pytest
from rich.console import Console

from helpers.configs import nested
from metasearch.cli import _live_table
from metasearch.config.run import ScoreConfig
from metasearch.pipelines.study.plan import Cell
from metasearch.pipelines.study.status import StatusBoard


def board(count, **states):
    """Return a board of cells `c0`, `c1`, ..., those that are named in another state."""
    config = nested(ScoreConfig, task="demo", encoder="tiny")
    found = StatusBoard.of([Cell(f"c{i}", "score", config, f"c{i}") for i in range(count)], ())
    for name, state in states.items():
        found.cells[name].state = state
    return found


def drawn(shown, height=24):
    """Return what a table of a study is on a terminal of so many lines."""
    console = Console(width=80, height=height, force_terminal=True, color_system=None)
    with console.capture() as capture:
        console.print(_live_table.table(shown, max(1, height - _live_table._MARGIN)))
    return capture.get().splitlines()


@pytest.mark.parametrize("stopping", [False, True])
@pytest.mark.parametrize("height", [8, 24])
def test_a_table_is_never_taller_than_the_terminal(height, stopping):
    shown = board(100, c50="running", c98="failed")
    shown.stopping = stopping
    lines = drawn(shown, height)
    assert len(lines) < height
    assert [line.split()[:2] for line in lines if "running" in line or "failed" in line][:2] == [
        ["c50", "running"],
        ["c98", "failed"],
    ]
