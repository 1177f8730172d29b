"""The built-in encoder `mini` and its folder in the package."""

import hashlib

import numpy as np
import pytest
import yaml

from metasearch.data.benchmark import load_benchmark
from metasearch.encoders.builtin import mini
from metasearch.evaluation.evaluate import evaluate
from metasearch.spec.measure import Measure
from metasearch.spec.recipe import MaxLength

LANGUAGES = ("ar", "de", "el", "en", "es", "fr", "hi", "it", "nl", "ru", "th", "tr")
TEXTS = {
    "ar": "أين المفتاح؟",
    "de": "Wo ist der Schlüssel für die große Tür?",
    "el": "Πού είναι το κλειδί;",
    "en": "Where is the key?",
    "es": "¿Dónde está la llave del señor?",
    "fr": "Où est la clé du garçon?",
    "hi": "चाबी कहाँ है?",
    "it": "Dov'è la chiave? È là.",
    "nl": "Waar is de sleutel?",
    "ru": "Где ключ?",
    "th": "กุญแจอยู่ที่ไหน",
    "tr": "Anahtar nerede, İğneli çanta mı?",
    "emoji": "🗝️🏠🐈‍⬛ 👩🏽‍🚀",
    "rare": "𠮷龘𪚥 ꙮ ᚠᛇᚻ",
    "nothing": "",
}


@pytest.fixture(scope="module")
def encoder():
    return mini.build(MaxLength(question=24, candidate=40))


def test_it_has_at_most_ten_million_weights_and_its_folder_twelve_megabytes(encoder):
    assert encoder.name == "mini"
    assert encoder.parameter_count <= 10 * 10**6
    assert sum(path.stat().st_size for path in mini.FOLDER.rglob("*") if path.is_file()) <= 12 * 10**6


@pytest.mark.parametrize("kind", TEXTS)
def test_no_text_has_an_unknown_token(encoder, kind):
    tokenizer = encoder.model.tokenizer
    assert tokenizer.unk_token_id is not None
    assert tokenizer.unk_token_id not in tokenizer(TEXTS[kind])["input_ids"]


def test_vectors_are_finite_units_and_distinct(encoder):
    vectors = encoder.encode(list(TEXTS.values()), "text")
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(len(TEXTS)), abs=1e-5)
    assert len(np.unique(vectors.round(4), axis=0)) == len(TEXTS)


def test_it_takes_a_tasks_lengths(encoder):
    assert [encoder.limit(role) for role in ("question", "candidate")] == [24, 40]


WEIGHTS = "9b049e2ac06d5067a25eed7f4402aaa65c1e8cf03f8a34dca47c47d3bf8e863e"


def test_its_weights_are_those_that_were_trained():
    """A new mini is a new hash here, a new figure below, and new tables in the README and its card."""
    assert hashlib.sha256((mini.FOLDER / "model.safetensors").read_bytes()).hexdigest() == WEIGHTS


@pytest.mark.slow
def test_its_quality_on_the_demo_is_that_of_the_readme():
    """With the rows of the word table permuted it is 9.8."""
    demo = load_benchmark("demo")
    found = evaluate(mini.build(demo.task.max_length), demo.split.test, [Measure("map", 20)])
    assert 100 * found.mean("map@20") == pytest.approx(46.61, abs=0.005)


def test_its_card_names_languages_licences_data_and_limits():
    head, body = (mini.FOLDER / "README.md").read_text(encoding="utf-8").removeprefix("---\n").split("\n---\n", 1)
    front = yaml.safe_load(head)
    assert (sorted(front["language"]), front["license"]) == (sorted(LANGUAGES), "cc-by-sa-4.0")
    assert all(f"## {part}\n" in body for part in ("Data", "Licence", "Limits"))
    assert all(named in body for named in ("all-MiniLM-L6-v2", "Apache 2.0", "CC BY-SA 4.0", "CC BY"))
