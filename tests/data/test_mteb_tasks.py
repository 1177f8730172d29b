"""Tasks of mteb as it declares them; their data are set in memory, as no hub is reached from here."""

import json

import pytest
from click.testing import CliRunner

from metasearch.cli import main
from metasearch.config.measure import Measure
from metasearch.data.benchmark import load_benchmark
from metasearch.data.labels import load_labels
from metasearch.encoders.load import load_encoder
from metasearch.errors import ConfigError, DataError, HubError
from metasearch.evaluation.evaluate import evaluate

EN, DE = ["The keeper lives in a house by the sea.", "Bees dance."], ["Der Wärter wohnt am Meer.", "Bienen tanzen."]


def rows(**columns):
    return pytest.importorskip("datasets").Dataset.from_dict(columns)


def part(texts, queries, relevant):
    ids = [f"d{i}" for i in range(len(texts))]
    return {
        "corpus": rows(id=ids, title=["", "Titel"], text=texts),
        "queries": rows(id=[f"q{i}" for i in range(len(queries))], text=queries),
        "relevant_docs": relevant,
        "top_ranked": None,
    }


@pytest.fixture
def task(monkeypatch):
    """Make a task that mteb knows; to import mteb takes long, so that only the process of these tests does."""
    mteb = pytest.importorskip("mteb", reason="needs the extra mteb")
    from mteb.abstasks import AbsTaskBitextMining, AbsTaskRetrieval, AbsTaskSTS
    from mteb.abstasks.task_metadata import TaskMetadata

    kinds = {"Retrieval": AbsTaskRetrieval, "STS": AbsTaskSTS, "BitextMining": AbsTaskBitextMining}

    def make(kind, languages, data, **more):
        metadata = TaskMetadata(
            name="Mine", description="In memory.", reference="https://example.org", type=kind, license="cc0-1.0",
            dataset={"path": "org/name", "revision": "1"}, eval_splits=["dev", "test"], eval_langs=languages,
            main_score={"Retrieval": "ndcg_at_10", "STS": "spearman", "BitextMining": "f1"}.get(kind, "accuracy"),
        )  # fmt: skip

        def load(self, **keys):
            self.dataset = data

        made = type("Mine", (kinds.get(kind, AbsTaskSTS),), {"metadata": metadata, "load_data": load, **more})

        def get_task(name, **keys):
            if name != "Mine":
                raise KeyError(name)
            return made().filter_languages(None, None, **keys)

        monkeypatch.setattr(mteb, "get_task", get_task)

    return make


@pytest.mark.slow
def test_a_task_of_mteb_says_whether_a_query_is_among_its_documents(task):
    relevant = {"d0": {"d1": 1, "gone": 1}}
    one = part([EN[0], ""], [EN[0]], relevant)
    one["corpus"] = rows(id=["d0", "d1", "d2"], title=["", "", ""], text=[*EN, ""])
    one["queries"] = rows(id=["d0"], text=[EN[0]])
    task("Retrieval", ["eng-Latn"], {"default": {"test": one}}, ignore_identical_ids=True)
    benchmark = load_benchmark("mteb:Mine")
    found = evaluate(load_encoder("tiny"), benchmark.data, [Measure.parse("mrr", "retrieval")])
    assert (found.mean("mrr"), benchmark.task.ignore_identical_ids) == (1.0, True)  # of d1 alone; d2 has no text
    assert benchmark.data.missing == {("d0", "gone"): 1.0}


@pytest.mark.slow
def test_a_retrieval_task_has_graded_judgements_and_the_whole_corpus(task):
    relevant = {"q0": {"d1": 2, "d0": 0}, "q1": {"d0": 1}, "q2": {"d0": 0}}
    task("Retrieval", ["deu-Latn"], {"default": {"test": part(DE, ["Wer tanzt?", "Wo?", "Was?"], relevant)}})
    found = load_benchmark("mteb:Mine")
    assert (found.task.kind, found.task.languages, found.task.measures[0]) == ("retrieval", ["de"], "ndcg@10")
    assert [(q.id, q.language, q.text) for q in found.data.questions] == [
        ("q0", "de", "Wer tanzt?"),
        ("q1", "de", "Wo?"),
    ]
    assert [(c.id, c.text, c.answers) for c in found.data.candidates] == [
        ("d0", DE[0], ("q1",)), ("d1", f"Titel {DE[1]}", ("q0",)),
    ]  # fmt: skip
    assert found.data.grades == {("q0", "d1"): 2, ("q0", "d0"): 0, ("q2", "d0"): 0}
    assert found.split.test == found.data
    labels = load_labels("mteb:Mine")
    assert [each.id for each in labels.questions] == ["q0", "q1"]


@pytest.mark.slow
def test_subsets_in_two_languages_are_told_apart_by_their_texts(task):
    relevant = {"q0": {"d0": 1}}
    data = {
        "de-en": {"test": part(DE, ["Who lives in the house by the sea?"], relevant)},
        "en-de": {"test": part(EN, ["Wer wohnt in dem Haus am Meer?"], relevant)},
    }
    both = {"de-en": ["deu-Latn", "eng-Latn"], "en-de": ["deu-Latn", "eng-Latn"]}
    task("Retrieval", both, data)
    found = load_benchmark("mteb:Mine").data
    assert [(q.id, q.language) for q in found.questions] == [("de-en:q0", "en"), ("en-de:q0", "de")]
    assert {c.id: c.language for c in found.candidates} == {
        "de-en:d0": "de", "de-en:d1": "de", "en-de:d0": "en", "en-de:d1": "en",
    }  # fmt: skip
    assert [q.id for q in load_benchmark("mteb:Mine/de-en").data.questions] == ["q0"]


@pytest.mark.slow
def test_a_similarity_task_has_scores_from_0_to_1(task):
    data = {"en-de": {"test": rows(sentence1=EN, sentence2=DE, score=[5.0, 1.0])}}
    task("STS", {"en-de": ["eng-Latn", "deu-Latn"]}, data, min_score=0, max_score=5)
    found = load_benchmark("mteb:Mine")
    assert [(p.pair, p.text1, p.text2, p.score) for p in found.data.pairs] == [
        ("en-de", EN[0], DE[0], 1.0), ("en-de", EN[1], DE[1], 0.2),
    ]  # fmt: skip
    assert (found.task.pairs, found.task.monitor) == (("en-de",), "spearman")
    said = CliRunner().invoke(main, ["evaluate", "--task", "mteb:Mine", "--encoder", "tiny", "--json"])
    assert {(row["task"], row["measure"]) for row in json.loads(said.stdout.splitlines()[-1])["results"]} == {
        ("mteb:Mine", "spearman"), ("mteb:Mine", "pearson"),
    }  # fmt: skip
    task("STS", ["eng-Latn"], {"test": rows(sentence1=EN, sentence2=EN, score=[5.0, 6.0])}, min_score=0, max_score=5)
    with pytest.raises(DataError, match=r"mteb:Mine: default, row 2: score: expected a number from 0 to 5, got 6\.0"):
        load_benchmark("mteb:Mine")


@pytest.mark.slow
def test_translations_are_read_from_the_language_that_all_subsets_share(task):
    data = {
        "de-en": {"test": rows(sentence1=DE, sentence2=EN)},
        "en-zh": {"test": rows(sentence1=EN, sentence2=["海", "蜂"])},
    }
    task("BitextMining", {"de-en": ["deu-Latn", "eng-Latn"], "en-zh": ["eng-Latn", "cmn-Hans"]}, data)
    found = load_benchmark("mteb:Mine").data
    assert [(p.languages, p.source, p.target) for p in found.pairs[1:3]] == [
        (("en", "de"), EN[1], DE[1]), (("en", "zh"), EN[0], "海"),
    ]  # fmt: skip
    columns = {"deu_Latn": DE, "eng_Latn": EN}
    both = {"deu_Latn-eng_Latn": ["deu-Latn", "eng-Latn"]}
    task("BitextMining", both, {"test": rows(**columns)}, parallel_subsets=True)
    assert [(p.source, p.target) for p in load_benchmark("mteb:Mine").data.pairs] == list(zip(EN, DE, strict=True))


@pytest.mark.slow
def test_what_cannot_be_read_is_named(task, monkeypatch):
    task("STS", ["eng-Latn"], {"test": rows(sentence1=["a"], sentence2=["b"], score=[1.0])})
    with pytest.raises(ConfigError, match=r"mteb:STS71: mteb has no task 'STS71'\. Did you mean 'STS17'"):
        load_benchmark("mteb:STS71")
    with pytest.raises(ConfigError, match=r"the task has no subset 'de'\. .*default"):
        load_benchmark("mteb:Mine/de")
    with pytest.raises(ConfigError, match="task 'mteb:Mine' is for evaluation only"):
        load_benchmark("mteb:Mine", fold=1)
    with pytest.raises(DataError, match="mteb:Mine: expected a task of the type Retrieval, got 1 "):
        load_labels("mteb:Mine")
    task("Classification", ["eng-Latn"], {})
    with pytest.raises(ConfigError, match="its type is Classification; read are the types Retrieval, STS, Bitext"):
        load_benchmark("mteb:Mine")
    task("STS", ["eng-Latn"], {}, load_data=property(lambda self: (_ for _ in ()).throw(OSError("no network"))))
    with pytest.raises(HubError, match="mteb:Mine: mteb cannot load the data: no network"):
        load_benchmark("mteb:Mine")
