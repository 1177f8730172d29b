"""MAML-Align with other distillation terms, larger weights of them, and inner steps by `inner_fall`.

`loss-gap` is the paper's term. The two others distil what the teacher says of Y, not its loss there. The teacher's side
is a constant, and each is a mean over episodes:

    scores      L_kd = mean_q KL(softmax_c(cos_T(q, c) / τ) ‖ softmax_c(cos_θ(q, c) / τ))    (Hinton et al. 2015)
    embeddings  L_kd = mean_t (1 − cos(t_T, t_θ))

with q the distinct texts of the first column of Y, such as questions, c the candidates or second texts, and t all of
them.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from benchmarks.learners.maml_fall import Fall, FallingLearner
from metasearch.algorithms.base import Values
from metasearch.algorithms.inner_loop import Model
from metasearch.algorithms.losses.base import cosines
from metasearch.algorithms.maml_align import MAMLAlign
from metasearch.algorithms.sets import Prepared, vectors_of
from metasearch.config.base import NonNegative, Rate


class MAMLAlignTerms(FallingLearner, MAMLAlign):
    """Meta-distillation with a choice of its term."""

    class Options(MAMLAlign.Options):
        """MAML-Align's, and our own.

        Attributes:
            distil: the term.
            kd_temperature: τ of `scores`.
            kd_share: replaces `kd_weight`: λ L_kd is this share of L_task, as λ = kd_share · ΣL_task / ΣL_kd over the
                outer steps so far.
            inner_fall: replaces `inner_lr`, see `maml_fall`.
        """

        distil: Literal["loss-gap", "scores", "embeddings"] = "loss-gap"
        kd_temperature: Rate = 0.05
        kd_share: NonNegative | None = None
        inner_fall: Fall = None

    options: Options

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._sums, self._now = torch.zeros(2, 2, dtype=torch.float64)

    def losses(self, model: Model, sets: Sequence[Prepared]) -> Iterator[tuple[str, Tensor]]:
        """Yield L_Y(θ_T), then L_Y(θ) for the paper's term or L_kd for another, and L_Z(θ_S)."""
        x, y, z = sets
        taught = vectors_of(self.adapted(model, x, self.options.inner_steps), y)
        yield "teacher", self.loss_of(taught, y)
        if self.options.distil == "loss-gap":
            yield "student", self.loss(model, y)
        else:
            yield "kd", self._divergence([vectors.detach() for vectors in taught], vectors_of(model, y), y)
        yield "final", self.loss(self.adapted(model, y, self.options.student_inner_steps), z)

    def _divergence(self, teacher: Sequence[Tensor], student: Sequence[Tensor], y: Prepared) -> Tensor:
        """Return L_kd on `scores` or `embeddings`, from tower vectors `(texts, D)`."""
        if self.options.distil == "embeddings":
            return 1 - torch.cat([(t * s).sum(1) for t, s in zip(teacher, student, strict=True)]).mean()
        expected, found = (self._log_shares(vectors, y) for vectors in (teacher, student))
        return (expected.exp() * (expected - found)).sum(1).mean()

    def _log_shares(self, vectors: Sequence[Tensor], y: Prepared) -> Tensor:
        """Return log softmax(cos(q, c) / τ), `(questions, candidates)`."""
        # A translation of a question is no candidate.
        (tower, rows), *others = (place for name, place in y.columns.items() if name != "translation")
        columns = {place: torch.cat([rows for own, rows in others if own == place]) for place, _ in others}
        candidates = torch.cat([vectors[place][torch.unique(rows)] for place, rows in columns.items()])
        questions = vectors[tower][torch.unique(rows)]
        return (cosines(questions, candidates) / self.options.kd_temperature).log_softmax(1)

    def distillation(self, values: Values) -> Tensor:
        """Return L_kd."""
        return values["kd"].mean() if "kd" in values else super().distillation(values)

    def weight(self, task: Tensor, kd: Tensor) -> float:
        """Return λ."""
        if self.options.kd_share is None:
            return super().weight(task, kd)
        self._now = torch.tensor([task.item(), kd.item()], dtype=torch.float64)
        of_task, of_kd = (self._sums + self._now).tolist()
        # Where teacher and student are the same but for rounding, a divergence may be below 0.
        return float(self.options.kd_share * of_task / of_kd) if of_kd > 0 else 0.0

    def after_step(self) -> None:
        """Add the step's terms to the sums for `kd_share`."""
        super().after_step()
        self._sums = self._sums + self._now

    def state(self) -> dict[str, Tensor]:
        """Return both terms' sums."""
        return {"kd_sums": self._sums}

    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """Put the sums back."""
        self._sums = tensors["kd_sums"].clone()


LEARNER = MAMLAlignTerms
