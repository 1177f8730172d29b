"""MAML-Align: a teacher's meta-transfer X→Y is distilled into a student's Y→Z, over the set Y that they share.

MAML-Align paper, Algorithm 3. With B episodes, θ_T the weights after n inner steps on X, θ_S those after n′ on Y:

    L_task = (Σ_j L_Y(θ_T,j) + Σ_j L_Z(θ_S,j)) / 2B
    L_kd   = (Σ_j L_Y(θ_T,j) − Σ_j L_Y(θ))²
    L      = L_task + λ L_kd

Teacher and student share θ. The student's loss on Y is taken before its inner step, as in the authors' code (Algorithm
2 leaves that open), and the gradient flows into both sides of L_kd.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

from torch import Tensor

from metasearch.algorithms.base import EpisodeLearner, OuterLoss, Values
from metasearch.algorithms.inner_loop import Model
from metasearch.algorithms.sets import Prepared
from metasearch.config.base import Count, FrozenConfig, NonNegative, Positive, Rate
from metasearch.episodes.episode import Episode


class MAMLAlign(EpisodeLearner):
    """Meta-distillation over episodes with three sets."""

    class Options(FrozenConfig):
        """Hyper-parameters of MAML-Align.

        Attributes:
            inner_lr: α, the rate of the inner steps of both teacher and student.
            inner_steps: n, the teacher's inner steps on X.
            student_inner_steps: n′, the student's inner steps on Y; the authors' code takes none.
            first_order: ignore how the inner gradients depend on the initial weights.
            kd_weight: λ.
            task_reduction: `mean` divides L_task by 2B as the authors' code does, `sum` by 2 as Algorithm 3 does.
            kd_reduction: `sum` squares the difference of batch sums (paper and code), `mean` that of batch means.
            detach_teacher: let L_kd teach the student only.
        """

        inner_lr: Rate = 1e-3
        inner_steps: Positive = 5
        student_inner_steps: Count = 1
        first_order: bool = True
        kd_weight: NonNegative = 0.5
        task_reduction: Literal["mean", "sum"] = "mean"
        kd_reduction: Literal["sum", "mean"] = "sum"
        detach_teacher: bool = False

    options: Options
    links = (3,)

    def losses(self, model: Model, sets: Sequence[Prepared]) -> Iterator[tuple[str, Tensor]]:
        """Yield L_Y(θ_T), L_Y(θ) and L_Z(θ_S)."""
        x, y, z = sets
        yield "teacher", self.loss(self.adapted(model, x, self.options.inner_steps), y)
        student, steps = model.clone(), self.options.student_inner_steps
        before = self.loss(student, y)
        if steps:
            # The first inner step descends along the gradient of the very loss that is distilled.
            before, steps = student.adapt_and_keep(before), steps - 1
        yield "student", before
        for _ in range(steps):
            student.adapt(self.loss(student, y))
        yield "final", self.loss(student, z)

    def combine(self, values: Values, episodes: Sequence[Episode]) -> OuterLoss:
        """Return L and its two terms."""
        count = len(values["teacher"]) if self.options.task_reduction == "mean" else 1
        task = (values["teacher"].sum() + values["final"].sum()) / (2 * count)
        kd = self.distillation(values)
        terms = {"task": task.item(), "kd": kd.item()}
        weight = self.weight(task, kd)
        share = weight * terms["kd"] / terms["task"] if terms["task"] > 0 else 0.0
        return OuterLoss(task + weight * kd, {**terms, "kd_share": share})

    def distillation(self, values: Values) -> Tensor:
        """Return L_kd."""
        teacher = values["teacher"].sum()
        gap = (teacher.detach() if self.options.detach_teacher else teacher) - values["student"].sum()
        return (gap / len(values["teacher"]) if self.options.kd_reduction == "mean" else gap) ** 2

    def weight(self, task: Tensor, kd: Tensor) -> float:
        """Return λ."""
        return self.options.kd_weight


LEARNER = MAMLAlign
