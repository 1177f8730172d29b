"""The benchmark of distillation runs, compares like with like, and counts as it says. No time is asserted here."""

from collections import Counter

import numpy as np
import pytest

from benchmarks.speed import distillation_throughput as script
from benchmarks.speed import sentence_transformers_loop as peer
from benchmarks.speed.students import read_pairs
from metasearch.config.library import load_distillation
from metasearch.config.recipe import MaxLength
from metasearch.encoders.builtin import tiny
from metasearch.episodes.batches import Batches
from metasearch.pipelines.distill.target_store import stored_targets

EPOCHS = {"student": 20, "contrast": 60}
LIMIT = 128


@pytest.fixture
def still():
    """Return the stages of the recipe without dropout, by name."""
    stages = load_distillation("compress").stages
    return {name: stages[name].model_copy(update={"dropout": False}) for name in EPOCHS}


def encoder(seed):
    return tiny.build(MaxLength(text=LIMIT), seed)


@pytest.mark.parametrize("name", EPOCHS)
def test_both_sides_learn_the_same_loss_of_a_batch(still, name, tmp_path):
    """The peer takes the mean over the two columns, where the paper adds them; the contrastive term is ours alone."""
    stage, student, frozen = still[name], encoder(0), encoder(1)
    pairs = read_pairs(None)[:8]
    kind, options, wanted = script.learner_of(stage, "stage")
    targets = stored_targets(tmp_path, frozen, [text for p in pairs for text in p.texts], "text", "pooled")
    ours = kind(student, stage.loss, options, targets).outer_loss(Batches(pairs, [1] * 8, 8, seed=0).batch(0))
    rows = [{"english": pair.source, "non_english": pair.target} for pair in pairs]
    theirs = peer.Peer(peer.bare(student, LIMIT), stage, 8, 1, teacher=peer.bare(frozen, LIMIT))
    theirs.model.eval()
    assert wanted.translations == (name == "student")
    assert ours.terms["match"] == pytest.approx(2 * theirs.loss_of(theirs.collate(rows)).item(), rel=1e-5)
    assert ("contrast" in ours.terms) == (name == "contrast")


def test_the_peer_is_given_the_pairs_of_our_round_and_no_others(still, monkeypatch):
    trained, given = [], []
    batch = Batches.batch

    def noted(self, step, size=1):
        trained.append(batch(self, step, size))
        return trained[-1]

    def peers(ways, stage, student, frozen, rounds):
        given.extend(rounds)
        return {"st-live": lambda number: np.array([1.0, 2.0])}, np.zeros(2)

    monkeypatch.setattr(Batches, "batch", noted)
    monkeypatch.setattr(script, "peers_of", peers)
    pairs = read_pairs(None)[:24]
    seconds, _ = script.measure(still["contrast"], encoder(0), encoder(1), pairs, 4, [1, 3, 5], ["st-live"])
    ours = [
        Counter(pair for [episode] in trained[a:b] for pair in episode.sets[0].examples)
        for a, b in [(0, 1), (1, 3), (3, 5)]
    ]
    assert [Counter(pairs) for pairs in given] == ours
    assert [len(pairs) for pairs in given] == [4, 2 * 4, 2 * 4]
    assert len(seconds["metasearch"]) == 2
    assert np.array(seconds["st-live"]).tolist() == [[1.0, 2.0], [1.0, 2.0]]


def test_the_peer_takes_a_step_for_each_batch_and_changes_its_student_alone(still):
    student, frozen = encoder(0), encoder(1)
    before = student.fingerprint, frozen.fingerprint
    theirs = peer.Peer(peer.bare(student, LIMIT), still["student"], 2, 2, teacher=peer.bare(frozen, LIMIT))
    first = theirs.model[0].auto_model.embeddings.word_embeddings.weight.detach().clone()
    rows = [{"english": text, "non_english": f"{text} {text}"} for text in ("one", "two", "three")]
    assert (theirs.seconds(rows) > 0).all()
    assert theirs.schedule.last_epoch == 2
    assert not first.equal(theirs.model[0].auto_model.embeddings.word_embeddings.weight)
    assert (student.fingerprint, frozen.fingerprint) == before
