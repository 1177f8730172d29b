"""Prompts and a trimmed vocabulary as settings of a run: said once, kept with it, and the same on resume."""

import json

import numpy as np
import pytest
import yaml
from sentence_transformers import SentenceTransformer

from helpers.commands import metasearch
from metasearch.config.run import EncoderConfig
from metasearch.data.benchmark import load_benchmark
from metasearch.encoders.load import load_encoder
from metasearch.pipelines import factory

pytestmark = pytest.mark.slow  # a model is trained

SMALL = [f"--set={key}" for key in ("budget.meta_batch=1", "episodes.k=2", "episodes.q=2", "options.inner_steps=1")]
TRAIN = ["train", "--encoder=tiny", "--mode=mono-bi", "--max-steps=1", *SMALL, "--json"]


def trimmed(*languages):
    return factory.load_task_encoder(EncoderConfig(name="tiny", trim=languages), load_benchmark("demo"), "cpu")


def test_a_trained_model_has_the_prompts_and_the_words_it_was_trained_with(tmp_path):
    metasearch(*TRAIN, "--prompt", "query=q: ", "--prompt", "document=c: ", "--trim-vocab=task", "-o", tmp_path / "run")
    config = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text(encoding="utf-8"))["config"]["encoder"]
    assert (config["prompts"], config["trim"]) == ({"question": "q: ", "candidate": "c: "}, ["task"])
    model = SentenceTransformer(str(tmp_path / "run" / "model"), device="cpu")
    assert (model.prompts["query"], model.prompts["document"], model.prompts["passage"]) == ("q: ", "c: ", "c: ")
    assert len(model.tokenizer) < len(load_encoder("tiny").model.tokenizer)


def test_prompts_change_scores_as_they_change_vectors():
    changes = ([], ["--prompt", "text=x "])
    evaluate = ("evaluate", "--task=demo-sts", "--encoder=tiny", "--json")
    plain, prompted = (metasearch(*evaluate, *words) for words in changes)
    values = [[row["value"] for row in json.loads(each.stdout)["results"]] for each in (plain, prompted)]
    assert values[0] != values[1]


def test_the_words_of_some_languages_are_fewer_and_their_vectors_the_same():
    few, all_of_them, whole = trimmed("el"), trimmed("task"), load_encoder("tiny", device="cpu")
    assert few.parameter_count < all_of_them.parameter_count < whole.parameter_count
    questions = [question.text for question in load_benchmark("demo").data.questions_by_language["el"]]
    lengths = load_benchmark("demo").task.max_length
    expected = load_encoder("tiny", lengths, device="cpu").encode(questions, "question")
    np.testing.assert_array_equal(few.encode(questions, "question"), expected)


def test_the_words_of_the_language_that_train_is_translated_from_keep_their_vectors():
    benchmark = load_benchmark("demo-oracle")
    # Test is not asked in English, which train is.
    assert "en" not in benchmark.data.languages
    questions = [question.text for question in benchmark.split.train.questions_by_language["en"]]
    whole = load_encoder("tiny", benchmark.task.max_length, device="cpu")
    found = factory.load_task_encoder(EncoderConfig(name="tiny", trim=("task",)), benchmark, "cpu").encode(
        questions, "question"
    )
    np.testing.assert_array_equal(found, whole.encode(questions, "question"))
