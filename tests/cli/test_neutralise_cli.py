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


def test_it_writes_an_encoder_and_counts_the_texts(corpus, tmp_path):
    folder = tmp_path / "neutral"
    printed = metasearch("neutralise", "tiny", "--texts", corpus, "--device", "cpu", "-o", folder).stdout
    made = json.loads((folder / "neutral.json").read_text(encoding="utf-8"))
    assert made == {"directions": 4 - 1, "texts": dict.fromkeys(LANGUAGES, 25)}
    assert printed == f"directions removed: 3\ntexts in the estimate: ar 25, de 25, el 25, ru 25\nmodel: {folder}\n"
    assert "25 texts in de" in (folder / "README.md").read_text(encoding="utf-8")
    assert "directions removed" in (folder / "README.md").read_text(encoding="utf-8")


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
