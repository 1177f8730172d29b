"""The model cards that commands write: their figures are those of the results, and what they say of use is so."""

import re

import numpy as np
import pytest
from huggingface_hub import ModelCard

from helpers import configs
from helpers.commands import metasearch
from helpers.parallel import distill, flags, save_assistant, write_corpus
from metasearch.encoders.load import load_encoder
from metasearch.pipelines.cards import find_base
from metasearch.runs.folder import RunFolder
from metasearch.runs.rows import read_rows

SMALL = [f"--set={each}" for each in (*configs.SMALL, "budget.meta_train=1", "budget.meta_batch=1")]


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """An encoder in a folder of its own, with a card that states a licence."""
    folder = tmp_path_factory.mktemp("secret-place") / "base"
    load_encoder("tiny").save(folder)
    (folder / "README.md").write_text("---\nlicense: mit\n---\n# A base\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def run(base, tmp_path_factory):
    """A run that trained that encoder for a step."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    asked = ["--mode=mono-bi", "--learner=maml", "--encoder", base, "--recipe=maml-tiny", "--device=cpu"]
    metasearch("train", *asked, *SMALL, "--prompt", "question=Q: ", "-o", folder)
    return folder


def rows_of(run, learner, split="test"):
    rows = read_rows(run / "results.jsonl")
    return [row for row in rows if (row["learner"], row["split"]) == (learner, split)]


def means(rows):
    """Return (measure, pool and language) → the mean over languages, as cards round it."""
    own = [row for row in rows if row["language"] == "mean"]
    return {(row["measure"], f"{row['pool']}, mean"): round(100 * row["value"], 2) for row in own}


def text_of(model):
    return (model / "README.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_figures_of_the_header_are_those_of_the_results(run):
    header = ModelCard.load(run / "model" / "README.md").data.eval_results
    found = {(each.metric_type, each.dataset_config): each.metric_value for each in header}
    assert found == means(rows_of(run, "maml"))
    assert len(found) == 2 * 5  # measures × pools
    (data,) = {row["data"] for row in rows_of(run, "maml")}
    assert (header[0].task_type, header[0].dataset_type, header[0].dataset_split, header[0].dataset_revision) == (
        "information-retrieval", "demo", "test", data,
    )  # fmt: skip


@pytest.mark.slow
def test_the_example_of_the_card_gives_the_vectors_of_the_run_with_its_prompts_and_lengths(run, monkeypatch):
    text = text_of(run / "model")
    (example,) = re.findall(r"^```python\n(.*?)^```$", text, flags=re.S | re.M)
    assert len(example.strip().splitlines()) <= 10
    monkeypatch.chdir(run / "model")
    names = {}
    exec(compile(example, "card", "exec"), names)
    encoder = load_encoder(str(run / "model"), device="cpu")
    expected = encoder.encode(["Where is the key?"], "question")
    np.testing.assert_allclose(names["questions"], expected, atol=1e-6)
    assert np.abs(names["questions"] - encoder.encode(["Where is the key?"], "candidate")).max() > 1e-3
    assert re.search(r"\| question +\| `encode_query` +\| `Q: ` +\| +64 \|", text)


@pytest.mark.slow
def test_licences_are_listed_where_they_are_known_and_the_user_may_set_that_of_the_whole(run):
    card = ModelCard.load(run / "model" / "README.md")
    assert card.data.license == "unknown"
    assert "- base a local checkpoint (A base): mit" in card.text
    assert "- data `demo`: CC0 1.0" in card.text
    licensed = text_of(run / "model").replace("license: unknown", "license: cc0-1.0")
    (run / "model" / "README.md").write_text(licensed, encoding="utf-8")
    RunFolder(run).require_unchanged()


def test_a_base_card_that_cannot_be_read_is_a_warning(tmp_path, caplog):
    (tmp_path / "README.md").write_text("---\nlicense: [\n---\n", encoding="utf-8")
    assert find_base("base", str(tmp_path)).licence == "unknown"
    assert f"{tmp_path}/README.md: ignored in the new card: its header cannot be read" in caplog.text


@pytest.mark.slow
def test_a_distillation_names_its_encoders_its_corpora_and_the_scores_of_its_last_stage(tmp_path):
    write_corpus(tmp_path / "my-corpus")
    save_assistant(tmp_path / "assistant")
    asked = flags(tmp_path, "--evaluate=demo-sts", steps=1)
    distill(
        *(flag.replace(str(tmp_path / "corpus"), str(tmp_path / "my-corpus")) for flag in asked), "-o", tmp_path / "run"
    )
    card = ModelCard.load(tmp_path / "run" / "model" / "README.md")
    assert "license: unknown" in str(card)
    assert "my-corpus" in card.text
    assert str(tmp_path) not in str(card)
    assert {each.task_type for each in card.data.eval_results} == {"semantic-similarity"}
    values = {(each.metric_type, each.dataset_config): each.metric_value for each in card.data.eval_results}
    assert values == means(rows_of(tmp_path / "run", "4 contrast"))
    assert 'SentenceTransformer(".", trust_remote_code=True)' in card.text
    assert card.data.library_name == "metasearch"


@pytest.mark.slow
def test_a_compressed_and_a_neutral_encoder_have_cards_of_how_they_were_made(base, tmp_path):
    metasearch("compress", base, "--bottleneck", 8, "--device", "cpu", "-o", tmp_path / "small")
    card = ModelCard.load(tmp_path / "small" / "README.md")
    assert "None were measured" in card.text
    assert re.search(r"\| bottleneck +\| 8 ", card.text)
    assert "- base a local checkpoint (A base): mit" in card.text
    metasearch("neutralise", "tiny", "--task", "demo", "--device", "cpu", "-o", tmp_path / "neutral")
    card = ModelCard.load(tmp_path / "neutral" / "README.md")
    assert "None were measured" in card.text
    assert "base `tiny`: apache-2.0" in card.text
