"""`validate` says of a user's own data how much is there, and what would be enough."""

import json

import pytest

from metasearch.config.library import Library
from metasearch.config.run import DataConfig
from metasearch.data.benchmark import load_benchmark
from metasearch.errors import DataError
from metasearch.pipelines.validate import validate

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


def validate_own(tmp_path, task):
    (tmp_path / "own.yaml").write_text(task)
    return validate(Library([tmp_path]), DataConfig(task="own"))


def checked(tmp_path, rows):
    (tmp_path / "own").mkdir(exist_ok=True)
    for language in ("en", "de"):
        lines = [json.dumps({"question": f"{language} {i}?", "answer": f"{language} {i}."}) for i in range(rows)]
        (tmp_path / "own" / f"{language}.jsonl").write_text("\n".join(lines))
    return list(validate_own(tmp_path, TASK))


@pytest.mark.parametrize(
    ("encoder", "says"),
    [("tiny", "tiny, built in"), ("somebody/e5", "somebody/e5, of a model hub, which is not asked here")],
)
def test_the_encoder_is_named_with_where_it_is_from(encoder, says, tmp_path):
    lines = validate_own(tmp_path, TASK.replace("encoder: tiny", f"encoder: {encoder}"))
    assert next(lines).startswith("declaration")
    assert next(lines) == f"encoder: {says}"


def test_scores_of_a_part_that_are_all_the_same_are_refused(tmp_path):
    """Of ten rows in five folds, dev of fold 0 has the third and the fourth."""
    scores = [0, 5, 3, 3, 1, 2, 0, 5, 4, 1]
    rows = [{"text1": f"a {i}", "text2": f"b {i}", "score": score} for i, score in enumerate(scores)]
    (tmp_path / "en-de.jsonl").write_text("\n".join(map(json.dumps, rows)))
    similar = TASK.replace("retrieval", "similarity\npairs: [en-de]").replace("map@20", "pearson")
    with pytest.raises(DataError, match=r"the scores of en-de in (dev|test) are all 3 \(2 rows\)"):
        list(validate_own(tmp_path, similar.replace("data: own", "data: .")))


IDS = {
    "the same": ("q{}", "q{}", None),
    "other words": (
        "frage-{}",
        "question-{}",
        "no id occurs in two languages ('frage-0' in de, 'question-0' in en). Tr",
    ),
    "another case": (
        "q{}",
        "Q{}",
        "no id occurs in two languages ('q0' in de, 'Q0' in en). Tr",
    ),
    "NFC and NFD": ("caf\u00e9-{}", "cafe\u0301-{}", None),
}


@pytest.mark.parametrize(("german", "english", "says"), IDS.values(), ids=IDS)
def test_ids_that_join_no_languages_are_a_warning_and_forms_of_unicode_do_not_matter(
    german, english, says, tmp_path, caplog
):
    for language, form in (("de", german), ("en", english)):
        rows = [{"id": form.format(n), "question": f"{n}?", "answer": f"{n}."} for n in range(8)]
        (tmp_path / f"{language}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "own.yaml").write_text(TASK.replace("data: own", "data: ."))
    data = load_benchmark("own", include=[str(tmp_path)]).data
    joined = sum(len(by_language) == 2 for by_language in data.answers.values())
    assert joined == (0 if says else 8)
    assert [message for message in caplog.messages if "no id occurs" in message] == caplog.messages
    assert len(caplog.messages) == bool(says)
    assert (says or "") in caplog.text
    assert not says or caplog.messages[0].endswith("each question has relevant candidates in one language only")


def test_a_set_larger_than_dev_is_refused_with_what_is_there(tmp_path):
    """Dev has a fifth of 20 rows, 4; a set of 8 needs twice as many rows."""
    says = f"meta-valid, episodes.k={K}: {K} triplets of en_en need {K} questions .*; there are 4. Lower it with --set"
    with pytest.raises(DataError, match=says):
        checked(tmp_path, 20)
    assert "2 episodes drawn and embedded" in checked(tmp_path, 2 * 20)[-1]
