"""The registry of kinds of folders: its entries exist, and its names agree with the code behind them."""

from dataclasses import fields

import pytest

from metasearch.compress.onnx_encoder import FILE
from metasearch.pipelines.folders import CONFIGURED, OTHERS, SHARDS, _load
from metasearch.search.query.shards import PLAN

KINDS = [*CONFIGURED.values(), SHARDS, *OTHERS]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.title)
def test_every_entry_names_something_that_can_be_called(kind):
    entries = [getattr(kind, each.name) for each in fields(kind) if each.name not in ("title", "files")]
    assert all(callable(_load(entry)) for entry in entries if entry)


def test_files_that_show_a_kind_are_the_ones_that_it_writes():
    assert SHARDS.files == (PLAN,)
    assert [kind.title for kind in OTHERS if FILE in kind.files] == ["an export to ONNX"]
