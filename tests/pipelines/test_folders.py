"""The registry of kinds of folders: its entries exist, and its names agree with the code behind them."""

import pytest

from metasearch.pipelines import folders
from metasearch.pipelines.folders import ENTRIES, load_entry

NAMED = [
    value
    for value in vars(folders).values()
    if isinstance(value, str) and value.startswith("metasearch.") and ":" in value
]


@pytest.mark.parametrize("entry", [*ENTRIES.values(), *NAMED])
def test_every_entry_names_something_that_can_be_called(entry):
    assert len(NAMED) == 4
    assert callable(load_entry(entry))
