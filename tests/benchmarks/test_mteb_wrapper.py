"""The encoder in mteb: what it reads as what, and that mteb's mAP@20 is ours."""

from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.paper import mteb_wrapper
from metasearch.config.recipe import MaxLength
from metasearch.data.benchmark import load_benchmark
from metasearch.pipelines.factory import load_encoder

LONG = "Where is the key to the old house by the sea? " * 8


@pytest.fixture(scope="module")
def encoder():
    """An encoder with other prompts and other lengths for each role."""
    prompts = {"question": "query: ", "candidate": "passage: "}
    return load_encoder("tiny", MaxLength(question=12, candidate=24, text=18), device="cpu", prompts=prompts)


@pytest.mark.parametrize(
    ("prompt_type", "role"),
    [("query", "question"), (SimpleNamespace(value="document"), "candidate"), (None, "text")],
)
def test_texts_are_read_with_the_prompt_and_at_the_length_of_their_role(encoder, prompt_type, role):
    model = mteb_wrapper.MetasearchModel(encoder)
    batches = [{"text": [LONG, "key"]}, {"text": ["sea", LONG]}]
    asked = {"task_metadata": None, "hf_split": "test", "hf_subset": "de", "prompt_type": prompt_type}
    found = model.encode(batches, **asked)
    np.testing.assert_array_equal(found, encoder.encode([LONG, "key", "sea", LONG], role))
    others = [encoder.encode([LONG], other)[0] for other in ("question", "candidate", "text") if other != role]
    assert min(np.abs(found[0] - other).max() for other in others) > 1e-3
    np.testing.assert_array_equal(model.encode(batches[:1], **asked), found[:2])


def test_vectors_are_compared_by_their_product(encoder):
    model, one, two = mteb_wrapper.MetasearchModel(encoder), np.eye(2, 3), np.array([[1, 2, 3], [4, 5, 6.0]])
    assert model.similarity(one, two).tolist() == [[1, 4], [2, 5]]
    assert model.similarity_pairwise(one, two).tolist() == [1, 5]


@pytest.mark.slow
def test_mteb_has_our_map_of_each_language(encoder):
    pytest.importorskip("mteb", reason="mteb is no dependency; benchmarks/paper/mteb_wrapper.py says how to get it")
    benchmark = load_benchmark("demo", fold=1)
    theirs = mteb_wrapper.mteb_scores(encoder, benchmark, "test")
    ours = mteb_wrapper.our_scores(encoder, benchmark, "test")
    assert theirs.keys() == ours.keys() == {"ar", "de", "el", "hi", "ru", "th", "tr"}
    assert theirs == pytest.approx(ours, abs=mteb_wrapper.TOLERANCE)


@pytest.mark.slow
def test_on_lareqa_too(real_data, encoder):
    pytest.importorskip("mteb", reason="mteb is no dependency; benchmarks/paper/mteb_wrapper.py says how to get it")
    benchmark = load_benchmark("lareqa-sentences", data=str(real_data))
    found = mteb_wrapper.mteb_scores(encoder, benchmark, "test")
    assert found == pytest.approx(mteb_wrapper.our_scores(encoder, benchmark, "test"), abs=mteb_wrapper.TOLERANCE)


def test_without_a_pool_there_is_nothing_to_rank(monkeypatch):
    pytest.importorskip("mteb", reason="mteb is no dependency; benchmarks/paper/mteb_wrapper.py says how to get it")
    monkeypatch.setattr(mteb_wrapper, "block_network", lambda: None)
    result = CliRunner().invoke(mteb_wrapper.main, ["--task", "demo-sts", "--encoder", "tiny"])
    assert (result.exit_code, "ranks nothing" in result.output) == (2, True)
