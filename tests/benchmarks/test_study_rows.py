"""What is kept of a study, on studies with pretended scores."""

from statistics import fmean, stdev

import pytest

from benchmarks.paper.study_rows import groups_of, study_rows
from benchmarks.paper.study_tables import summary_table
from helpers.studies import Made, write_study
from metasearch.config.library import Library
from metasearch.evaluation.study.compare import compare
from metasearch.evaluation.study.read import read_study

LANGUAGES = ("ar", "de", "el", "hi", "ru", "th", "tr")
ARMS = {
    "zero-shot": 0.5,
    "fine-tune-mono-mono": Made(0.2, bias=1.5, learner="fine-tune", mode="mono-mono"),
    "maml-trans": Made(1.0, learner="maml", mode="trans"),
    "maml-mixt": Made(0.6, learner="maml", mode="mixt"),
    "maml-align-mono-bi-multi": Made(2.5, learner="maml-align", mode="mono-bi-multi"),
}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study") / "s"
    return read_study([write_study(folder, ARMS, folds=(0, 1), task="lareqa", languages=LANGUAGES)])


@pytest.fixture(scope="module")
def rows(study):
    return study_rows(study, "mini")


def row(rows, learner, mode=None):
    return next(each for each in rows if (each["learner"], each["mode"]) == (learner, mode))


def test_languages_of_no_episode_are_zero_shot():
    found = groups_of(Library().task("lareqa"), LANGUAGES)
    assert found == {"few-shot": ["ar", "de", "el", "hi"], "zero-shot": ["ru", "th", "tr"]}
    stsb = Library().task("stsb")
    assert groups_of(stsb, stsb.pairs) == {}  # episodes are drawn in all of its pairs


@pytest.mark.slow
def test_a_row_has_the_means_over_folds_of_each_language_and_group(study, rows):
    found = row(rows, "maml", "trans")
    folds = [each.values("map@20", "multilingual") for each in study.of(study.arm("maml (trans)"))]
    by_language = {code: (folds[0][code, "all"] + folds[1][code, "all"]) / 2 for code in LANGUAGES}
    assert found["languages"] == pytest.approx(by_language)
    assert found["mean"] == pytest.approx(sum(by_language.values()) / 7)
    assert found["sd"] == pytest.approx(stdev(fmean(fold.values()) for fold in folds))
    assert found["groups"]["few-shot"] == pytest.approx(sum(by_language[code] for code in ("ar", "de", "el", "hi")) / 4)
    assert found["groups"]["zero-shot"] == pytest.approx(sum(by_language[code] for code in ("ru", "th", "tr")) / 3)


@pytest.mark.slow
def test_a_row_has_the_differences_and_p_values_of_metasearch_compare(study, rows):
    found = row(rows, "maml-align", "mono-bi-multi")["against"]
    for label in ("zero-shot", "fine-tune", "maml (trans)"):
        arm = next(arm for arm in study.arms if arm.label == label)
        compared = compare(study, arm).of(study.arm("maml-align"))
        assert found[label]["difference"] == compared.difference
        assert (found[label]["low"], found[label]["high"]) == (compared.interval.low, compared.interval.high)
        assert found[label]["training"]["p"] == compared.training.p
        assert found[label]["training"]["holm"] == compared.holm
    assert "maml (mixt)" not in found  # not a row of Table 1


def test_differences_of_groups_are_those_of_their_means(rows):
    before, after = row(rows, "zero-shot"), row(rows, "maml-align", "mono-bi-multi")
    for name in ("few-shot", "zero-shot"):
        found = after["against"]["zero-shot"]["groups"][name]
        assert found["difference"] == pytest.approx(after["groups"][name] - before["groups"][name])
        assert found["low"] < found["difference"] < found["high"]


def test_a_study_of_similarity_has_neither_bias_nor_groups(tmp_path):
    arms = {"zero-shot": 0.5, "maml-mono-bi": Made(1.0, learner="maml", mode="mono-bi")}
    folder = write_study(tmp_path / "s", arms, folds=(0, 1), task="demo-sts", kind="similarity", languages=("ar", "en"))
    rows = study_rows(read_study([folder]), "tiny")
    assert [each.get("bias") for each in rows] == [None, None]
    assert rows[0]["groups"] == {}
    assert "bias" not in summary_table(rows)
