"""Distillation beside sentence-transformers' own way to learn from translations; a case of `throughput.py`.

All train copies of the same student on the same pairs, with the recipe's batch, length, dropout and optimiser settings.
Rounds of some steps take turns in one process, so that what else the machine does falls on all. Our batches are the
first of an epoch of 50, pairs of similar length together; the peer has the pairs of our round in random order. A first
round of one step is not counted. No side is scored or writes checkpoints while it is timed.

Ours is the loop of `metasearch distill`. The peer's ways are

- `st-live`: the frozen encoder encodes each batch, as `ParallelSentencesDataset` does without its cache; then
  `MSELoss`, clipping, and the fused AdamW that transformers' Trainer takes by default since torch 2.8;
- `st-live-loop`: the same with torch's default AdamW, a loop on a CPU, which the older `fit` takes;
- `st-labels`: all vectors computed before training, as `make_multilingual.py` does; fused AdamW.

The time before the first step (ours: counting tokens and filling the store; of `st-labels`: the vectors) is returned
apart.
"""

import copy
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.common.clock import Seconds, clock
from benchmarks.speed.outer_step import OuterStep
from benchmarks.speed.sentence_transformers_loop import WAYS as OF_PEER
from benchmarks.speed.sentence_transformers_loop import peers_of
from metasearch.config.distillation import Stage
from metasearch.data.translation import Translation
from metasearch.encoders.encoder import Encoder
from metasearch.episodes.batches import Batches
from metasearch.pipelines.distill.sources import Source
from metasearch.pipelines.distill.stage import build_stage_learner
from metasearch.pipelines.distill.target_cache import cached_targets
from metasearch.pipelines.factory import make_gradients

WAYS = OF_PEER


def measure(
    stage: Stage,
    student: Encoder,
    frozen: Encoder,
    pairs: Sequence[Translation],
    batch: int,
    ends: Sequence[int],
    ways: Sequence[str],
) -> tuple[dict[str, list[Seconds]], dict[str, Seconds]]:
    """Return the seconds of each round, and those before the first step for a round's share of pairs, by way."""
    kind, options, wanted = build_stage_learner(stage, "stage")
    assert wanted is not None
    began = clock()
    batches = Batches(pairs, Source.lengths(pairs, student), batch, seed=0)
    counting = clock() - began
    drawn = [[pairs[i] for step in steps_of(number, ends) for i in batches.rows(step)] for number in range(len(ends))]
    used = [pair for pairs_of_round in drawn for pair in pairs_of_round]
    peers, labelling = peers_of([way for way in ways if way in OF_PEER], stage, student, frozen, drawn)
    with tempfile.TemporaryDirectory() as folder:
        texts = [text for pair in used for text in (pair.texts if wanted.translations else [pair.source])]
        began = clock()
        targets = cached_targets(Path(folder), frozen, texts, "text", "pooled")
        filling = clock() - began

        own = Encoder(copy.deepcopy(student.model), student.name, student.max_length)
        learner = kind(own, stage.loss, options, targets)
        learner.begin(ends[-1])
        ours = in_rounds(OuterStep(learner, make_gradients(own), stage.outer, stage.dropout), batches, batch, ends)
        runs = {"metasearch": ours, **peers}
        seconds: dict[str, list[Seconds]] = {way: [] for way in runs}
        for number in range(len(ends)):
            for way, run in runs.items():
                seconds[way].append(run(number))
    share = len(drawn[-1]) / len(used)
    own_share = share * filling + counting * len(drawn[-1]) / len(pairs)
    before = {"metasearch": own_share, "st-labels": share * labelling}
    return {way: taken[1:] for way, taken in seconds.items()}, before


def steps_of(number: int, ends: Sequence[int]) -> range:
    """Return the steps of a round, from the last step of each round."""
    return range(ends[number - 1] if number else 0, ends[number])


def in_rounds(step: OuterStep, batches: Batches, batch: int, ends: Sequence[int]) -> Callable[[int], Seconds]:
    """Return what takes the steps of a round by its number and returns their seconds."""

    def run(number: int) -> Seconds:
        began = clock()
        for position in steps_of(number, ends):
            step(batches.batch(position, batch))
        return clock() - began

    return run
