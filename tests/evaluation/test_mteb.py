"""An encoder in mteb: prompt and length of each role, and mteb's mAP@20 in a pool of all languages."""

from types import SimpleNamespace

import numpy as np
import pytest

from metasearch.config.measure import Measure
from metasearch.config.roles import MaxLength
from metasearch.data.benchmark import load_benchmark
from metasearch.encoders.load import load_encoder
from metasearch.errors import ConfigError
from metasearch.evaluation.evaluate import evaluate
from metasearch.mteb import MetasearchModel, language_with_script, pool_task

LONG = "Where is the key to the old house by the sea? " * 8


@pytest.fixture(scope="module")
def encoder():
    prompts = {"question": "query: ", "candidate": "passage: "}
    return load_encoder("tiny", MaxLength(question=12, candidate=24, text=18), device="cpu", prompts=prompts)


@pytest.mark.parametrize(
    ("prompt_type", "role"),
    [("query", "question"), (SimpleNamespace(value="document"), "candidate"), (None, "text")],
)
def test_texts_have_the_prompt_and_the_length_of_their_role(encoder, prompt_type, role):
    model = MetasearchModel(encoder)
    batches = [{"text": [LONG, "key"]}, {"text": ["sea", LONG]}]
    asked = {"task_metadata": None, "hf_split": "test", "hf_subset": "de", "prompt_type": prompt_type}
    found = model.encode(batches, **asked)
    np.testing.assert_allclose(found, encoder.encode([LONG, "key", "sea", LONG], role), atol=1e-6)
    others = [encoder.encode([LONG], other)[0] for other in ("question", "candidate", "text") if other != role]
    assert min(np.abs(found[0] - other).max() for other in others) > 1e-3
    assert model.similarity(np.eye(2, 3), found[:2, :3]).shape == (2, 2)


def test_the_revision_tells_precisions_and_lengths_apart(encoder):
    half = load_encoder("tiny", encoder.max_length, device="cpu", prompts={"question": "query: "})
    found = [MetasearchModel(each).revision for each in (encoder, half.choose_precision("bfloat16", tried=True))]
    assert found == [f"{encoder.fingerprint}-float32-12-24-18", f"{half.fingerprint}-bfloat16-12-24-18"]
    assert MetasearchModel(encoder, "v1").revision == "v1"


def test_names_of_languages_have_three_letters_and_a_script():
    names = [language_with_script(tag) for tag in ("ar", "ko", "zh", "de", "gsw", "sr-Latn")]
    assert names == ["ara-Arab", "kor-Hang", "zho-Hans", "deu-Latn", "gsw-Latn", "srp-Latn"]


@pytest.mark.slow
def test_mteb_has_our_map_in_each_language(encoder):
    mteb = pytest.importorskip("mteb", reason="needs the extra mteb")
    benchmark = load_benchmark("demo", fold=1)
    result = mteb.evaluate(MetasearchModel(encoder), [pool_task(benchmark)], cache=None, show_progress_bar=False)
    theirs = {row["hf_subset"]: row["map_at_20"] for row in result.task_results[0].scores["test"]}
    ours = evaluate(encoder, benchmark.split.test, [Measure("map", 20)])
    assert theirs == pytest.approx({score.language: score.value for score in ours.scores}, abs=1e-5)


@pytest.mark.slow
def test_a_pool_needs_a_retrieval_task():
    pytest.importorskip("mteb", reason="needs the extra mteb")
    with pytest.raises(ConfigError, match="a pool needs a retrieval task"):
        pool_task(load_benchmark("demo-sts"))
