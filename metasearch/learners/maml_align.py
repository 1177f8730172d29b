"""MAML-Align: a teacher's meta-transfer X→Y is distilled into a student's Y→Z, over the set Y that they share.

MAML-Align paper, Algorithm 3. With B episodes, θ_T the weights after n inner steps on X, θ_S those after n′ on Y:

    L_task = (Σ_j L_Y(θ_T,j) + Σ_j L_Z(θ_S,j)) / 2B
    L_kd   = (Σ_j L_Y(θ_T,j) − Σ_j L_Y(θ))²
    L      = L_task + λ L_kd

The student's loss on Y is taken before its inner step, as in the authors' code (Algorithm 2 leaves that open), and the
gradient flows into both sides of L_kd. Teacher and student share θ unless told otherwise.
"""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Literal

import torch
from torch import Tensor, nn

from metasearch.encoders.encoder import Encoder
from metasearch.episodes.episode import Episode
from metasearch.learners.adapt import InnerOptions
from metasearch.learners.base import Learner, OuterLoss, Values, reduce
from metasearch.spec.declared import Count, NonNegative, Positive, Rate
from metasearch.spec.recipe import Loss

Losses = tuple[Tensor, Tensor, Tensor]
"""L_Y(θ_T), L_Y(θ) and L_Z(θ_S) of an episode."""


class MAMLAlign(Learner):
    """Meta-distillation over episodes of three sets."""

    class Options(InnerOptions):
        """Hyper-parameters of MAML-Align.

        Attributes:
            inner_lr: α, the rate of the inner steps of both teacher and student.
            inner_steps: n, the teacher's inner steps on X.
            student_inner_steps: n′, the student's inner steps on Y; the authors' code takes none.
            first_order: ignore how the inner gradients depend on the initial weights.
            kd_weight: λ.
            task_reduction: `mean` divides L_task by 2B as the authors' code does, `sum` by 2 as Algorithm 3 does.
            kd_reduction: `sum` squares the difference of batch sums (paper and code), `mean` that of batch means,
                `per-task` averages the squared differences of the episodes.
            detach_teacher: let L_kd teach the student only.
            shared: one θ for teacher and student. If not, the teacher is a copy of its own, trained along, and the
                encoder is the student.
        """

        inner_lr: Rate = 1e-3
        inner_steps: Positive = 5
        student_inner_steps: Count = 1
        first_order: bool = True
        kd_weight: NonNegative = 0.5
        task_reduction: Literal["mean", "sum"] = "mean"
        kd_reduction: Literal["sum", "mean", "per-task"] = "sum"
        detach_teacher: bool = False
        shared: bool = True

    options: Options
    links = (3,)

    def __init__(self, encoder: Encoder, loss: Loss, options: Options) -> None:
        super().__init__(encoder, loss, options)
        self.teacher: nn.Module = encoder.embedder if options.shared else deepcopy(encoder.embedder)

    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Yield the student's weights, and the teacher's where it has its own."""
        yield from super().named_parameters()
        if not self.options.shared:
            yield from ((f"teacher.{n}", p) for n, p in self.teacher.named_parameters() if p.requires_grad)

    def train(self, mode: bool) -> None:
        """Turn dropout on or off, the teacher's too."""
        super().train(mode)
        self.teacher.train(mode)

    def outer_loss(self, episodes: Sequence[Episode]) -> OuterLoss:
        """Return L of a meta-batch."""
        return self.of_losses([self._episode(episode) for episode in episodes])

    def values(self, shard: Sequence[Episode]) -> Values:
        """Return L_Y(θ_T), L_Y(θ) and L_Z(θ_S) of each episode, `(3,)`."""
        return [torch.stack(self._episode(episode)) for episode in shard]

    def combine(self, episodes: Sequence[Episode], values: Sequence[Values]) -> OuterLoss:
        """Return L: its gap L_kd is that of all episodes, and not the mean of those of the shards."""
        return self.of_losses([(one[0], one[1], one[2]) for shard in values for one in shard])

    def of_losses(self, losses: Sequence[Losses]) -> OuterLoss:
        """Return L and its terms from L_Y(θ_T), L_Y(θ) and L_Z(θ_S) of each episode."""
        teacher, student, final = (list(column) for column in zip(*losses, strict=True))
        # The mean over both lists divides by 2B.
        task = reduce([*teacher, *final], self.options.task_reduction)
        if self.options.task_reduction == "sum":
            task = task / 2
        kd = self._distillation(teacher, student)
        total = task + self.options.kd_weight * kd
        return OuterLoss(total, {"task": task.item(), "kd": kd.item()})

    def _episode(self, episode: Episode) -> Losses:
        """Return L_Y(θ_T), L_Y(θ) and L_Z(θ_S) of one episode."""
        x, y, z = (self.prepare(examples) for examples in episode.sets)
        taught = self.adapted(x, self.options.inner_steps, self.options.inner_lr, self.teacher)
        teacher = self.loss(taught, y)
        fast, rates = self.fast(), self.adaptation.rates(self.options.inner_lr)
        student = self.loss(fast, y)
        for step in range(self.options.student_inner_steps):
            # The first inner step uses the very loss that is distilled, which must stay differentiable.
            fast.adapt(student if step == 0 else self.loss(fast, y), rates, retain_graph=step == 0)
        return teacher, student, self.loss(fast, z)

    def _distillation(self, teacher: list[Tensor], student: list[Tensor]) -> Tensor:
        if self.options.detach_teacher:
            teacher = [loss.detach() for loss in teacher]
        gaps = [t - s for t, s in zip(teacher, student, strict=True)]
        if self.options.kd_reduction == "per-task":
            return reduce([gap**2 for gap in gaps], "mean")
        return reduce(gaps, self.options.kd_reduction) ** 2


LEARNER = MAMLAlign
