"""`validate` says of a user's own data how much is there, and what would be enough."""

import json

import pytest

from metasearch.errors import DataError
from metasearch.jobs.validate import validate

TASK = """
task: own
description: questions and answers of one's own
kind: retrieval
reader: jsonl
data: own
source: {paper: none, url: none, licence: own}
languages: [en, de]
encoder: tiny
measures: [map@20]
monitor: map@20
arrangements: {mono -> bi: ["en_en -> en_de"]}
"""
K = Q = 8
"""Examples of a set in the recipe of the encoder `tiny`."""
FOLDS = 5


def checked(tmp_path, rows):
    (tmp_path / "own.yaml").write_text(TASK)
    (tmp_path / "own").mkdir()
    for language in ("en", "de"):
        lines = [json.dumps({"question": f"{language} {i}?", "answer": f"{language} {i}."}) for i in range(rows)]
        (tmp_path / "own" / f"{language}.jsonl").write_text("\n".join(lines))
    return list(validate("own", include=[str(tmp_path)]))


def test_a_row_in_each_fold_for_every_example_of_a_set_is_enough(tmp_path):
    assert "2 episodes drawn and embedded" in checked(tmp_path, K * FOLDS)[-1]


def test_what_would_fit_is_said_with_the_settings_that_fit_what_is_there(tmp_path):
    """Dev has a fifth of 20 rows, 4, of which a set can have 4 examples; 8 need twice as many rows."""
    says = f"--set episodes.k=4 --set episodes.q=4 fits, and so do about {20 * K // 4} articles or rows; there are 20$"
    with pytest.raises(DataError, match=says):
        checked(tmp_path, 20)


def test_data_for_which_no_setting_is_small_enough_is_told_how_much_would_do(tmp_path):
    with pytest.raises(DataError, match=f"no setting fits, but about {Q * FOLDS} articles or rows do; there are 5$"):
        checked(tmp_path, 5)


def test_the_smallest_fold_decides(tmp_path):
    """Of 39 rows the first four folds have 8, and the last one 7."""
    with pytest.raises(DataError, match=r"there are 7\. .*--set episodes.k=7 --set episodes.q=7 fits"):
        checked(tmp_path, K * FOLDS - 1)
