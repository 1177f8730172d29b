"""How sentence-transformers learns from translations: the step of its Trainer, without what that needs besides.

The frozen encoder encodes each batch, as `ParallelSentencesDataset` does without its cache; then `MSELoss`, clipping,
and the fused AdamW that transformers' Trainer takes by default since torch 2.8.
"""

import copy
from collections.abc import Mapping, Sequence
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
from metasearch.data.records import Translation
from metasearch.encoders.encoder import Encoder

Rows = Sequence[dict[str, Any]]
"""Texts `english` and `non_english`, and a `label`: `(D,)` for both columns or `(2, D)`."""
COLUMNS = ("english", "non_english")


class Peer:
    """Trains on pairs in random order, each column of a batch padded to its longest text.

    A step is that of transformers' Trainer: collate, loss, backward, clip, AdamW with a linear schedule, zero the
    gradients. Texts are tokenised in every step.

    Args:
        student: a copy of it is trained.
        frozen: encodes each batch.
        stage: gives the hyper-parameters.
        batch: pairs in a step.
        steps: in all.
    """

    def __init__(self, student: Encoder, frozen: Encoder, stage: Stage, batch: int, steps: int) -> None:
        self.model, self.teacher = bare(student, stage.max_length), bare(frozen, stage.max_length)
        self.stage, self.batch = stage, batch
        self.loss = MSELoss(self.model)
        self.collator = BaseDataCollator(self.model.preprocess)
        self.generator = torch.Generator().manual_seed(0)
        self.parameters = [p for p in self.model.parameters() if p.requires_grad]
        outer = stage.outer
        groups: list[dict[str, Any]] = [
            {"params": [p for p in self.parameters if p.ndim > 1]},
            {"params": [p for p in self.parameters if p.ndim <= 1], "weight_decay": 0.0},
        ]
        settings: dict[str, Any] = {"lr": outer.lr, "eps": outer.eps, "weight_decay": outer.weight_decay}
        self.optimizer = torch.optim.AdamW(groups, **settings, fused=True)
        self.schedule = get_linear_schedule_with_warmup(self.optimizer, round(outer.warmup * steps), steps)

    def seconds(self, pairs: Sequence[Translation]) -> Seconds:
        """Make a pass over pairs; return how long it took."""
        rows = [dict(zip(COLUMNS, (pair.source, pair.target), strict=True)) for pair in pairs]
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
        """Return a batch as tensors with the teacher's vectors of the English text, or of both where they differ."""
        columns = COLUMNS if self.stage.options["target"] == "own" else COLUMNS[:1]
        texts = [[row[column] for row in rows] for column in columns]
        vectors = [self.teacher.encode(column, batch_size=64, show_progress_bar=False) for column in texts]
        labels = torch.from_numpy(np.stack(vectors, axis=1) if len(vectors) > 1 else vectors[0])
        inputs: Mapping[str, Tensor] = self.collator(
            [{**row, "label": label} for row, label in zip(rows, labels, strict=True)]
        )
        return inputs

    def loss_of(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """Return the loss of a batch: the squared error, the mean of both columns."""
        columns = [
            {key.removeprefix(f"{column}_"): value for key, value in inputs.items() if key.startswith(f"{column}_")}
            for column in COLUMNS
        ]
        loss: Tensor = self.loss(columns, inputs["label"])
        return loss


def bare(encoder: Encoder, max_length: int) -> SentenceTransformer:
    """Return a copy of a model that gives vectors before normalisation, which are what the stages compare."""
    modules = [module for module in copy.deepcopy(encoder.model) if not isinstance(module, Normalize)]
    model = SentenceTransformer(modules=modules, device="cpu")
    model.max_seq_length = max_length
    return model
