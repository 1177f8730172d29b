"""Indexes by jobs while jobs and runners are killed at random moments."""

import json
import random

import pytest

from helpers.chaos import Chaos, kill_one
from helpers.commands import metasearch
from helpers.indexes import content
from metasearch.search.query.shards import FOLDER

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(3600)]


class Parts(dict):
    """How many texts each part had that was encoded; none is encoded twice."""

    def __init__(self, index):
        self.log = index / FOLDER / "done.jsonl"

    def watch(self):
        try:
            lines = self.log.read_text().splitlines(keepends=True)
        except FileNotFoundError:  # not yet begun, or done
            return
        rows = [json.loads(line) for line in lines if line.endswith("\n")]
        self.update((row["part"], row["texts"]) for row in rows)
        assert len({row["part"] for row in rows}) == len(rows)


def test_every_part_is_encoded_once_and_the_index_is_that_of_one_process(tmp_path):
    chaos, rounds, parts = Chaos(), 0, 0
    documents = tmp_path / "docs.jsonl"
    with documents.open("w") as file:
        while not chaos.over:
            first = rounds * 2500
            rows = (f'{{"text": "Text {n} {"and more " * (n * 7 % 11)}"}}\n' for n in range(first, first + 2500))
            file.writelines(rows)
            file.flush()
            rounds += 1
            common = ["index", documents, "--encoder=mini", "--device=cpu"]
            one, code = tmp_path / "one", None
            done = Parts(one)

            def disturb(runner, shards=str(one / FOLDER)):
                if random.random() < 0.7:
                    return "job" if kill_one("submitit.core._submit", shards) else "nothing"
                runner.killed()
                return "runner"

            while code != 0:
                code = chaos.run([*common, "-o", one, "--launcher=local", "--jobs=2"], disturb, (0.5, 8), done.watch)
            parts += len(done)
            metasearch(*common, "-o", tmp_path / "plain")
            assert content(one) == content(tmp_path / "plain")
            assert sorted(path.name for path in one.iterdir()) == [".lock", "index.sqlite"]
    assert set(chaos.ends) <= {0, 7, -9}
    print(f"\n{chaos}; {rounds} updates of 2,500 texts, {parts} parts")  # noqa: T201
