"""Distillation beside sentence-transformers' own way to learn from translations; a case of `throughput.py`.

All train copies of the same student on the same pairs, with the recipe's batch, length, dropout and optimiser settings.
Rounds of some steps take turns in one process, so that what else the machine does falls on all. Our batches are the
first of an epoch of 50, pairs of similar length together; the peer has the pairs of our round in random order. A first
round of one step is not counted. No side is scored or writes checkpoints while it is timed.

Ours is the loop of `metasearch distill`, the peer's is `sentence_transformers_loop`. The time before our first step,
for counting tokens and filling the store, is returned apart.
"""

import copy
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.common.clock import Seconds, clock
from benchmarks.speed.loops import OuterStep
from benchmarks.speed.sentence_transformers_loop import Peer
from metasearch.config.distillation import Stage
from metasearch.data.records import Translation
from metasearch.encoders.encoder import Encoder
from metasearch.episodes.batches import Batches
from metasearch.pipelines.distill.stage import build_stage_learner, pair_lengths
from metasearch.pipelines.distill.target_cache import TargetCache
from metasearch.pipelines.factory import make_gradients

PEER = "st-live"


def measure(
    stage: Stage, student: Encoder, frozen: Encoder, pairs: Sequence[Translation], batch: int, ends: Sequence[int]
) -> tuple[list[Seconds], list[Seconds], Seconds]:
    """Return the seconds of each round, ours and the peer's, and ours before the first step for a round's pairs."""
    kind, options, wanted = build_stage_learner(stage, "stage")
    assert wanted is not None
    began = clock()
    batches = Batches(pairs, pair_lengths(pairs, student), batch, seed=0)
    counting = clock() - began
    drawn = [[pairs[i] for step in steps_of(number, ends) for i in batches.rows(step)] for number in range(len(ends))]
    used = [pair for pairs_of_round in drawn for pair in pairs_of_round]
    peer = Peer(student, frozen, stage, batch, ends[-1])
    with tempfile.TemporaryDirectory() as folder:
        texts = [text for pair in used for text in (pair.texts if wanted.translations else [pair.source])]
        began = clock()
        targets = TargetCache(Path(folder), frozen, "pooled")
        targets.add(lambda: texts)
        filling = clock() - began

        own = Encoder(copy.deepcopy(student.model), student.name, student.max_length)
        learner = kind(own, stage.loss, options, targets)
        learner.begin(ends[-1])
        step = OuterStep(learner, make_gradients(own), stage.outer, stage.dropout)
        ours, theirs = [], []
        for number in range(len(ends)):
            began = clock()
            for position in steps_of(number, ends):
                step(batches.batch(position, batch))
            ours.append(clock() - began)
            theirs.append(peer.seconds(drawn[number]))
    before = len(drawn[-1]) / len(used) * filling + counting * len(drawn[-1]) / len(pairs)
    return ours[1:], theirs[1:], before


def steps_of(number: int, ends: Sequence[int]) -> range:
    """Return the steps of a round, from the last step of each round."""
    return range(ends[number - 1] if number else 0, ends[number])
