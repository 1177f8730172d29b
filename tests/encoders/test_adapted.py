"""A frozen encoder with an adapter of queries: its vectors, what is saved, and what refuses it."""

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Router
from sentence_transformers.sentence_transformer.modules import Normalize
from torch.nn import functional as F

from helpers.backbones import TEXTS, make
from helpers.small import Drawn, adapted_encoder
from metasearch.config.compress import CompressSettings
from metasearch.config.run import EncoderConfig
from metasearch.data.benchmark import load_benchmark
from metasearch.encoders.adapted import AdaptedEncoder, encoder_of
from metasearch.encoders.adapter import MatrixAdapter
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.load import load_encoder
from metasearch.encoders.neutral import require_none
from metasearch.encoders.protocols import report_progress
from metasearch.errors import EncoderError
from metasearch.pipelines.compress import compress
from metasearch.pipelines.factory import load_task_encoder

ROLES = {"question": "encode_query", "candidate": "encode_document", "text": "encode"}


def adapted(pairs=False, **given):
    """Return an encoder with an adapter away from its start, and the plain encoder."""
    base = make("bert", layers=1)
    adapter = MatrixAdapter(base.dimension())
    adapter.delta.data += 0.3 * torch.randn(adapter.delta.shape, generator=torch.Generator().manual_seed(0))
    return AdaptedEncoder(base, adapter, pairs, **given), base


@pytest.mark.parametrize("pairs", [False, True])
def test_queries_are_adapted_and_documents_stay_here_and_in_what_is_saved(tmp_path, pairs):
    encoder, base = adapted(pairs)
    encoder.save(tmp_path / "model")
    opened, theirs = load_encoder(str(tmp_path / "model"), device="cpu"), SentenceTransformer(str(tmp_path / "model"))
    matrix = encoder.adapter.matrix().detach().numpy()

    for role, method in ROLES.items():
        plain = expected = base.encode(TEXTS, role)
        if role == "question" or (pairs and role == "text"):
            expected = plain @ matrix.T / np.linalg.norm(plain @ matrix.T, axis=1, keepdims=True)
            assert np.abs(expected - plain).max() > 0.1
        for found in (encoder.encode(TEXTS, role), opened.encode(TEXTS, role), getattr(theirs, method)(list(TEXTS))):
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
    assert opened.fingerprint == encoder.fingerprint != base.fingerprint
    assert opened.parameter_count == encoder.parameter_count == base.parameter_count + matrix.size
    assert (encoder.origin, encoder.limit("question")) == (base.origin, base.limit("question"))


def test_an_adapter_of_another_width_is_refused():
    with pytest.raises(EncoderError, match="has 16 dimensions, and its adapter 8: they do not fit"):
        AdaptedEncoder(make("bert", layers=1), MatrixAdapter(8))


def test_vectors_of_the_frozen_encoder_can_be_given():
    drawn = Drawn(make("bert", layers=1).dimension())
    encoder, _ = adapted(vectors=drawn)
    np.testing.assert_array_equal(encoder.encode(["a", "b"], "candidate"), drawn.encode(["a", "b"], "candidate"))


def test_what_would_lose_the_adapter_refuses_it(tmp_path):
    encoder = adapted_encoder()
    encoder.save(tmp_path / "model")
    with pytest.raises(EncoderError, match=r"has a query adapter, which distill does not support"):
        load_encoder(str(tmp_path / "model"), plain_for="distill")
    with pytest.raises(EncoderError, match="which compress does not support"):
        compress(encoder, CompressSettings(layers=1), None)
    trimmed = EncoderConfig(name=str(tmp_path / "model"), trim=("task",))
    with pytest.raises(EncoderError, match="which trim does not support"):
        load_task_encoder(trimmed, load_benchmark("demo"), "cpu")
    with pytest.raises(EncoderError, match="which neutralise does not support"):
        require_none(encoder)
    with pytest.raises(EncoderError, match="its only output is sentence, not states"):
        encoder.encode(["a"], "question", output="states")


@pytest.mark.parametrize("routes", [{"query": [], "document": []}, {"query": [Normalize()], "document": [Normalize()]}])
def test_another_router_is_refused(routes):
    model = make("bert", layers=1).model
    model.append(Router(routes))
    with pytest.raises(EncoderError, match="a Router is supported only as a linear map of queries"):
        encoder_of(model)
    with pytest.raises(EncoderError, match="task-specific modules"):
        Encoder(model)


def test_a_listener_hears_of_batches_whether_it_is_of_the_encoder_or_of_its_adapter():
    base = load_encoder("tiny", device="cpu")
    encoder, heard = AdaptedEncoder(base, MatrixAdapter(base.dimension())), []
    for listened in (base, encoder):
        with report_progress(listened, lambda done, total: heard.append((done, total))):
            encoder.encode(["one", "two"], "question")
        encoder.encode(["three"], "question")
    assert heard == [(2, 2), (2, 2)]


def test_an_adapter_starts_at_the_identity_and_gives_the_unit_vector_of_the_matrix_times_the_query():
    adapter, generator = MatrixAdapter(6).double(), torch.Generator().manual_seed(1)
    own = F.normalize(torch.randn(5, 6, generator=generator, dtype=torch.float64), dim=1)
    assert torch.equal(adapter.matrix(), torch.eye(6, dtype=torch.float64))
    assert torch.allclose(adapter(own), own, rtol=0, atol=1e-15)
    with torch.no_grad():
        adapter.delta.add_(torch.randn(6, 6, generator=generator, dtype=torch.float64) / 5)
    assert torch.equal(adapter.matrix(), torch.eye(6, dtype=torch.float64) + adapter.delta)
    matrix = adapter.matrix().detach().numpy()
    expected = np.stack([matrix @ each / np.linalg.norm(matrix @ each) for each in own.numpy()])
    np.testing.assert_allclose(adapter(own).detach().numpy(), expected, rtol=0, atol=1e-14)
    assert torch.allclose(MatrixAdapter.of(adapter.matrix()).delta, adapter.delta, rtol=0, atol=1e-15)
