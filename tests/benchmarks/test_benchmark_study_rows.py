"""What is kept of a study, and the README's tables of it, on studies with pretended scores."""

import importlib
import json
from pathlib import Path
from statistics import fmean, stdev

import pytest
from click.testing import CliRunner

from helpers.studies import Made, write_study
from metasearch.errors import DataError
from metasearch.spec.library import Library
from metasearch.study.compare import compare
from metasearch.study.read import read_study

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
LANGUAGES = ("ar", "de", "el", "hi", "ru", "th", "tr")
ARMS = {
    "zero-shot": 0.5,
    "fine-tune-mono-mono": Made(0.2, bias=1.5, learner="fine-tune", mode="mono-mono"),
    "maml-trans": Made(1.0, learner="maml", mode="trans"),
    "maml-mixt": Made(0.6, learner="maml", mode="mixt"),
    "maml-align-mono-bi-multi": Made(2.5, learner="maml-align", mode="mono-bi-multi"),
}


@pytest.fixture(scope="module", autouse=True)
def _beside():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        yield


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study") / "s"
    return read_study([write_study(folder, ARMS, folds=(0, 1), task="lareqa", languages=LANGUAGES)])


@pytest.fixture(scope="module")
def rows(study):
    return importlib.import_module("_outcome").outcome(study, "mini", resamples=200)


@pytest.fixture
def tables():
    return importlib.import_module("study_table")


def row(rows, learner, mode=None):
    return next(each for each in rows if (each["learner"], each["mode"]) == (learner, mode))


def test_languages_of_no_episode_are_zero_shot():
    groups_of = importlib.import_module("_outcome").groups_of
    found = groups_of(Library().task("lareqa"), LANGUAGES)
    assert found == {"few-shot": ["ar", "de", "el", "hi"], "zero-shot": ["ru", "th", "tr"]}
    stsb = Library().task("stsb")
    assert groups_of(stsb, stsb.pairs) == {}  # episodes are drawn in all of its pairs


def test_a_row_has_the_means_over_folds_of_each_language_and_group(study, rows):
    found = row(rows, "maml", "trans")
    folds = [each.values("map@20", "multilingual") for each in study.of(study.arm("maml (trans)"))]
    by_language = {code: (folds[0][code, "all"] + folds[1][code, "all"]) / 2 for code in LANGUAGES}
    assert found["languages"] == pytest.approx(by_language)
    assert found["mean"] == pytest.approx(sum(by_language.values()) / 7)
    assert found["sd"] == pytest.approx(stdev(fmean(fold.values()) for fold in folds))
    assert found["groups"]["few-shot"] == pytest.approx(sum(by_language[code] for code in ("ar", "de", "el", "hi")) / 4)
    assert found["groups"]["zero-shot"] == pytest.approx(sum(by_language[code] for code in ("ru", "th", "tr")) / 3)


def test_a_row_has_the_differences_and_p_values_of_metasearch_compare(study, rows):
    found = row(rows, "maml-align", "mono-bi-multi")["against"]
    for label in ("zero-shot", "fine-tune", "maml (trans)"):
        arm = next(arm for arm in study.arms if arm.label == label)
        compared = compare(study, arm, resamples=200).of(study.arm("maml-align"))
        assert found[label]["difference"] == compared.difference
        assert (found[label]["low"], found[label]["high"]) == (compared.interval.low, compared.interval.high)
        assert found[label]["holm"] == compared.adjusted
    assert "maml (mixt)" not in found  # not a row of Table 1


def test_differences_of_groups_are_those_of_their_means(rows):
    before, after = row(rows, "zero-shot"), row(rows, "maml-align", "mono-bi-multi")
    for name in ("few-shot", "zero-shot"):
        found = after["against"]["zero-shot"]["groups"][name]
        assert found["difference"] == pytest.approx(after["groups"][name] - before["groups"][name])
        assert found["low"] < found["difference"] < found["high"]


def test_a_learner_that_came_to_prefer_the_own_language_has_more_bias_after_than_before(rows):
    before, after = row(rows, "zero-shot"), row(rows, "fine-tune", "mono-mono")
    change = after["bias_change"]
    assert "bias_change" not in before
    assert after["bias"] > before["bias"]
    assert change["difference"] == pytest.approx(after["bias"] - before["bias"])
    assert change["low"] > 0
    assert change["holm"] >= change["p"]


def test_a_row_has_the_budget_that_was_spent(rows):
    found = row(rows, "maml", "trans")
    assert found["kept"] == 4  # as the runs of `_studies` pretend
    assert found["settings"]["recipe.outer.lr"] == "0.0003"
    assert "settings" not in row(rows, "zero-shot")


def test_a_study_of_similarity_has_neither_bias_nor_groups(tmp_path):
    arms = {"zero-shot": 0.5, "maml-mono-bi": Made(1.0, learner="maml", mode="mono-bi")}
    folder = write_study(tmp_path / "s", arms, folds=(0, 1), task="demo-sts", kind="similarity", languages=("ar", "en"))
    rows = importlib.import_module("_outcome").outcome(read_study([folder]), "tiny", resamples=200)
    assert [each.get("bias") for each in rows] == [None, None]
    assert rows[0]["groups"] == {}
    assert "bias" not in importlib.import_module("study_table").changes_table(rows)


def test_the_readmes_table_has_a_line_of_each_arm_with_its_difference(tmp_path, rows, tables):
    path = tmp_path / "rows.jsonl"
    older = [{**each, "study": "older", "mean": 0.0} for each in rows]
    by_language = {"task": "lareqa", "encoder": "mini", "learner": "maml", "language": "ar", "value": 0.1}
    path.write_text("".join(json.dumps(each) + "\n" for each in [by_language, *older, *rows]), encoding="utf-8")
    result = CliRunner().invoke(tables.main, ["--task", "lareqa", "--encoder", "mini", "--results", str(path)])
    assert result.exit_code == 0, result.output
    found = row(rows, "maml-align", "mono-bi-multi")
    scores, changes = [line for line in result.output.splitlines() if line.startswith("| maml-align  ")][:2]
    less = found["against"]["zero-shot"]
    assert f"{100 * found['mean']:.2f} ± {100 * found['sd']:.2f}" in scores
    assert f"{100 * less['difference']:+.2f} [{100 * less['low']:+.2f}, {100 * less['high']:+.2f}]" in changes
    assert f"| {100 * found['bias']:.1f} ± {100 * found['bias_sd']:.1f} |" in changes
    assert "| fine-tune | mono-mono |" in " ".join(result.output.split())


def test_a_study_that_is_not_there_is_named_with_those_that_are(tmp_path, rows, tables):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(rows[0]) + "\n", encoding="utf-8")
    result = CliRunner().invoke(tables.main, ["--task", "stsb", "--encoder", "mini", "--results", str(path)])
    assert result.exit_code == 2
    assert "lareqa with mini" in result.output


@pytest.mark.parametrize(
    ("difference", "low", "high", "theirs", "verdict"),
    [
        (0.01, 0.005, 0.015, 0.6, "holds"),
        (0.01, 0.005, 0.015, -10.0, "reversed"),
        (0.01, -0.001, 0.021, -10.0, "not told apart"),
        (0.01, None, None, 0.6, "–"),
        (0.01, 0.005, 0.015, None, "–"),
    ],
)
def test_an_order_holds_where_the_interval_says_so(tables, difference, low, high, theirs, verdict):
    assert tables._verdict({"difference": difference, "low": low, "high": high}, theirs) == verdict


def test_every_two_rows_of_table_1_are_put_in_order(rows, tables):
    lines = tables.orders_table(rows).splitlines()[2:]
    assert len(lines) == 4 * 3 / 2
    assert "| fine-tune less zero-shot  | -10.0 |" in tables.orders_table(rows)  # 47.0 less 57.0


def test_modes_are_listed_from_best_to_worst(rows, tables):
    ours, theirs = (row(rows, "maml", mode)["mean"] for mode in ("trans", "mixt"))
    listed = sorted([(ours, "trans"), (theirs, "mixt")], reverse=True)
    expected = ", ".join(f"{mode} {100 * value:.1f}" for value, mode in listed)
    assert f"| {expected} | trans 57.2, mixt 55.8 |" in tables.modes_table(rows)


@pytest.mark.parametrize("script", ["main_table", "small_studies"])
def test_what_is_wrong_is_one_line_and_has_the_exit_code_of_the_command_line(script, tmp_path):
    arguments = ["--task", "lareqa", "--encoder", "tiny", "--data", str(tmp_path / "nowhere")]
    more = ["-o", tmp_path / "study"] if script == "main_table" else ["--learner", "maml:trans"]
    found = CliRunner().invoke(importlib.import_module(script).main, [*arguments, *map(str, more)])
    assert found.exit_code == DataError.exit_code
    assert found.stderr.startswith("Error: ")
    assert str(tmp_path / "nowhere") in found.stderr
