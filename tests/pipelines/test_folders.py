"""The registry of kinds of folders: its entries exist, and its names agree with the code behind them."""

import pytest

from metasearch.pipelines import folders
from metasearch.pipelines.folders import ENTRIES, load_entry
from metasearch.search.query import shards

NAMED = [
    value
    for value in vars(folders).values()
    if isinstance(value, str) and value.startswith("metasearch.") and ":" in value
]


@pytest.mark.parametrize("entry", [*ENTRIES.values(), *NAMED])
def test_every_entry_names_something_that_can_be_called(entry):
    assert callable(load_entry(entry))


def test_the_file_that_shows_shards_is_the_one_that_they_have():
    assert len(NAMED) == 5
    assert folders.PLAN == shards.PLAN
