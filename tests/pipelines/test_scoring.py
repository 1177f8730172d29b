"""An encoder is scored once in a run folder, what is kept of each question stands beside its scores, one at a time."""

import pytest

from helpers.commands import metasearch
from helpers.configs import nested
from helpers.formats import declared, translation
from metasearch.config.run import ScoreConfig
from metasearch.data.benchmark import load_benchmark
from metasearch.evaluation.study.read import read_study
from metasearch.pipelines.folders import open_run
from metasearch.pipelines.score import ScoreRun
from metasearch.runs.folder import RunFolder
from metasearch.runs.per_query_results import load, query_results_path
from metasearch.runs.versions import versions


def scored(folder, **asked):
    """Score in a new run folder."""
    config = nested(ScoreConfig, encoder="tiny", **asked)
    ScoreRun(config, folder).execute()
    return RunFolder(folder), config


@pytest.fixture(scope="module")
def similarity(tmp_path_factory):
    return scored(tmp_path_factory.mktemp("scores") / "run", task="demo-sts", fold=1, fold_seed=4, seed=2)


@pytest.fixture
def copy(similarity, tmp_path):
    """Return the files of a run of which the last was not written, and what its files were."""
    files, config = similarity
    new = RunFolder.create(tmp_path / "copy", config, load_benchmark("demo-sts").data.fingerprint)
    (new.path / "queries").mkdir()
    for name in NAMES:
        (new.path / name).write_bytes((files.path / name).read_bytes())
    return new, config


NAMES = ("results.jsonl", "queries/demo-sts.zero-shot.test.npz")


def contents(files):
    return [(files.path / name).read_bytes() for name in NAMES]


def test_every_score_says_of_what_it_is(similarity):
    files, _ = similarity
    benchmark = load_benchmark("demo-sts", fold=1, fold_seed=4)
    facts = {"task": "demo-sts", "encoder": "tiny", "fold": 1, "fold_seed": 4, "seed": 2, "mode": None, "recipe": None}
    facts |= {"learner": "zero-shot", "step": 0, "data": benchmark.data.fingerprint, "versions": versions()}
    rows = files.results()
    assert all(facts.items() <= row.items() for row in rows)
    pairs = 6  # and their mean, by two measures on two parts
    assert [row["split"] for row in rows] == ["dev"] * (pairs + 1) * 2 + ["test"] * (pairs + 1) * 2


def test_what_was_predicted_is_kept_with_its_gold(similarity):
    files, _ = similarity
    kept, facts = load(files.path / NAMES[1])
    test = load_benchmark("demo-sts", fold=1, fold_seed=4).split.test
    assert facts["fold"] == 1
    for (name, pool, pair, _), values in kept.columns.items():
        own = [p for p in test.pairs if p.pair == pair]
        assert (pool, len(values)) == ("pairs", len(own))
        assert kept.units[pool, pair, ""] == tuple(p.group for p in own)
        if name == "gold":
            assert values.tolist() == [p.score for p in own]


@pytest.mark.parametrize("lost", [NAMES[0], "half of the results"])
def test_what_a_crash_has_lost_is_made_again_to_the_byte(copy, lost):
    files, _ = copy
    before = contents(files)
    if lost in NAMES:
        (files.path / lost).unlink()
    else:
        rows = (files.path / NAMES[0]).read_text().splitlines(keepends=True)
        (files.path / NAMES[0]).write_text("".join(rows[: len(rows) // 2]))  # all of dev
    open_run(files.path).execute()
    assert contents(files) == before


def test_a_task_that_is_all_test_is_scored_on_test_alone(tmp_path):
    (tmp_path / "small.yaml").write_text(declared(translation("deu")))
    (tmp_path / "tatoeba.deu-eng.deu").write_text("Haus\nBaum\nKatze\n")
    (tmp_path / "tatoeba.deu-eng.eng").write_text("house\ntree\ncat\n")
    files, _ = scored(tmp_path / "run", task="small", data=str(tmp_path), include=[str(tmp_path)], label="ours")
    assert {(row["split"], row["learner"]) for row in files.results()} == {("test", "ours")}
    kept, _ = load(query_results_path(files.path, "small", "ours", "test"))
    assert set(kept.units.values()) == {("house", "tree", "cat")}
    into, out = kept.columns["accuracy", "xx-en", "deu", "eng"], kept.columns["accuracy", "en-xx", "deu", "deu"]
    assert kept.columns["accuracy", "both", "deu", ""].tolist() == ((into + out) / 2).tolist()
    assert [arm.label for arm in read_study([files.path]).arms] == ["ours"]


def test_a_folder_that_is_at_work_is_refused_and_left_as_it_is(tmp_path):
    config = nested(ScoreConfig, task="demo-sts", encoder="tiny")
    files = RunFolder.create(tmp_path / "run", config, load_benchmark("demo-sts").data.fingerprint)
    with files.held():
        before = {path.name for path in files.path.iterdir()}
        result = metasearch("resume", files.path, code=5)
    assert f"{files.path}: another process is at work in this folder; wait for it to end" in result.output
    assert {path.name for path in files.path.iterdir()} == before
