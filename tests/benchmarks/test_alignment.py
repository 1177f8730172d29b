"""The study of MAML-Align's distillation: an encoder of known vectors, the best point of a grid, and its tables."""

import numpy as np
import pytest
import torch

import metasearch as ms
from benchmarks.paper import alignment_tables
from benchmarks.paper.alignment_cells import Cell, best_points, key_of, projection_cells
from benchmarks.paper.frozen_encoder import frozen_encoder
from metasearch.config.postprocessing import NeutralSettings

CPU = torch.device("cpu")
OWN = {"encoder": "tiny", "trained": "projection"}


def row(variant, fold=0, seed=0, value=0.5, untrained=0.4, **more):
    """Return a row of a projection whose test score is the same in all languages."""
    named = {"variant": variant, "loss": "infonce", "rate": 1e-3, "steps": 4, "fold": fold, "seed": seed}
    other = {"labels": None, "dev": {}, "kd_share": None, "queries": "random", "negatives": "random"}
    return {**named, **other, **OWN, "test": {"mean": value}, "untrained": {"mean": untrained}, **more}


@pytest.mark.slow
def test_a_frozen_encoder_looks_vectors_up_and_trains_its_projection_alone(tmp_path):
    benchmark = ms.load_benchmark("demo", "mono-bi-multi", fold=0)
    plain = ms.load_encoder("tiny", benchmark.task.max_length, device="cpu")
    frozen = frozen_encoder("tiny", benchmark, tmp_path, CPU)
    question = benchmark.data.questions[3].text
    np.testing.assert_allclose(frozen.encode([question], "question"), plain.encode([question], "question"), atol=1e-6)
    assert np.isnan(frozen.encode(["Is this text part of the task?"], "question")).all()
    ms.neutralise(frozen, benchmark, NeutralSettings(texts=20))
    trained = [weight.shape for weight in frozen.embedder.parameters() if weight.requires_grad]
    width = frozen.dimension()
    assert trained == [(width, width), (width,)]
    # Vectors are read from the files that are there.
    files = sorted((tmp_path / "vectors-tiny").iterdir())
    np.save(files[0], 0 * np.load(files[0]))
    again = frozen_encoder("tiny", benchmark, tmp_path, CPU)
    assert not again.encode([benchmark.data.candidates[0].text], "candidate").any()


def test_a_row_is_known_by_its_cell_and_the_first_ones_by_less():
    cell = Cell("align", "margin1", 1e-5, 16, fold=2, seed=1)
    first = {"variant": "align", "loss": "margin1", "rate": 1e-5, "steps": 16, "fold": 2, "seed": 1, "dev": {}}
    assert key_of(first) == cell.key
    assert key_of({**first, "trained": "projection"}) != cell.key


def test_no_label_of_dev_is_read_where_labels_are_few_or_the_projection_alone_is_trained():
    assert {"budget.meta_train=24", "budget.meta_valid=8"} <= set(Cell("maml", "infonce", 1e-5, 16).settings)
    for more in ({"labels": 8}, OWN):
        assert {"budget.meta_train=32", "budget.meta_valid=0"} <= set(
            Cell("maml", "infonce", 1e-5, 16, **more).settings
        )


def test_every_recipe_of_a_cell_exists():
    grid = list(projection_cells("grid", "tiny", []))
    assert len({cell.key for cell in grid}) == len(grid)
    for cell in grid:
        assert cell.recipe.budget.meta_valid == 0


def test_other_parts_train_at_the_best_point_of_the_grid():
    grid = [
        {**row(cell.variant, dev={"0": 0.9, "4": 0.5 + cell.rate, "8": 0.5}), "loss": cell.loss, "rate": cell.rate}
        for cell in projection_cells("grid", "tiny", [])
    ]
    assert set(best_points(grid, "tiny").values()) == {(3e-3, 4)}
    chosen = list(projection_cells("labels", "tiny", grid))
    assert {(cell.rate, cell.steps) for cell in chosen} == {(3e-3, 4)}
    assert len(chosen) == 3 * 3 * 2 * 5 * 3  # labels × learners × losses × folds × seeds


def test_differences_are_over_folds_with_seeds_averaged():
    gains = [0.01, 0.01, 0.02, 0.03, 0.03]
    rows = [
        row(variant, fold, seed, 0.4 + gain * (variant == "maml") + 0.01 * (seed - 1))
        for variant in ("fine-tune", "maml")
        for fold, gain in enumerate(gains)
        for seed in range(3)
    ]
    # The best point of both learners; a row of another point is in no table.
    rows += [row(variant, dev={"4": 0.5}, test={}, steps=16) for variant in ("fine-tune", "maml")]
    rows.append(row("maml", value=0.9, steps=8))
    line = alignment_tables.fair_table(rows, "tiny").splitlines()[-1]
    # Of 1, 1, 2, 3, 3 the mean is 2, the deviation 1; half of the interval is 2.7764 · 1 / √5.
    half = 2.7764 / 5**0.5
    interval = f"+2.00 [{2 - half:+.2f}, {2 + half:+.2f}]"
    assert [cell.strip() for cell in line.strip("|").split("|")] == ["maml", "InfoNCE", "42.00", interval, interval, ""]
    # A fold without three seeds is no fold.
    assert len(alignment_tables.fair_table(rows[1:], "tiny").splitlines()) == 3
