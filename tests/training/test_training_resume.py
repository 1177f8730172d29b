"""A training on the embedded benchmark that dies or is interrupted ends with the bits of one that was not."""

import os
import signal

import pytest

from helpers.training import STEPS, Killed, Recorder, kill, same, start, weights, whole
from metasearch.pipelines import factory
from metasearch.training.checkpoint import CheckpointStore

pytestmark = pytest.mark.slow  # a model is trained


def resumed(folder, killed_at, *training, damage=None):
    """Train until a step, die, and go on with another learner; return it, its outcome and what was heard.

    Args:
        folder: the run folder.
        killed_at: step at which training dies.
        *training: as of `start`.
        damage: name of a file of the newest checkpoint that is cut short before the run goes on.
    """
    store = CheckpointStore(folder)
    dying, benchmark, chosen = start(*training)
    with pytest.raises(Killed):
        factory.fit(dying, benchmark, chosen, callback=Recorder(killed_at, kill), store=store)
    if damage:
        path = store.folder / damage
        path.write_bytes(path.read_bytes()[:-1])
    learner, *_ = start(*training)
    heard = Recorder()
    outcome = factory.fit(learner, benchmark, chosen, callback=heard, store=store, resume=True)
    return learner, outcome, heard


SCHEDULED = ["outer.warmup=0.5", "outer.decay=cosine", "outer.clip=0.1", "outer.exempt_bias_and_norm=true"]
GRADED = [f"episodes.{value}" for value in ("negatives=hard", "queries=similar", "negative_pool=8", "n_neg=2")]


def test_resume_equals_never_having_stopped(tmp_path):
    killed_at = 4
    training = ("meta-sgd-tiny", "trans", "dropout=true", "outer.weight_decay=0.1", *SCHEDULED, *GRADED)
    expected, ended, steps = whole(*training)
    learner, outcome, heard = resumed(tmp_path, killed_at, *training)
    assert same(weights(learner), expected)
    assert outcome == ended
    assert steps[-len(heard.terms) :] == heard.terms
    assert len(heard.terms) == ended.steps - (killed_at - 1) // 2 * 2  # from the last checkpoint on


def test_a_run_with_translations_and_mined_negatives_in_shards_goes_on_to_the_same_bits(tmp_path):
    changes = ["episodes.translations=true", "loss.name=infonce", "loss.align=jsd", "episodes.negatives=mined"]
    changes += ["outer.optimizer=lars", "outer.lr=1.0", *SCHEDULED]
    training = ("maml-align-tiny", "mono-bi-multi", *changes, "budget.shards=2")
    expected, ended, steps = whole(*training)
    learner, outcome, heard = resumed(tmp_path, 4, *training)
    assert (outcome, same(weights(learner), expected)) == (ended, True)
    assert steps[-len(heard.terms) :] == heard.terms


def test_a_run_goes_on_from_the_checkpoint_before_a_damaged_one_to_the_same_bits(tmp_path, caplog):
    learner, outcome, heard = resumed(tmp_path, STEPS, damage="weights.safetensors")
    expected, ended, _ = whole()
    assert (outcome, same(weights(learner), expected)) == (ended, True)
    # Checkpoints are of steps 2 and 4; training died before that of step 6.
    assert [step for step, *_ in heard.terms] == [3, 4, 5, 6]
    assert "continuing from the previous one, at outer step 2" in caplog.text


def interrupted(folder, step, *training):
    """Train with a Ctrl-C at a step; return the outcome, and what is needed to go on."""
    store = CheckpointStore(folder)
    stopped, benchmark, recipe = start(*training)
    ring = Recorder(step, lambda: os.kill(os.getpid(), signal.SIGINT))
    return factory.fit(stopped, benchmark, recipe, callback=ring, store=store), store, benchmark, recipe


def test_an_interrupt_ends_after_the_step_with_a_checkpoint_that_resumes_exactly(tmp_path):
    before = signal.getsignal(signal.SIGINT)
    outcome, store, benchmark, recipe = interrupted(tmp_path, 3)
    assert (outcome.reason, outcome.steps) == ("interrupted", 3)
    assert signal.getsignal(signal.SIGINT) is before
    learner, *_ = start()
    assert factory.fit(learner, benchmark, recipe, store=store, resume=True).reason == "finished"
    assert same(weights(learner), whole()[0])


def test_an_interrupt_at_the_last_step_says_so_and_resumes_to_the_end_without_a_step(tmp_path):
    training = ("maml-tiny", "trans", "budget.patience=1", "outer.lr=1e-12")
    expected, end, _ = whole(*training)
    assert end.reason == "patience"
    outcome, store, benchmark, recipe = interrupted(tmp_path, end.steps, *training)
    assert (outcome.reason, outcome.steps) == ("interrupted", end.steps)
    learner, *_ = start(*training)
    again = Recorder()
    assert factory.fit(learner, benchmark, recipe, callback=again, store=store, resume=True) == end
    assert (again.terms, again.scores) == ([], [])
    assert same(weights(learner), expected)
