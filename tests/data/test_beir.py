"""BEIR folders: several relevant documents, graded relevance, unlabelled documents in the pool."""

import json

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from helpers.corpus import FakeEncoder
from metasearch.config.measure import Measure
from metasearch.data.benchmark import load_benchmark, make_benchmark
from metasearch.data.labels import load_labels
from metasearch.data.readers.beir import JudgedText, Judgement, judged_data
from metasearch.errors import ConfigError, DataError, HubError
from metasearch.evaluation.evaluate import evaluate

CORPUS = [
    {"_id": "d1", "title": "Cats", "text": "one"},
    {"_id": "d2", "text": "two"},
    {"_id": "d3", "title": "", "text": "three"},
    {"_id": "d4", "text": "four"},
]
QUERIES = [{"_id": "q1", "text": "first"}, {"_id": "q2", "text": "second"}, {"_id": "q3", "text": "third"}]
HEADER = "query-id\tcorpus-id\tscore\n"
TEST = HEADER + "q1\td1\t1\nq1\td2\t2\nq1\td3\t0\nq2\td3\t1\n"

TASK = """
task: mine
description: a BEIR folder
kind: retrieval
source: {paper: none, url: none, licence: none}
reader: beir
languages: [en]
encoder: tiny
folds: {method: none}
measures: [ndcg@10, map]
monitor: ndcg@10
arrangements: {}
"""


def lines(rows):
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def write(folder, corpus=CORPUS, queries=QUERIES, **qrels):
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    (folder / "corpus.jsonl").write_text(lines(corpus), encoding="utf-8")
    (folder / "queries.jsonl").write_text(lines(queries), encoding="utf-8")
    for name, text in (qrels or {"test": TEST}).items():
        (folder / "qrels" / f"{name}.tsv").write_text(text, encoding="utf-8")
    return folder


def test_a_row_has_the_language_of_the_task_whatever_its_code(tmp_path):
    tags = {"d1": "iw", "d2": "he", "d3": "heb", "d4": "en"}
    corpus = [{**row, "language": tags[row["_id"]]} for row in CORPUS]
    queries = [{**row, "language": "he"} for row in QUERIES]
    write(tmp_path / "data", corpus, queries)
    (tmp_path / "mine.yaml").write_text(TASK.replace("[en]", "[iw, eng]") + "data: data\n", encoding="utf-8")
    data = load_benchmark("mine", include=(str(tmp_path),)).data
    assert {each.id: each.language for each in data.candidates} == {"d1": "iw", "d2": "iw", "d3": "iw", "d4": "eng"}
    assert {each.language for each in data.questions} == {"iw"}


def test_grades_and_unlabelled_documents_are_read(tmp_path):
    data = load_labels(write(tmp_path), languages=["en"])
    assert [(q.id, q.text) for q in data.questions] == [("q1", "first"), ("q2", "second")]  # q3 has no judgement
    assert [(c.id, c.text, c.answers) for c in data.candidates] == [
        ("d1", "Cats one", ("q1",)),
        ("d2", "two", ("q1",)),
        ("d3", "three", ("q2",)),
        ("d4", "four", ()),
    ]
    assert data.grades == {("q1", "d2"): 2.0, ("q1", "d3"): 0.0}


def test_the_qrels_of_trec_say_the_same(tmp_path):
    beir = load_labels(write(tmp_path / "a"), languages=["en"])
    trec = "q1 0 d1 1\nq1 0 d2 2\nq1 0 d3 -1\nq2 0 d3 1\n"
    assert load_labels(write(tmp_path / "b", test=trec), languages=["en"]) == beir


def test_the_whole_corpus_is_in_the_pool_of_every_part_without_answers_to_questions_of_others(tmp_path):
    count = 20
    queries = [{"_id": f"q{i}", "text": f"query {i}"} for i in range(count)]
    corpus = [{"_id": f"d{i}", "text": f"document {i}"} for i in range(count + 3)]
    labels = HEADER + "".join(f"q{i}\td{i}\t1\n" for i in range(count))
    data = load_labels(write(tmp_path, corpus, queries, all=labels), languages=["en"])
    split = make_benchmark(data, "en_en -> en_en").split
    asked = [{q.id for q in part.questions} for part in (split.train, split.dev, split.test)]
    assert [len(ids) for ids in asked] == [12, 4, 4]
    for part, ids in zip((split.train, split.dev, split.test), asked, strict=True):
        assert len(part.candidates) == count + 3
        assert {answered for c in part.candidates for answered in c.answers} == ids


VECTORS = st.lists(st.integers(-3, 3), min_size=3, max_size=3).filter(any)


@given(data=st.data())
@settings(max_examples=30)
def test_any_judgements_are_scored_as_trec_eval_scores_them(data):
    """Repeated lines, missing and empty documents and queries, and queries among the documents."""
    trec_eval = pytest.importorskip("pytrec_eval")
    names = [f"{i}" for i in range(7)]
    there = data.draw(st.sets(st.sampled_from(names), min_size=3), "documents with a text")
    asked = data.draw(st.sets(st.sampled_from(names), min_size=1), "queries with a text")
    qrels = data.draw(
        st.dictionaries(st.tuples(st.sampled_from(names), st.sampled_from(names)), st.integers(0, 3), min_size=1),
        "qrels",
    )
    known = {(query, document): grade for (query, document), grade in qrels.items() if query in asked}
    assume(any(document in there for _, document in known) and any(known.values()))
    ignore = data.draw(st.booleans(), "ignore_identical_ids")
    repeats = data.draw(st.lists(st.sampled_from(sorted(qrels)), max_size=3), "repeated lines")
    labels = [Judgement("", "test", *pair, grade) for pair, grade in qrels.items()]
    labels += [Judgement("", "test", *pair, qrels[pair]) for pair in repeats]
    texts = {name: JudgedText("", f"d{name}" if name in there else "", "en") for name in names}
    queries = {name: JudgedText("", f"q{name}", "en") for name in sorted(asked)}
    read = judged_data(labels, queries, texts, ["en"], "mine", ("test",), ignore)
    vectors = {f"{kind}{name}": data.draw(VECTORS) for kind in "dq" for name in names}
    measures = ["ndcg@3", "ndcg", "recall@3", "precision@3", "mrr", "map"]
    found = evaluate(FakeEncoder(vectors), read, [Measure.parse(each, "retrieval") for each in measures], depth=10)

    run, judged = {}, {}
    for query in asked:
        scores = {name: float(np.dot(vectors[f"q{query}"], vectors[f"d{name}"])) for name in there}
        # trec_eval breaks ties by name, and this package by the order of the candidates.
        run[query] = {name: 10 * scores[name] - int(name) / 10 for name in there if not (ignore and name == query)}
        judged[query] = {document: grade for (own, document), grade in known.items() if own == query}
    judged = {query: own for query, own in judged.items() if any(own.values())}
    theirs = {"ndcg_cut.3", "ndcg", "recall.3", "P.3", "recip_rank", "map"}
    expected = trec_eval.RelevanceEvaluator(judged, theirs).evaluate({query: run[query] for query in judged})
    for ours, name in zip(measures, ["ndcg_cut_3", "ndcg", "recall_3", "P_3", "recip_rank", "map"], strict=True):
        right = np.mean([own[name] for own in expected.values()])
        assert found.mean(ours) == pytest.approx(right), ours
        assert found.mean(ours) <= 1


def test_what_is_repeated_missing_or_empty_is_counted_in_one_line_each(tmp_path, said):
    corpus = [*CORPUS, {"_id": "d5", "title": "", "text": None}, {"_id": "d6", "text": "\u200b"}]
    queries = [*QUERIES, {"_id": "q4", "text": ""}]
    more = "q1\td1\t1\nq1\td2\t2\nq1\td5\t1\nq2\td77\t0\nq4\td1\t1\nq5\td1\t1\n"
    folder = write(tmp_path, corpus, queries, test=TEST + more)
    data = load_labels(folder, languages=["en"])
    assert data.missing == {("q1", "d5"): 1.0}
    assert [c.id for c in data.candidates] == ["d1", "d2", "d3", "d4"]
    judged = f"{folder}/qrels/test.tsv"
    assert said() == [
        f"{folder}: skipped queries without text: 1, the first in {folder}/queries.jsonl:4",
        f"{folder}: skipped documents without text: 2, the first in {folder}/corpus.jsonl:5",
        f"{folder}: repeated judgements, which count once: 2, the first in {judged}:6",
        f"{folder}: skipped judgements of queries that are missing or have no text: 2, the first in {judged}:10 "
        "(query 'q4')",
        f"{folder}: judged documents that are missing or have no text: 2, the first in {judged}:8 (document 'd5'); "
        "relevant ones, which no search finds: 1",
    ]


def test_a_query_among_the_documents_is_named_and_with_the_setting_not_ranked(tmp_path, said):
    corpus = [{"_id": "a1", "text": "first"}, {"_id": "a2", "text": "second"}, {"_id": "b1", "text": "reply"}]
    queries = [{"_id": "a1", "text": "first"}, {"_id": "a2", "text": "other"}]
    folder = write(tmp_path / "data", corpus, queries, test=HEADER + "a1\tb1\t1\na2\ta1\t1\n")
    (tmp_path / "mine.yaml").write_text(TASK, encoding="utf-8")
    line = "queries with the id of a document: 2, the first 'a1'; with its text, too: 1."
    vectors = {"first": [1.0, 0], "second": [0.6, 0.8], "other": [0.6, 0.8], "reply": [0.0, 1.0]}
    measure = [Measure.parse("map", "retrieval")]

    def score():
        read = load_benchmark("mine", data=str(folder), include=[str(tmp_path)]).data
        return evaluate(FakeEncoder(vectors), read, measure).mean("map")

    # Of a1: itself 1, a2 0.6, b1 0. Of a2: itself 1, b1 0.8, a1 0.6.
    assert score() == pytest.approx((1 / 3 + 1 / 3) / 2)
    assert any(line in each and "ignore_identical_ids" in each for each in said())
    before = len(said())
    (tmp_path / "mine.yaml").write_text(f"{TASK}ignore_identical_ids: true\n", encoding="utf-8")
    assert score() == pytest.approx((1 / 2 + 1 / 2) / 2)
    assert not [each for each in said()[before:] if line in each]
    ignored = load_labels(folder, languages=["en"], ignore_identical_ids=True)
    assert ignored.fingerprint != load_labels(folder, languages=["en"]).fingerprint


def test_the_setting_is_refused_where_no_reader_uses_it(tmp_path):
    text = TASK.replace("mine", "other").replace("beir", "jsonl")
    (tmp_path / "other.yaml").write_text(f"{text}data: .\nignore_identical_ids: true\n", encoding="utf-8")
    (tmp_path / "en.jsonl").write_text('{"question": "a", "answer": "x"}\n', encoding="utf-8")
    with pytest.raises(ConfigError, match=r"other\.yaml:14: ignore_identical_ids: the reader '.*' does not use it"):
        load_benchmark("other", include=[str(tmp_path)])
    with pytest.raises(ConfigError, match="rows: ignore_identical_ids: only documents of a BEIR folder have ids"):
        load_labels([{"query": "a", "document": "x"}], ignore_identical_ids=True)


def test_a_task_reads_a_folder(tmp_path):
    write(tmp_path / "data", train=HEADER + "q3\td4\t1\n", test=TEST)
    (tmp_path / "mine.yaml").write_text(TASK, encoding="utf-8")
    benchmark = load_benchmark("mine", data=str(tmp_path / "data"), include=[str(tmp_path)])
    assert {q.id for q in benchmark.split.test.questions} == {"q1", "q2"}
    assert len(benchmark.split.test.candidates) == 4


def test_a_task_takes_the_splits_of_the_data(tmp_path):
    write(tmp_path / "data", train=HEADER + "q1\td1\t1\n", dev=HEADER + "q2\td2\t1\n", test=HEADER + "q3\td1\t1\n")
    (tmp_path / "mine.yaml").write_text(TASK.replace("method: none", "method: given"), encoding="utf-8")
    split = load_benchmark("mine", data=str(tmp_path / "data"), include=[str(tmp_path)]).split
    assert [[q.id for q in part.questions] for part in (split.train, split.dev, split.test)] == [["q1"], ["q2"], ["q3"]]
    # One document answers questions of train and of test.
    assert [next(c.answers for c in part.candidates) for part in (split.train, split.test)] == [("q1",), ("q3",)]


@pytest.mark.parametrize(
    ("corpus", "queries", "qrels", "message"),
    [
        (CORPUS, QUERIES, HEADER + "q1\td9\t1\n", r"test\.tsv:2: there is no document 'd9' in the corpus"),
        (CORPUS, QUERIES, HEADER + "q9\td1\t1\n", r"test\.tsv:2: there is no query 'q9' in the queries"),
        (CORPUS, QUERIES, HEADER + "q1\td1\t0\n", r"test\.tsv:2: no grade is above 0: no document answers any query"),
        (CORPUS, QUERIES, HEADER + "q1\td1\tgood\n", r"test\.tsv:2: score: expected a number, got 'good'"),
        (CORPUS, QUERIES, "q1 d1 1\n", r"test\.tsv:1: expected query, 0, document and relevance; got q1 d1 1"),
        ([{"id_": "d1", "text": "x"}], QUERIES, TEST, r"corpus\.jsonl:1: no column '_id'\. Did you mean 'id_'"),
        (CORPUS, QUERIES, HEADER + "q1\td1\t\n", r"test\.tsv:2: score: expected a value, got nothing$"),
        ([*CORPUS, CORPUS[0]], QUERIES, TEST, r"corpus\.jsonl:5: duplicate id 'd1', first in .*corpus\.jsonl:1"),
        ([{"_id": "d1", "title": "x"}], QUERIES, TEST, r"corpus\.jsonl:1: no column 'text'"),
        ([{"_id": "d1", "text": "\ud83d"}], QUERIES, TEST, r"corpus\.jsonl:1: text: .* half a surrogate pair, U\+D83D"),
        (CORPUS, QUERIES, TEST + "q1\td2\t0\n", r"test\.tsv:6: query 'q1' and document 'd2' .* grade 0, and 2 in .*:3"),
        ([{"_id": "d1", "text": "x", "language": "?"}], QUERIES, TEST, r"corpus\.jsonl:1: language: '\?' is not a"),
    ],
)
def test_damage_names_file_line_and_value(corpus, queries, qrels, message, tmp_path):
    with pytest.raises(DataError, match=message):
        load_labels(write(tmp_path, corpus, queries, test=qrels), languages=["en"])


# Data sets of the hub: from its cache, without a network.


@pytest.fixture
def cached(tmp_path, monkeypatch):
    """Return the folder of a data set `mine/shop` in a cache of the hub, which is not reached."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    repository = tmp_path / "datasets--mine--shop"
    commit = "0" * 40
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(commit, encoding="utf-8")
    folder = repository / "snapshots" / commit
    folder.mkdir(parents=True)
    return folder


def test_a_folder_of_the_hub_is_read_by_its_name(cached, tmp_path):
    write(cached)
    assert load_labels("hub:mine/shop", languages=["en"]) == load_labels(cached, languages=["en"])
    (tmp_path / "mine.yaml").write_text(TASK, encoding="utf-8")
    assert len(load_benchmark("mine", data="hub:mine/shop", include=[str(tmp_path)]).data.questions) == 2


def test_rows_of_the_hub_may_be_shards_or_one_of_several_files(cached):
    row = {"query": "a", "document": "x", "language": "en"}
    (cached / "data").mkdir()
    for i in range(2):
        (cached / "data" / f"train-0000{i}-of-00002.jsonl").write_text(lines([{**row, "query": str(i)}]), "utf-8")
    assert [q.text for q in load_labels("hub:mine/shop/data").questions] == ["0", "1"]
    (cached / "data" / "test-00000-of-00001.jsonl").write_text(lines([row]), "utf-8")
    assert [q.text for q in load_labels("hub:mine/shop/data/test-00000-of-00001.jsonl").questions] == ["a"]
    with pytest.raises(DataError, match=r"has several tables; name one of them: test-00000-of-00001\.jsonl, train-"):
        load_labels("hub:mine/shop/data")


@pytest.mark.parametrize("name", ["hub:mine/other", "hub:mine/shop/none.csv", "hub:mine", "hub:"])
def test_what_the_hub_does_not_have_is_said_with_its_name(cached, name):
    with pytest.raises(HubError, match=f"^{name}: "):
        load_labels(name)


@pytest.mark.parametrize("grade", ["[1]", "{}", '"high"', "1e400", "9" * 400, "NaN"])
def test_a_grade_that_is_no_number_is_named(grade, tmp_path):
    folder = write(tmp_path, CORPUS, QUERIES, test=TEST)
    (folder / "qrels/test.tsv").unlink()
    (folder / "qrels/test.jsonl").write_text(f'{{"query-id": "q1", "corpus-id": "d1", "score": {grade}}}\n')
    with pytest.raises(DataError, match=r"test\.jsonl:1: (score: expected a number, got|not JSON)"):
        load_labels(folder, languages=["en"])
