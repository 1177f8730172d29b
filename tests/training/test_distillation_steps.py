"""Distillation on packed texts resumes to the same bits."""

from itertools import cycle

import pytest
import torch

from helpers.training import Killed, Recorder, kill
from metasearch.algorithms.distill import Distill
from metasearch.algorithms.ema import EMA
from metasearch.config.recipe import EvalSchedule, Loss, Outer
from metasearch.config.roles import MaxLength
from metasearch.config.seeding import stream
from metasearch.data.records import Translation
from metasearch.encoders.builtin import tiny
from metasearch.episodes.batches import Batches
from metasearch.pipelines.distill.target_cache import TargetCache
from metasearch.training.checkpoint import CheckpointStore
from metasearch.training.outer_gradients import OuterGradients
from metasearch.training.schedule import Phase, Schedule
from metasearch.training.trainer import Trainer

STEPS = 6
ENGLISH = ["the", "key", "is", "under", "mat", "where", "does", "a", "cat", "sleep", "old", "house"]
GERMAN = ["der", "Schlüssel", "liegt", "unter", "Matte", "wo", "schläft", "eine", "Katze", "alt", "Haus"]


def sentence(words, number):
    return " ".join(stream(0, "sentence", words[0], number).choice(words, 8 + number % 20))


PAIRS = [Translation(sentence(ENGLISH, i), sentence(GERMAN, i), ("en", "de")) for i in range(48)]
ADAMW = Outer(lr=1e-3, eps=1e-6, clip=1.0, warmup=0.2, decay="linear")
OUTER = {
    "adamw": ADAMW,
    "adamw with weight decay": ADAMW.model_copy(update={"weight_decay": 0.01, "exempt_bias_and_norm": True}),
    "lars": Outer(optimizer="lars", lr=2.0, weight_decay=1e-6, exempt_bias_and_norm=True),
}
OPTIONS = {"soft": {"contrast": "soft"}, "infonce": {"contrast": "infonce"}, "ema": {"tau": 0.9}}
CASES = [("soft", "adamw"), ("ema", "lars"), ("infonce", "adamw with weight decay")]


def trainer(folder, name, outer, dropout=False, stop=None, store=None):
    """Return a trainer on two workers."""
    student = tiny.build(MaxLength(text=32), seed=0)
    if name != "ema":
        texts = [text for pair in PAIRS for text in (pair.source, pair.target)]
        targets = TargetCache(folder / "targets", tiny.build(MaxLength(text=32), seed=1), "pooled")
        targets.add(lambda: texts)
        learner = Distill(student, Loss(), Distill.Options(**OPTIONS[name]), targets)
    else:
        learner = EMA(student, Loss(), EMA.Options(**OPTIONS[name]))
    gradients = OuterGradients(student, workers=2)
    batches = Batches(PAIRS, student.lengths([pair.source for pair in PAIRS], "text"), 16, seed=0)
    schedule = Schedule((Phase("train", batches, STEPS),), total=STEPS, batch=1)
    made = Trainer(
        learner,
        gradients,
        schedule,
        OUTER[outer],
        EvalSchedule(eval_every=2, patience=0),
        dev=lambda: float(made.step),
        callback=Recorder(stop, kill),
        store=store,
        dropout=dropout,
    )
    return made


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "outer", "dropout"), [(*case, dropout) for case, dropout in zip(CASES, cycle([True, False]), strict=False)]
)
def test_a_run_that_died_resumes_to_the_bits_of_one_that_did_not(tmp_path, name, outer, dropout):
    given = {"outer": outer, "dropout": dropout}
    store = CheckpointStore(tmp_path)
    whole, dying = (trainer(tmp_path, name, **given), trainer(tmp_path, name, **given, stop=5, store=store))
    whole.fit()
    with pytest.raises(Killed):
        dying.fit()
    kept = store.load()
    assert kept.state["step"] == 4
    assert any(key.endswith("word_embeddings.weight/rows") for key in kept.optimizer) == (outer != "lars")
    resumed = trainer(tmp_path, name, **given, store=store)
    assert resumed.fit(resume=True).steps == STEPS
    for found, expected in ((resumed.parameters, whole.parameters), (resumed.learner.state(), whole.learner.state())):
        assert found.keys() == expected.keys()
        assert [key for key, value in expected.items() if not torch.equal(found[key], value)] == []
