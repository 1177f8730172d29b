"""The study of MAML-Align's distillation: an encoder of known vectors, the best point of a grid, and its tables."""

import sys

import numpy as np
import pytest
import torch

import metasearch as ms
from benchmarks.learners import register
from benchmarks.paper.alignment_cells import Cell, projection_cells
from benchmarks.paper.frozen_encoder import frozen_encoder
from metasearch.config import registry
from metasearch.config.projection import ProjectionSettings

CPU = torch.device("cpu")
OWN = {"encoder": "tiny", "trained": "projection"}


@pytest.mark.slow
def test_a_frozen_encoder_looks_vectors_up_and_trains_its_projection_alone(tmp_path):
    benchmark = ms.load_benchmark("demo", "mono-bi-multi", fold=0)
    plain = ms.load_encoder("tiny", benchmark.task.max_length, device="cpu")
    frozen = frozen_encoder("tiny", benchmark, tmp_path, CPU)
    question = benchmark.data.questions[3].text
    np.testing.assert_allclose(frozen.encode([question], "question"), plain.encode([question], "question"), atol=1e-6)
    assert np.isnan(frozen.encode(["Is this text part of the task?"], "question")).all()
    ms.neutralise(frozen, benchmark, ProjectionSettings(texts=20))
    trained = [weight.shape for weight in frozen.embedder.parameters() if weight.requires_grad]
    width = frozen.dimension()
    assert trained == [(width, width), (width,)]
    # Vectors are read from the files that are there.
    files = sorted((tmp_path / "vectors-tiny").iterdir())
    np.save(files[0], 0 * np.load(files[0]))
    again = frozen_encoder("tiny", benchmark, tmp_path, CPU)
    assert not again.encode([benchmark.data.candidates[0].text], "candidate").any()


def test_no_label_of_dev_is_read_where_labels_are_few_or_the_projection_alone_is_trained():
    assert {"budget.meta_train=24", "budget.meta_valid=8"} <= set(Cell("maml", "infonce", 1e-5, 16).settings)
    for more in ({"labels": 8}, OWN):
        assert {"budget.meta_train=32", "budget.meta_valid=0"} <= set(
            Cell("maml", "infonce", 1e-5, 16, **more).settings
        )


@pytest.fixture
def plug_ins(monkeypatch):
    monkeypatch.setattr("sys.path", [*sys.path])
    register()
    yield
    registry._offered.cache_clear()


@pytest.mark.usefixtures("plug_ins")
def test_every_recipe_of_a_cell_exists():
    grid = list(projection_cells("grid", "tiny", []))
    assert len({cell.key for cell in grid}) == len(grid)
    for cell in grid:
        assert cell.recipe.budget.meta_valid == 0
