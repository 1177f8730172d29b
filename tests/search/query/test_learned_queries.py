"""An index learns the centre of queries from queries without labels, and keeps their number and sum."""

import json

import numpy as np
import pytest

from helpers.commands import metasearch
from helpers.files import write_all
from metasearch.search.index.local import LocalStore
from metasearch.search.index.maps import shrunk_centre
from metasearch.search.indexes import index_documents, open_searcher

QUERIES = [f"where is the {thing}" for thing in ("key", "bus", "cat", "mill", "boat", "lamp", "bread")]


def write_pages(folder, numbers):
    return write_all(folder / "pages", {f"{i}.txt": f"Page {i * 7919} is about the number {i}." for i in numbers})


@pytest.fixture
def index(tmp_path):
    index_documents([write_pages(tmp_path, range(24))], tmp_path / "index", "tiny", device="cpu")
    return tmp_path / "index"


def learned(index):
    return LocalStore.open(index).plan.learned


def write(path, queries):
    path.write_text("\n".join(queries), encoding="utf-8")
    return path


def test_two_files_are_learned_as_one_and_move_the_centre_of_searches(index, tmp_path):
    before = LocalStore.open(index).plan
    assert before.learned is None
    said = metasearch("adapt", index, write(tmp_path / "a.txt", [*QUERIES[:5], "", QUERIES[0]])).stdout
    assert said == "queries learned from: 5 now, 5 in all\n"
    rows = "\n".join(json.dumps({"query": each}) for each in (*QUERIES[5:], "a", "b", "c"))
    (tmp_path / "b.jsonl").write_text(rows, encoding="utf-8")
    assert metasearch("adapt", index, tmp_path / "b.jsonl").stdout == "queries learned from: 5 now, 10 in all\n"
    searcher = open_searcher(index, "cpu")
    vectors = searcher.encoder.encode([*QUERIES, "a", "b", "c"], "question").astype(np.float64)
    plan = searcher.store.plan
    assert plan.learned.count == 10
    np.testing.assert_allclose(plan.learned.total, vectors.sum(0), atol=1e-5)
    expected = shrunk_centre(before.centre, vectors.mean(0), 10)
    np.testing.assert_allclose(plan.query_centre, expected, atol=1e-6)
    np.testing.assert_allclose(searcher.encode_queries(["key"])[0], plan.projection(
        searcher.encoder.encode(["key"], "question"), expected)[0], atol=1e-5)  # fmt: skip
    assert "queries learned from: 10, the last on 20" in metasearch("adapt", index, "--list").stdout
    assert metasearch("adapt", index, "--forget-queries").stdout == "no queries\n"
    assert learned(index) is None
    np.testing.assert_array_equal(LocalStore.open(index).plan.query_centre, before.centre)


def test_they_outlive_a_new_estimate(index, tmp_path):
    metasearch("adapt", index, write(tmp_path / "a.txt", QUERIES))
    total = learned(index).total
    index_documents([write_pages(tmp_path, range(24, 60))], index, device="cpu")
    assert LocalStore.open(index).plan.sampled == 60
    np.testing.assert_array_equal(learned(index).total, total)


def test_too_few_a_wrong_column_no_centre_and_a_copy_are_one_line_each(index, tmp_path):
    index_documents([tmp_path / "pages"], tmp_path / "plain", "tiny", {"neutral": False}, device="cpu")
    few, good = write(tmp_path / "few.txt", QUERIES[:4]), write(tmp_path / "good.txt", QUERIES)
    table = write(tmp_path / "table.csv", ["question", *QUERIES])
    for words, code, message in (
        ((index, few), 3, "4 different queries; the mean of queries needs 5 or more"),
        ((index, table), 3, "no column 'query'. Known: question. Name yours: --columns query=COLUMN"),
        ((index, tmp_path / "goood.txt"), 3, "no such file. Did you mean 'good.txt'?"),
        ((tmp_path / "plain", good), 3, "no centre of queries: it was made with --no-neutral"),
        (("postgresql://localhost/shop/help", good), 2, "expected the folder of an index, not the address"),
        ((index, good, "--folds", 5), 2, "there are no labels; they are for adapters"),
    ):
        assert message in metasearch("adapt", *words, code=code).stderr
    assert learned(index) is None
    assert metasearch("adapt", index, table, "--columns", "query=question").stdout.endswith("7 in all\n")
