"""An encoder in mteb: prompt and length of each role."""

from types import SimpleNamespace

import numpy as np
import pytest

from metasearch.config.roles import MaxLength
from metasearch.encoders.load import load_encoder
from metasearch.mteb import MetasearchModel

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
