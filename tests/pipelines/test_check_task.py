"""`show --check` says of a user's own data how much is there, and what would be enough."""

import json

import pytest

from helpers.configs import nested
from metasearch.config.library import Library
from metasearch.config.measure import RETRIEVAL_POOLS
from metasearch.config.run import DataConfig, ScoreConfig
from metasearch.data.benchmark import load_benchmark
from metasearch.errors import DataError
from metasearch.pipelines.check_task import check_task
from metasearch.pipelines.score import ScoreRun

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


def check_own(tmp_path, task):
    (tmp_path / "own.yaml").write_text(task)
    return check_task(Library([tmp_path]), DataConfig(task="own"))


def checked(tmp_path, rows):
    (tmp_path / "own").mkdir(exist_ok=True)
    for language in ("en", "de"):
        lines = [json.dumps({"question": f"{language} {i}?", "answer": f"{language} {i}."}) for i in range(rows)]
        (tmp_path / "own" / f"{language}.jsonl").write_text("\n".join(lines))
    return list(check_own(tmp_path, TASK))


@pytest.mark.parametrize(
    ("encoder", "says"),
    [("tiny", "tiny, built in"), ("somebody/e5", "somebody/e5, of a model hub, which is not asked here")],
)
def test_the_encoder_is_named_with_where_it_is_from(encoder, says, tmp_path):
    lines = check_own(tmp_path, TASK.replace("encoder: tiny", f"encoder: {encoder}"))
    assert next(lines).startswith("declaration")
    assert next(lines) == f"encoder: {says}"


def test_scores_of_a_part_that_are_all_the_same_are_refused(tmp_path):
    """Of ten rows in five folds, dev of fold 0 has the third and the fourth."""
    scores = [0, 5, 3, 3, 1, 2, 0, 5, 4, 1]
    rows = [{"text1": f"a {i}", "text2": f"b {i}", "score": score} for i, score in enumerate(scores)]
    (tmp_path / "en-de.jsonl").write_text("\n".join(map(json.dumps, rows)))
    similar = TASK.replace("retrieval", "similarity\npairs: [en-de]").replace("map@20", "pearson")
    with pytest.raises(DataError, match=r"the scores of en-de in (dev|test) are all 3 \(2 rows\)"):
        list(check_own(tmp_path, similar.replace("data: own", "data: .")))


IDS = {
    "the same": ("q{}", "q{}", None),
    "other words": ("frage-{}", "question-{}", " in two languages ('frage-0' in de, 'question-0' in en). Tr"),
    "another case": ("q{}", "Q{}", " in two languages ('q0' in de, 'Q0' in en). Tr"),
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


ASKED_IN_ONE = TASK.replace("reader: jsonl", "reader: beir").replace(
    'mono -> bi: ["en_en -> en_de"]', "bi -> bi: [de_en -> de_en]"
)


def test_answers_in_another_language_alone_are_scored_in_the_pools_that_have_them(tmp_path, caplog):
    """Questions are in German, and answers in English: no pool of the question's own language has one."""
    (tmp_path / "own/qrels").mkdir(parents=True)
    rows = {
        "queries.jsonl": [{"_id": f"q{i}", "text": f"Wo ist K{i}?", "language": "de"} for i in range(40)],
        "corpus.jsonl": [{"_id": f"d{i}", "text": f"K{i} is here.", "language": "en"} for i in range(40)],
    }
    for name, lines in rows.items():
        (tmp_path / "own" / name).write_text("\n".join(map(json.dumps, lines)))
    judged = "".join(f"q{i}\td{i}\t1\n" for i in range(40))
    (tmp_path / "own/qrels/test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}")
    (tmp_path / "modes").mkdir()
    (tmp_path / "modes/bibi.yaml").write_text(
        "mode: bibi\ndescription: d\nmeta_train: [bi -> bi]\nmeta_valid: [bi -> bi]\n"
    )
    said = "question 'q0' (de) has no relevant candidate in it"
    assert f"scores: none in pool 'monolingual', {said}" in list(check_own(tmp_path, ASKED_IN_ONE))
    config = nested(ScoreConfig, encoder="tiny", task="own", include=[str(tmp_path)])
    rows = ScoreRun(config, tmp_path / "run").execute().rows
    assert {row["pool"] for row in rows if row["split"] == "test"} == {*RETRIEVAL_POOLS} - {"monolingual"}
    assert f"zero-shot on test of own is not scored in pool 'monolingual': {said}" in caplog.messages
