"""What an installed package adds: a reader, a metric and an encoder, used without a fork; and all kinds, listed.

Each command is a process of its own, as a user's is.
"""

import json
import sys

import pytest

from helpers import forks
from helpers.packages import install
from metasearch.config import registry

READER = '''
"""Lines of id, question and answer, separated by tabs; one file a language."""

from metasearch.data.records import Candidate, Question, RetrievalData


def files(task):
    return [f"{language}.tsv" for language in task.languages]


def read(folder, task):
    rows = [
        (language, *line.split("\\t"))
        for language in task.languages
        for line in (folder / f"{language}.tsv").read_text().splitlines()
    ]
    return RetrievalData(
        tuple(Question(id, language, asked, id) for language, id, asked, _ in rows),
        tuple(Candidate(f"{id}-{language}", language, answer, id, (id,)) for language, id, _, answer in rows),
    )
'''

METRIC = '''
"""Success: whether any relevant candidate is among the first k."""

import numpy as np

from metasearch.evaluation.metrics.base import Metric

METRIC = Metric("retrieval", lambda ranks, k: np.where(ranks.hits(k) > 0, 1.0, 0.0), "required")
'''

ENCODER = '''
"""`tiny` with the weights of another seed."""

from metasearch.encoders.builtin import tiny


def build(max_length=None, seed=0):
    encoder = tiny.build(max_length, seed + 1)
    encoder.name = "theirs"
    return encoder
'''

TASK = """\
task: shop
description: of a test
kind: retrieval
source: {paper: none, url: https://example.org, licence: CC0}
reader: tab-separated
data: .
languages: [de, en]
encoder: theirs
folds: {method: kfold, k: 5}
measures: [success@3, map@20]
monitor: success@3
arrangements: {mono -> mono: [de_de -> en_en]}
"""


OFFERED = {
    "metasearch.learners": {"last-set": "outside.learner"},
    "metasearch.readers": {"tab-separated": "outside.reader"},
    "metasearch.metrics": {"success": "outside.metric"},
    "metasearch.encoders": {"theirs": "outside.encoder"},
    "metasearch.losses": {"one": "outside.loss"},
}


def metasearch(site, *args, code=0):
    """Run a command where the packages of a folder are installed, and return what it printed."""

    def call():
        sys.path.insert(0, str(site))
        registry._offered.cache_clear()
        forks.metasearch(*args)()

    found, out, errors = forks.Fork(call).finished()
    assert found == code, errors
    return errors if code else out


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    modules = {"learner": "", "reader": READER, "metric": METRIC, "encoder": ENCODER, "loss": ""}
    return install(tmp_path_factory.mktemp("package"), "outside", modules, OFFERED)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A task in the format of their reader."""
    folder = tmp_path_factory.mktemp("shop")
    (folder / "shop.yaml").write_text(TASK)
    for language, asked in (("de", "wo liegt"), ("en", "where is")):
        rows = [f"{i}\t{asked} {i}?\t{language} {i} {i * i}" for i in range(30)]
        (folder / f"{language}.tsv").write_text("\n".join(rows) + "\n")
    return folder


def test_ls_lists_plug_ins_with_the_package_they_are_from(site):
    lines = [line.split(maxsplit=1) for line in metasearch(site, "ls").splitlines()]
    for name, module in (entry for group in OFFERED.values() for entry in group.items()):
        assert [name, f"from package outside: {module}"] in lines


def test_their_task_is_scored_by_their_metric_on_their_encoder_and_data(site, folder):
    printed = metasearch(site, "evaluate", "--task", "shop", "--include", folder, "--split", "all", "--json")
    rows = json.loads(printed)["results"]
    assert {row["measure"] for row in rows} == {"success@3", "map@20"}
    assert {row["encoder"] for row in rows} == {"theirs"}
    assert {row["count"] for row in rows if row["language"] != "mean"} == {30}
    success = {row["language"]: row["value"] for row in rows if row["measure"] == "success@3"}
    assert 0 < success["de"] <= 1
    assert success["de"] * 30 == pytest.approx(round(success["de"] * 30))


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("import nowhere_at_all", "cannot be imported: ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("METRIC = len", "does not define METRIC.kind"),
    ],
)
def test_a_plug_in_that_does_not_work_is_named_with_its_package(tmp_path, source, says):
    site = install(tmp_path, "faulty", {"metric": source}, {"metasearch.metrics": {"wrong": "faulty.metric"}})
    (tmp_path / "shop.yaml").write_text(TASK.replace("success", "wrong").replace("tab-separated", "csv"))
    said = metasearch(site, "show", "shop", "--mode", "mono-mono", "--include", tmp_path, code=2)
    assert said.endswith(f"metric 'wrong' of package faulty (faulty.metric) {says}\n")
    assert said.count("\n") == 1
    # What nobody asks for does no harm.
    assert "from package faulty: faulty.metric" in metasearch(site, "ls", "metrics")


def test_a_name_that_is_taken_is_refused(tmp_path):
    site = install(tmp_path, "greedy", {"learner": ""}, {"metasearch.learners": {"maml": "greedy.learner"}})
    said = metasearch(site, "ls", "learners", code=2)
    assert said == (
        "metasearch: error: learner 'maml' of package greedy (greedy.learner) has a duplicate name: "
        "metasearch itself has one\n"
    )
