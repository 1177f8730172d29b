"""A student learns translations from a teacher that follows it slowly (Ham & Kim; after BYOL, Grill et al. 2020).

The student f_θ reads the translations only, the teacher f_ξ the pivot texts only. Both begin as the encoder. With N
pairs of D dimensions, after step k of K:

    L   = 1/(N D) Σ ‖f_θ(target) − f_ξ(source)‖²
    ξ   ← τ_k ξ + (1 − τ_k) θ
    τ_k = 1 − (1 − τ) (cos(πk/K) + 1)/2

The encoder that comes out is the student. With τ = 1 the teacher is frozen.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from metasearch.algorithms.base import OuterLoss, Outputs, Reading, TextLearner
from metasearch.algorithms.sets import numbered
from metasearch.config.base import Count, FrozenConfig
from metasearch.config.recipe import Loss
from metasearch.data.records import Translation
from metasearch.encoders.encoder import Encoder

PAPER_STEPS = 105_000
"""K of the paper, which its τ of 0.99999 belongs to."""

_PART = 2**20
"""Weights that are averaged at a time."""


class EMA(TextLearner):
    """Align translations with a teacher that is the student's exponential moving average."""

    class Options(FrozenConfig):
        """Hyper-parameters of the EMA teacher.

        Attributes:
            tau: τ, the share of the teacher that an update keeps; 1 freezes it.
            total: K, steps of the schedule; 0 takes the steps of the training.
            schedule: `cosine` raises τ_k from τ to 1, `constant` leaves it at τ.
            scale_down: replace 1 − τ by (1 − τ) 105,000/K, so that the teacher moves as far as in the paper's 105,000
                steps.
            output: compared output: the `pooled` vector, or its unit vector (`sentence`).
        """

        tau: Annotated[float, Field(ge=0, le=1)] = 0.99999
        total: Count = 0
        schedule: Literal["cosine", "constant"] = "cosine"
        scale_down: bool = False
        output: Literal["sentence", "pooled"] = "pooled"

    options: Options
    data = ("parallel",)

    def __init__(self, encoder: Encoder, loss: Loss, options: Options) -> None:
        super().__init__(encoder, loss, options)
        # Without dropout for good: `train` does not reach it.
        self.teacher = deepcopy(encoder.embedder).eval().requires_grad_(False)
        student, teacher = dict(self.named_parameters()), dict(self.teacher.named_parameters())
        self._pairs = {name: (weight, teacher[name]) for name, weight in student.items()}
        # In float64, as a share of 1e-5 of a small difference would be lost in float32. MPS has no float64.
        self._exact = {
            name: weight.detach().to("cpu" if weight.device.type == "mps" else weight.device, torch.float64, copy=True)
            for name, weight in student.items()
        }
        self.total = options.total
        self.step = 0

    def begin(self, total_steps: int) -> None:
        """Take the steps of the training for K, where options name none."""
        self.total = self.options.total or total_steps

    def texts(self, pairs: Sequence[Translation]) -> Iterable[str]:
        """Return the translations: the student reads nothing else, and the teacher only their sources."""
        return (pair.target for pair in pairs)

    def readings(self, pairs: Sequence[Translation]) -> dict[str, Reading]:
        """Return the translations for the student and their sources for the teacher."""
        sources = Reading(list(numbered(pair.source for pair in pairs)), self.teacher)
        return super().readings(pairs) | {"teacher": sources}

    def loss(self, pairs: Sequence[Translation], outputs: Mapping[str, Outputs]) -> OuterLoss:
        """Return L."""
        student = outputs["student"][[pair.target for pair in pairs]]
        loss = F.mse_loss(student, outputs["teacher"][[pair.source for pair in pairs]])
        return OuterLoss(loss, {"align": loss.item()})

    @torch.no_grad()
    def after_step(self) -> None:
        """Move the teacher towards the student: ξ becomes (1 − share) ξ + share θ."""
        self.step += 1
        moved = share(self.step, self.total, self.options)
        if moved == 0:
            return  # as with τ = 1, which is not worth a pass over all weights
        for name, exact in self._exact.items():
            # In parts, as a large table in float64 would be gigabytes.
            student, teacher, average = (
                torch.split(weight.detach().view(-1), _PART) for weight in (*self._pairs[name], exact)
            )
            for now, rounded, part in zip(student, teacher, average, strict=True):
                rounded.copy_(part.lerp_(now.to(part), moved))

    def state(self) -> dict[str, Tensor]:
        """Return the teacher in float64, and k."""
        return {f"teacher.{name}": exact for name, exact in self._exact.items()} | {"step": torch.tensor(self.step)}

    @torch.no_grad()
    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """Put back what `state` returned."""
        for name, exact in self._exact.items():
            self._pairs[name][1].copy_(exact.copy_(tensors[f"teacher.{name}"]))
        self.step = int(tensors["step"])


def share(step: int, total: int, options: EMA.Options) -> float:
    """Return 1 − τ_k, the student's share in the teacher after step k of K; 0 after a cosine's K."""
    base = 1 - options.tau
    if options.scale_down:
        # A training of fewer than (1 − τ) 105,000 steps would take more than the whole student.
        base = min(1.0, base * PAPER_STEPS / total)
    if options.schedule == "constant":
        return base
    # Past K the cosine would rise again.
    return base * (math.cos(math.pi * min(step, total) / total) + 1) / 2


LEARNER = EMA
