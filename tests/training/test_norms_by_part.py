"""The norm of a gradient, part by part, whatever a backbone calls its layers."""

import pytest
import torch

from metasearch.training.gradients import norms_by_part


def parameter(*gradient):
    """Return a parameter with such a gradient, or with none."""
    made = torch.nn.Parameter(torch.zeros(len(gradient) or 2))
    made.grad = torch.tensor(gradient) if gradient else None
    return made


def test_parts_are_listed_in_the_order_of_the_network_with_the_rest_last():
    found = norms_by_part(
        {
            "model.0.model.embeddings.word_embeddings.weight": parameter(3.0, 0.0),
            "model.0.model.embeddings.LayerNorm.weight": parameter(0.0, 4.0),
            "model.0.model.pooler.dense.weight": parameter(),
            "model.0.model.encoder.layer.0.output.dense.weight": parameter(1.0),
            "model.0.model.encoder.layer.11.output.dense.weight": parameter(2.0),
            "rate.model.0.model.encoder.layer.0.output.dense.weight": parameter(7.0),
        }
    )
    expected = {"embeddings": 5.0, "layer 0": 1.0, "layer 11": 2.0, "rate: layer 0": 7.0, "the rest": 0.0}
    assert list(found.items()) == [(name, pytest.approx(norm)) for name, norm in expected.items()]


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("model.0.model.transformer.layer.3.ffn.lin1.weight", "layer 3"),  # DistilBERT
        ("model.0.model.layers.3.mlp.Wo.weight", "layer 3"),  # ModernBERT
        ("model.0.model.backbone.encoder.layer.2.output.dense.bias", "layer 2"),
        ("model.0.embedding.weight", "embeddings"),  # StaticEmbedding
        ("teacher.model.0.model.embeddings.position_embeddings.weight", "teacher: embeddings"),
        ("head.weight", "the rest"),
    ],
)
def test_a_name_tells_its_part(name, part):
    assert list(norms_by_part({name: parameter(1.0)})) == [part]


def test_rows_of_a_sparse_gradient_count_as_the_whole():
    table = torch.nn.Parameter(torch.zeros(5, 2))
    table.grad = torch.sparse_coo_tensor([[1, 3]], [[3.0, 0.0], [0.0, 4.0]], (5, 2)).coalesce()
    assert norms_by_part({"model.0.embedding.weight": table}) == {"embeddings": pytest.approx(5.0)}
