"""Cross-encoders: scores as transformers gives them, batched, and models that cannot rerank."""

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from helpers.cross_encoders import write_cross_encoder
from metasearch.encoders import cross_encoder as module
from metasearch.encoders.cross_encoder import open_reranker
from metasearch.errors import ConfigError, EncoderError

QUERY = "where is the key"
TEXTS = [
    "the key is under the mat",
    "old houses",
    "the key is under the mat",
    "never unlocked by night and near a house",
]
CPU = torch.device("cpu")


def test_scores_are_the_logits_of_the_pairs_and_equal_texts_tie(tmp_path, monkeypatch):
    folder = write_cross_encoder(tmp_path)
    tokenizer, model = (kind.from_pretrained(folder) for kind in (AutoTokenizer, AutoModelForSequenceClassification))
    with torch.no_grad():
        expected = [float(model(**tokenizer(QUERY, text, return_tensors="pt")).logits) for text in TEXTS]
    monkeypatch.setattr(module, "BATCH", 2)
    found = open_reranker(folder, CPU).scores(QUERY, TEXTS)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert found[0] == found[2]
    assert len(set(found)) == 3


def test_truncated_pairs_are_reported_once(tmp_path, caplog):
    reranker = open_reranker(write_cross_encoder(tmp_path), CPU)
    for _ in range(2):
        reranker.scores(QUERY, ["old house", "key " * 30])
    (line,) = caplog.messages
    assert "reads 24 tokens" in line
    assert "truncates 1 of 2 passages" in line


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"head": False}, "is not a cross-encoder: it lacks the weights 'classifier"),
        ({"labels": 3}, "has 3 labels; expected a single score"),
    ],
)
def test_a_model_that_cannot_rerank_is_refused(tmp_path, model, message):
    with pytest.raises(EncoderError, match=message):
        open_reranker(write_cross_encoder(tmp_path, **model), CPU)


def test_a_name_that_is_no_cross_encoder_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="reranker 'mini' is a built-in encoder; expected"):
        open_reranker("mini", CPU)
    with pytest.raises(EncoderError, match="no such folder"):
        open_reranker(str(tmp_path / "missing"), CPU)
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    with pytest.raises(EncoderError, match="cannot be loaded as a sentence-transformers CrossEncoder"):
        open_reranker(str(tmp_path), CPU)
