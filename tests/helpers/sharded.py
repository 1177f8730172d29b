"""Trains every learner for two steps of four shards, and says which weights came out: the same for all processes."""

import copy
import hashlib
import json
from pathlib import Path

import torch

from helpers.gradients import QUERY, SUPPORT, Case, encoder_of
from metasearch.config.recipe import EvalSchedule, Outer
from metasearch.runs.callbacks import Callback
from metasearch.training.distributed import SINGLE_PROCESS, join_processes
from metasearch.training.outer_gradients import OuterGradients
from metasearch.training.schedule import Phase, Schedule
from metasearch.training.trainer import Trainer

THREE = (SUPPORT, QUERY, QUERY)
CASES = [
    Case("maml"),
    Case("maml", sizes=THREE, options=(("reduction", "sum"),)),
    Case("maml", options=(("first_order", False),)),
    Case("meta-sgd"),
    *(Case("maml-align", sizes=THREE, options=(("kd_reduction", how),)) for how in ("sum", "mean")),
    Case("maml-align", sizes=THREE, options=(("task_reduction", "sum"), ("detach_teacher", True))),
    Case("reptile"),
    Case("fine-tune"),
    Case("distill", "translations", (3,), (("output", "pooled"), ("source_share", 0.4))),
    *(Case("distill", "translations", (3,), (("contrast", kind),)) for kind in ("soft", "bool", "ce", "infonce")),
    Case("distill", "translations", (3,), (("dimensions", (4, 8)), ("source_share", 0.4))),
    Case("distill", "translations", (3,), (("output", "states"), ("target", "own"))),
    Case("ema", "translations", (3,)),
    Case("entailment", "entailments", (3,)),
]
SHARDS, STEPS = 4, 2


class Source:
    """Other episodes at every step."""

    def __init__(self, case):
        self.case = case

    def batch(self, step, size):
        return self.case.episodes(step + size)[step:]


def weights_after(case, processes=SINGLE_PROCESS, dropout=True, shards=SHARDS):
    """Return a digest of the weights after some steps, of what the learner has beside them, and of what was logged."""
    learner = case.learn(copy.deepcopy(encoder_of("bert", torch.float32)), inner_steps=1)
    told = []
    made = Trainer(
        learner,
        OuterGradients(learner.encoder),
        Schedule((Phase("train", Source(case), STEPS),), STEPS, SHARDS),
        Outer(lr=1e-2, weight_decay=0.01, clip=1.0),
        EvalSchedule(eval_every=0, patience=0, shards=shards),
        dev=lambda: 0.5,
        callback=Terms(told),
        dropout=dropout,
        processes=processes,
    )
    made.fit()
    digest = hashlib.sha256(json.dumps(told).encode())
    for name, value in {**made.parameters, **learner.state()}.items():
        digest.update(name.encode() + value.detach().numpy().tobytes())
    return digest.hexdigest()


class Terms(Callback):
    """Hears the terms of each step."""

    def __init__(self, told):
        self.told = told

    def on_step(self, step, total, phase, terms):
        self.told.append(terms)

    def on_dev(self, step, score, best):
        pass


def main(out, *names):
    """Write the digest of every case, or of those that are named."""
    torch.set_num_threads(1)
    encoder_of("bert", torch.float32)  # before: in a group, transformers saves checkpoints in the first process alone
    processes = join_processes()
    chosen = [case for case in CASES if not names or str(case) in names]
    found = {str(case): weights_after(case, processes) for case in chosen}
    values = [{"digests": torch.tensor(list(bytes.fromhex("".join(found.values()))))}]
    every = processes.gather(values, torch.device("cpu"))
    assert all(torch.equal(every[0]["digests"], other["digests"]) for other in every)
    if processes.first:
        Path(out).write_text(json.dumps(found), encoding="utf-8")
    processes.end()
