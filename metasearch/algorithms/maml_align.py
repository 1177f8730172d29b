"""MAML-Align: a teacher's meta-transfer X→Y is distilled into a student's Y→Z, over the set Y that they share.

MAML-Align paper, Algorithm 3. With B episodes, θ_T the weights after n inner steps on X, θ_S those after n′ on Y:

    L_task = (Σ_j L_Y(θ_T,j) + Σ_j L_Z(θ_S,j)) / 2B
    L_kd   = (Σ_j L_Y(θ_T,j) − Σ_j L_Y(θ))²
    L      = L_task + λ L_kd

Teacher and student share θ. The student's loss on Y is taken before its inner step, as in the authors' code (Algorithm
2 leaves that open), and the gradient flows into both sides of L_kd.

Ours are two other terms, which distil what the teacher says of Y and not its loss there. The teacher's side is a
constant, and each is a mean over episodes:

    scores      L_kd = mean_q KL(softmax_c(cos_T(q, c) / τ) ‖ softmax_c(cos_θ(q, c) / τ))    (Hinton et al. 2015)
    embeddings  L_kd = mean_t (1 − cos(t_T, t_θ))

with q the distinct texts of the first column of Y, such as questions, c the candidates or second texts, and t all of
them.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, Self

import torch
from pydantic import model_validator
from torch import Tensor

from metasearch.algorithms.base import EpisodeLearner, OuterLoss, Values
from metasearch.algorithms.inner_loop import Model
from metasearch.algorithms.losses.base import cosines
from metasearch.algorithms.sets import Prepared, vectors_of
from metasearch.config.base import Contradiction, Count, Fraction, FrozenConfig, NonNegative, Positive, Rate
from metasearch.episodes.episode import Episode

log = logging.getLogger(__name__)

WATCHED_STEPS = 10
"""Outer steps after which a distillation term that is too small to teach is reported."""
NEGLIGIBLE = 0.01
"""Share of L_task below which the distillation term is reported."""


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
            distil: `loss-gap` is the paper's term; `scores` and `embeddings` are ours, see above.
            kd_temperature: τ of `scores`.
            kd_share: replaces `kd_weight`: λ L_kd is this share of L_task, as λ = kd_share · ΣL_task / ΣL_kd over the
                outer steps so far.
            inner_fall: replaces `inner_lr`: the share of the support loss that an inner step removes, if the loss is
                linear in the weights; see `metasearch.algorithms.inner_loop.Fall`.
        """

        inner_lr: Rate = 1e-3
        inner_steps: Positive = 5
        student_inner_steps: Count = 1
        first_order: bool = True
        kd_weight: NonNegative = 0.5
        task_reduction: Literal["mean", "sum"] = "mean"
        kd_reduction: Literal["sum", "mean"] = "sum"
        detach_teacher: bool = False
        distil: Literal["loss-gap", "scores", "embeddings"] = "loss-gap"
        kd_temperature: Rate = 0.05
        kd_share: NonNegative | None = None
        inner_fall: Fraction | None = None

        @model_validator(mode="after")
        def _check_distil(self) -> Self:
            """Refuse an option that the term does not have."""
            own = ("kd_reduction", "detach_teacher") if self.distil != "loss-gap" else ()
            for name in (*own, *(("kd_temperature",) if self.distil != "scores" else ())):
                if getattr(self, name) != type(self).model_fields[name].default:
                    raise Contradiction(f"options.distil={self.distil} has no such option", name)
            return self

    options: Options
    links = (3,)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._share = 0.0
        self._shares: list[float] = []
        self._sums = torch.zeros(2, dtype=torch.float64)
        self._now = torch.zeros(2, dtype=torch.float64)

    def losses(self, model: Model, sets: Sequence[Prepared]) -> Iterator[tuple[str, Tensor]]:
        """Yield L_Y(θ_T), then L_Y(θ) for the paper's term or L_kd for another, and L_Z(θ_S)."""
        x, y, z = sets
        taught = vectors_of(self.adapted(model, x, self.options.inner_steps), y)
        yield "teacher", self.loss_of(taught, y)
        if self.options.distil != "loss-gap":
            yield "kd", self._divergence([vectors.detach() for vectors in taught], vectors_of(model, y), y)
        student, steps = model.clone(), self.options.student_inner_steps
        if self.options.distil == "loss-gap":
            before = self.loss(student, y)
            if steps:
                # The first inner step descends along the gradient of the very loss that is distilled.
                before, steps = student.adapt_and_keep(before), steps - 1
            yield "student", before
        for _ in range(steps):
            student.adapt(self.loss(student, y))
        yield "final", self.loss(student, z)

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

    def combine(self, values: Values, episodes: Sequence[Episode]) -> OuterLoss:
        """Return L and its two terms."""
        options, count = self.options, len(values["teacher"])
        teacher, final = values["teacher"].sum(), values["final"].sum()
        task = (teacher + final) / (2 * count if options.task_reduction == "mean" else 2)
        kd = values["kd"].mean() if "kd" in values else self._gap(teacher, values["student"].sum(), count)
        terms = {"task": task.item(), "kd": kd.item()}
        weight = self._weight(task, kd)
        self._share = weight * terms["kd"] / terms["task"] if terms["task"] > 0 else 0.0
        return OuterLoss(task + weight * kd, {**terms, "kd_share": self._share})

    def _gap(self, teacher: Tensor, student: Tensor, count: int) -> Tensor:
        """Return the paper's L_kd."""
        gap = (teacher.detach() if self.options.detach_teacher else teacher) - student
        return (gap / count if self.options.kd_reduction == "mean" else gap) ** 2

    def _weight(self, task: Tensor, kd: Tensor) -> float:
        """Return λ."""
        if self.options.kd_share is None:
            return self.options.kd_weight
        self._now = torch.tensor([task.item(), kd.item()], dtype=torch.float64)
        of_task, of_kd = (self._sums + self._now).tolist()
        # Where teacher and student are the same but for rounding, a divergence may be below 0.
        return float(self.options.kd_share * of_task / of_kd) if of_kd > 0 else 0.0

    def after_step(self) -> None:
        """Add the step's terms to the sums for `kd_share`; warn once if λ L_kd stays below 1 % of L_task."""
        self._sums += self._now
        if len(self._shares) == WATCHED_STEPS:
            return
        self._shares.append(self._share)
        largest = max(self._shares)
        if len(self._shares) == WATCHED_STEPS and self.options.kd_weight and largest < NEGLIGIBLE:
            log.warning(
                f"MAML-Align: the distillation term is at most {largest:.2g} of the task loss in the first "
                f"{WATCHED_STEPS} steps, too small to teach anything; raise options.kd_weight "
                f"({self.options.kd_weight:g}) or options.inner_lr ({self.options.inner_lr:g})"
            )

    def state(self) -> dict[str, Tensor]:
        """Return both terms' sums; `kd_share` computes λ from them."""
        return {} if self.options.kd_share is None else {"kd_sums": self._sums.clone()}

    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """Put the sums back."""
        if self.options.kd_share is not None:
            self._sums.copy_(tensors["kd_sums"])


LEARNER = MAMLAlign
