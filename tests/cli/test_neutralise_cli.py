"""`metasearch neutralise`, and `neutral` as an arm of `metasearch crossval`."""

import json

import pytest

from helpers import crossval
from helpers.commands import metasearch
from metasearch.evaluation.study.read import read_study

LANGUAGES = ("ar", "de", "el", "ru")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Texts in four languages, 25 of each, that begin in a way of their own."""
    folder = tmp_path_factory.mktemp("corpus")
    for i, language in enumerate(LANGUAGES):
        lines = [f"{'αβγδ'[i] * 3} text {number}" for number in range(25)]
        (folder / f"{language}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def made(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("made") / "neutral"
    flags = ["--texts", corpus, "--evaluate", "demo-sts", "--evaluate", "demo", "--device", "cpu"]
    return folder, metasearch("neutralise", "tiny", *flags, "-o", folder)


@pytest.mark.slow
def test_it_prints_scores_and_bias_before_and_after(made):
    folder, printed = made[0], made[1].stdout
    facts = json.loads((folder / "neutral.json").read_text(encoding="utf-8"))
    assert facts["directions"] == 4 - 1
    assert facts["texts"] == dict.fromkeys(LANGUAGES, 25)
    means = {
        (row["task"], row["measure"], row["learner"]): row["value"]
        for row in facts["results"]
        if row["language"] == "mean"
    }
    for (_, _, when), value in means.items():
        assert any(line.startswith(f"| {when} ") and f"{100 * value:.2f}" in line for line in printed.splitlines())
    assert {(task, measure) for task, measure, _ in means} == {
        ("demo", "map@20"), ("demo", "map"), ("demo-sts", "pearson"), ("demo-sts", "spearman"),
    }  # fmt: skip
    alike = [f"{100 * facts['rank_correlation']['demo'][when]:.2f}" for when in ("before", "after")]
    assert f"rank correlation of translated questions, top 20 (100 alike): {alike[0]} → {alike[1]}" in printed
    before, after = (f"{100 * facts['bias']['demo'][when]:.2f}" for when in ("before", "after"))
    assert f"as much as there can be): {before} → {after}" in printed
    assert "demo: not in the estimate: hi, th, tr; such languages profit less" in made[1].stderr
    assert printed.endswith(f"model: {folder}\n")
    assert printed.removesuffix(f"\nmodel: {folder}\n") in (folder / "README.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_crossval_has_the_neutral_encoder_as_an_arm_and_takes_its_scores_over(monkeypatch, tmp_path):
    begun = crossval.inline(monkeypatch)
    folder = tmp_path / "study"
    flags = [flag for flag in crossval.FLAGS if not flag.startswith("--learner")]
    tuned = ["--set", "fine-tune:neutralise=after", "--keep-models"]
    crossval.run(*flags, "--learner=neutral,fine-tune", *tuned, "-o", folder)
    assert begun == [f"{arm}/fold-0-seed-0" for arm in ("zero-shot", "neutral", "fine-tune-mono-bi")]
    labels = {arm.label for arm in read_study([folder]).arms}
    assert labels == {"zero-shot", "neutral", "fine-tune", "fine-tune+neutral"}
    assert "| neutral " in (folder / "report.md").read_text(encoding="utf-8")
    model = folder / "cells/fine-tune-mono-bi/fold-0-seed-0/model"
    assert (model / "3_Dense").is_dir()
