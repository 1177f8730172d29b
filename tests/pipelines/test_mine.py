"""Hard negatives for other trainers: the nearest candidates of each language that are no answers."""

import json
from math import cos

import pytest

from helpers.commands import metasearch
from helpers.corpus import FakeEncoder, at_angle, retrieval
from metasearch.config.run import MineConfig
from metasearch.data.benchmark import load_benchmark
from metasearch.pipelines.mine import mine_rows

DATA = retrieval(questions=4, languages=("de", "el"), fillers=0)
# All questions at 0; sentence i of German at (i + 1) / 10, of Greek at (i + 1.5) / 10.
ANGLES = {f"{tag} sentence {i}": (i + 1 + 0.5 * (tag == "el")) / 10 for tag in ("de", "el") for i in range(4)}
TINY = ("--encoder", "tiny")
SETTINGS = {"data": {"task": "demo"}, "encoder": {"name": "tiny"}}


def mined(languages=("de", "el"), **settings):
    texts = {question.text: at_angle(0) for question in DATA.questions}
    encoder = FakeEncoder(texts | {text: at_angle(angle) for text, angle in ANGLES.items()})
    config = MineConfig.model_validate({**SETTINGS, "relative_margin": 0.0, **settings})
    return list(mine_rows(DATA, encoder.encode, list(languages), config))


def row(asked, answer, *negatives):
    names = ["negative"] if len(negatives) == 1 else [f"negative_{i + 1}" for i in range(len(negatives))]
    return {"anchor": asked, "positive": answer, **dict(zip(names, negatives, strict=True))}


def test_a_row_has_the_nearest_candidates_of_its_language_that_are_further_than_the_answer():
    found = mined(negatives=2)
    assert found[:2] == [
        row("de question 0", "de sentence 0", "de sentence 1", "de sentence 2"),
        row("de question 0", "el sentence 0", "el sentence 1", "el sentence 2"),
    ]
    # Questions 0 and 1 have two further sentences in each language, question 2 one, question 3 none.
    assert len(found) == 2 * 2 * 2


def test_the_margin_skips_what_may_be_an_answer(caplog):
    # cos 0.3 is above, cos 0.4 below (1 - 0.05) cos 0.1
    assert cos(0.3) > 0.95 * cos(0.1) > cos(0.4)
    assert mined(("de",), negatives=1, relative_margin=0.05)[0] == row(
        "de question 0", "de sentence 0", "de sentence 3"
    )
    assert "skipped rows with fewer than 1 negatives: de" in caplog.text


@pytest.mark.slow
def test_the_command_takes_questions_of_train_alone_and_writes_json_lines(tmp_path):
    found = metasearch(
        "mine",
        *TINY,
        "--language",
        "de",
        "--num-negatives",
        3,
        "--relative-margin",
        0,
        "-o",
        tmp_path / "hard",
        "--json",
    )
    facts = json.loads(found.stdout)
    path = tmp_path / "hard" / "train.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert facts == {"file": str(path), "rows": len(rows)}
    split = load_benchmark("demo").split
    assert {each["anchor"] for each in rows} <= {question.text for question in split.train.questions}
    answers = {each.text: set(each.answers) for each in split.train.candidates if each.language == "de"}
    ids = {question.text: question.id for question in split.train.questions}
    for each in rows:
        assert list(each) == ["anchor", "positive", "negative_1", "negative_2", "negative_3"]
        uid = ids[each["anchor"]]
        assert uid in answers[each["positive"]]
        assert not any(uid in answers[each[f"negative_{i}"]] for i in (1, 2, 3))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-o", "x.csv"], "-o x.csv: expected a file that ends in .jsonl, or a folder"),
        (["-o", "x.jsonl", "--language", "xx"], "unknown language 'xx'"),
        (["-o", "x.jsonl", "--task", "demo-sts"], "negatives are mined for retrieval tasks"),
    ],
)
def test_wrong_options_are_named(words, message):
    assert message in metasearch("mine", *TINY, *words, code=2).stderr
