"""How sentence-transformers learns from translations: the step of its Trainer, without what that needs besides."""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.data_collator import BaseDataCollator
from sentence_transformers.sentence_transformer.losses import MSELoss
from sentence_transformers.sentence_transformer.modules import Normalize
from torch import Tensor
from torch.utils.data import DataLoader
from transformers import get_linear_schedule_with_warmup

from benchmarks.common.clock import Seconds, clock
from metasearch.config.distillation import Stage
from metasearch.data.translation import Translation
from metasearch.encoders.encoder import Encoder

Rows = Sequence[dict[str, Any]]
"""Texts `english` and `non_english`, and maybe a `label`: `(D,)` for both columns or `(2, D)`."""

COLUMNS = ("english", "non_english")
WAYS = ("st-live", "st-live-loop", "st-labels")
"""See `distillation_throughput`."""


class Peer:
    """Trains on pairs in random order, each column of a batch padded to its longest text.

    A step is that of transformers' Trainer: collate, loss, backward, clip, AdamW with a linear schedule, zero the
    gradients. Texts are tokenised in every step.

    Args:
        model: the student.
        stage: gives the hyper-parameters.
        batch: pairs in a step.
        steps: in all.
        fused: whether AdamW is the fused one; None leaves it to torch, which takes a loop on a CPU.
        teacher: encodes each batch; without one, rows are labelled beforehand.
    """

    def __init__(
        self,
        model: SentenceTransformer,
        stage: Stage,
        batch: int,
        steps: int,
        fused: bool | None = True,
        teacher: SentenceTransformer | None = None,
    ) -> None:
        self.model, self.teacher, self.stage, self.batch = model, teacher, stage, batch
        self.loss = MSELoss(model)
        self.collator = BaseDataCollator(model.preprocess)
        self.generator = torch.Generator().manual_seed(0)
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        outer = stage.outer
        groups: list[dict[str, Any]] = [
            {"params": [p for p in self.parameters if p.ndim > 1]},
            {"params": [p for p in self.parameters if p.ndim <= 1], "weight_decay": 0.0},
        ]
        self.optimizer = torch.optim.AdamW(
            groups, lr=outer.lr, eps=outer.eps, weight_decay=outer.weight_decay, fused=fused
        )
        self.schedule = get_linear_schedule_with_warmup(self.optimizer, round(outer.warmup * steps), steps)

    def seconds(self, rows: Rows) -> Seconds:
        """Make a pass over rows; returns how long it took."""
        began = clock()
        self.model.train(self.stage.dropout)
        loader: Any = DataLoader(
            rows,  # type: ignore[arg-type]  # a list is a data set
            self.batch,
            shuffle=True,
            generator=self.generator,
            collate_fn=self.collate,
        )
        for inputs in loader:
            torch.autograd.backward(self.loss_of(inputs))
            torch.nn.utils.clip_grad_norm_(self.parameters, self.stage.outer.clip or float("inf"))
            self.optimizer.step()
            self.schedule.step()
            self.optimizer.zero_grad()
        return clock() - began

    def collate(self, rows: Rows) -> Mapping[str, Tensor]:
        """Return a batch as tensors, encoded by the teacher where there is one."""
        inputs: Mapping[str, Tensor] = self.collator(list(labelled(self.teacher, rows, self.stage)))
        return inputs

    def loss_of(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """Return the loss of a batch: the squared error, the mean of both columns."""
        columns = [
            {key.removeprefix(f"{column}_"): value for key, value in inputs.items() if key.startswith(f"{column}_")}
            for column in COLUMNS
        ]
        loss: Tensor = self.loss(columns, inputs["label"])
        return loss


def labelled(teacher: SentenceTransformer | None, rows: Rows, stage: Stage) -> Rows:
    """Return rows with the teacher's vectors of the English text, or of both where a translation has its own."""
    if teacher is None:
        return rows
    columns = COLUMNS if stage.options["target"] == "own" else COLUMNS[:1]
    vectors = [teacher.encode([row[c] for row in rows], batch_size=64, show_progress_bar=False) for c in columns]
    labels = torch.from_numpy(np.stack(vectors, axis=1) if len(vectors) > 1 else vectors[0])
    return [{**row, "label": label} for row, label in zip(rows, labels, strict=True)]


def bare(encoder: Encoder, max_length: int) -> SentenceTransformer:
    """Return a copy of a model that gives vectors before normalisation, which are what the stages compare."""
    modules = [module for module in copy.deepcopy(encoder.model) if not isinstance(module, Normalize)]
    model = SentenceTransformer(modules=modules, device="cpu")
    model.max_seq_length = max_length
    return model


def peers_of(
    ways: Sequence[str], stage: Stage, student: Encoder, frozen: Encoder, rounds: Sequence[Sequence[Translation]]
) -> tuple[dict[str, Callable[[int], Seconds]], Seconds]:
    """Return what runs a round by its number and returns its seconds, by way, and the seconds that all labels took.

    Args:
        ways: some of `WAYS`.
        stage: what is trained, and how.
        student: its copy is trained by all ways, each with an optimiser of its own.
        frozen: what it learns from.
        rounds: the pairs of each; the first holds one batch.
    """
    model, teacher = bare(student, stage.max_length), bare(frozen, stage.max_length)
    batch = len(rounds[0])
    steps = sum(-(-len(pairs) // batch) for pairs in rounds)
    rows = [[dict(zip(COLUMNS, (pair.source, pair.target), strict=True)) for pair in pairs] for pairs in rounds]
    began = clock()
    labels = [labelled(teacher, few, stage) for few in rows] if "st-labels" in ways else []
    seconds = clock() - began
    settings: dict[str, tuple[bool | None, SentenceTransformer | None, Sequence[Rows]]] = {
        "st-live": (True, teacher, rows),
        "st-live-loop": (None, teacher, rows),
        "st-labels": (True, None, labels),
    }
    return {
        way: _round(Peer(model, stage, batch, steps, *settings[way][:2]), settings[way][2]) for way in ways
    }, seconds


def _round(peer: Peer, rounds: Sequence[Rows]) -> Callable[[int], Seconds]:
    return lambda number: peer.seconds(rounds[number])
