"""Cells of a study that have the same weights encode each text of the task once between them."""

import numpy as np
import pytest

from helpers.crossval import inline, run
from metasearch.config.measure import Measure
from metasearch.config.postprocessing import NeutralSettings
from metasearch.data.benchmark import load_benchmark
from metasearch.encoders.encoder import Encoder
from metasearch.evaluation.evaluate import evaluate
from metasearch.pipelines.factory import load_encoder
from metasearch.pipelines.neutral import neutralise
from metasearch.pipelines.score import SharedVectors, shared_folder
from metasearch.runs.folder import RunFolder
from metasearch.runs.rows import MEAN

STUDY = ["--task=demo", "--encoder=tiny", "--mode=mono-bi", "--learner=fine-tune", "--max-steps=1", "--device=cpu"]


@pytest.fixture
def encoder():
    return load_encoder("tiny", device="cpu")


@pytest.fixture
def encoded(monkeypatch):
    """Return the texts that encoders are asked for, call by call."""
    calls, encode = [], Encoder.encode
    monkeypatch.setattr(
        Encoder, "encode", lambda self, texts, *more: calls.append((more[0], *texts)) or encode(self, texts, *more)
    )
    return calls


@pytest.mark.slow
def test_vectors_are_those_of_the_whole_task_encoded_at_once_whatever_the_fold(tmp_path, encoder):
    data = load_benchmark("demo").data
    expected = encoder.encode([candidate.text for candidate in data.candidates], "candidate")
    whole = dict(zip([candidate.text for candidate in data.candidates], expected, strict=True))
    for fold in (0, 1):
        shared = SharedVectors(encoder, tmp_path / str(fold), data, first=fold)
        asked = [candidate.text for candidate in load_benchmark("demo", fold=fold).split.test.candidates]
        assert np.array_equal(shared.encode(asked, "candidate"), np.stack([whole[text] for text in asked]))


@pytest.mark.slow
def test_each_text_is_encoded_once_per_role_and_weights(tmp_path, encoder, encoded):
    data = load_benchmark("demo").data
    for fold in range(3):
        SharedVectors(encoder, tmp_path, data, first=fold)
    assert sorted(call[0] for call in encoded) == ["candidate", "question"]

    SharedVectors(load_encoder("tiny", device="cpu", seed=1), tmp_path, data)
    assert len(encoded) == 2 * 2  # other weights, other vectors


def test_a_text_of_no_part_of_the_task_has_no_vector(tmp_path, encoder):
    shared = SharedVectors(encoder, tmp_path, load_benchmark("demo-sts").data)
    with pytest.raises(KeyError, match="no stored vector of the text 'elsewhere'"):
        shared.encode(["elsewhere"], "text")


@pytest.mark.slow
@pytest.mark.parametrize(("folds", "shares"), [("0,1", False), ("0,1,2", True)])
def test_a_study_of_three_folds_or_more_shares_the_vectors_of_its_zero_shot_cells(
    tmp_path, monkeypatch, encoded, folds, shares
):
    inline(monkeypatch)
    run(*STUDY, f"--folds={folds}", "--seeds=0", "-o", tmp_path / "study")

    cells = [tmp_path / "study" / "cells" / "zero-shot" / f"fold-{fold}-seed-0" for fold in (0, 1)]
    assert [shared_folder(cell) for cell in cells] == [tmp_path / "study" / "vectors" if shares else None] * 2
    assert (tmp_path / "study" / "vectors").is_dir() == shares
    counts = [call[0] for call in encoded]
    # Of each fold, its zero-shot and its trained cell: the latter encode dev after a step, then dev and test.
    whole = len(load_benchmark("demo").data.candidates)
    sizes = [len(call) - 1 for call in encoded if call[0] == "candidate"]
    assert (whole in sizes) == shares
    assert counts.count("candidate") == (1 + 3 * 3 if shares else 2 * (2 + 3))


@pytest.mark.slow
def test_the_neutral_cells_of_a_study_have_the_vectors_of_its_zero_shot_cells(tmp_path, monkeypatch, encoded):
    inline(monkeypatch)
    study = tmp_path / "study"
    run(*STUDY[:2], "--learner=zero-shot,neutral", "--device=cpu", "--folds=0,1,2", "--seeds=0", "-o", study)
    assert sorted(call[0] for call in encoded) == ["candidate", "question"]

    benchmark = load_benchmark("demo", fold=1)
    encoder = load_encoder("tiny", benchmark.task.max_length, device="cpu")
    neutralise(encoder, benchmark, NeutralSettings())
    wanted = evaluate(encoder, benchmark.split.test, [Measure("map", 20)]).mean("map@20")
    rows = RunFolder(study / "cells" / "neutral" / "fold-1-seed-0").results()
    where = {"split": "test", "measure": "map@20", "pool": "multilingual", "language": MEAN}
    (found,) = [row["value"] for row in rows if where.items() <= row.items()]
    assert found == pytest.approx(wanted, abs=1e-6)  # this map is applied in float64, that of the encoder in float32
