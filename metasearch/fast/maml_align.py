"""The fast form of MAML-Align: its gradient in closed form, from three sums that need no graph of another episode.

With g the gradients of Σ_j L_Y(θ_T,j), Σ_j L_Y(θ) and Σ_j L_Z(θ_S,j), and Δ the first sum less the second,

    ∇L = (g_QY + g_QZ) / 2B + 2 λ Δ (g_QY − g_SY)

The student's first inner step descends along g_SY itself, so L_Y(θ) is computed once.
"""

from collections.abc import Sequence

import torch

from metasearch.episodes.episode import Episode
from metasearch.fast.encoder import FastEncoder, Sum
from metasearch.fast.meta_batch import MetaBatch, longest_first
from metasearch.fast.network import Network
from metasearch.fast.transfer import Gradient, Transfer, transfer
from metasearch.learners.base import Values
from metasearch.learners.gradients import Begun
from metasearch.learners.maml_align import Losses, MAMLAlign
from metasearch.learners.sets import Prepared

Episodes = Sequence[Episode]


def gradient(learner: MAMLAlign, episodes: Episodes, shard: Episodes, fast: FastEncoder, bf16: bool) -> Begun:
    """Put the three sums together, each share known once all losses are (or those of its episode, for `per-task`)."""
    batch = MetaBatch(fast, [episode.sets for episode in shard], learner, bf16)
    options, rates = learner.options, learner.adaptation.rates(learner.options.inner_lr)
    taught_weights = [weight for weight in learner.teacher.parameters() if weight.requires_grad]
    teacher, student = batch.start(taught_weights), batch.start(fast.weights)
    # One mode for both transfers; the longer one decides whether graphs fit.
    most = max(options.inner_steps, options.student_inner_steps)
    mode = batch.gradient_mode(student, rates, most, len(shard))

    def work(network: Network, sets: tuple[Prepared, ...]) -> tuple[Transfer, Transfer, Transfer]:
        x, y, z = (batch.objective(network, examples) for examples in sets)
        taught = transfer(teacher, [x] * options.inner_steps, y, rates, mode)
        final = transfer(student, [y] * options.student_inner_steps, z, rates, mode, keep_inner=True)
        # Without student steps no inner loss on Y was taken, so it is taken here.
        return taught, final.inner or transfer(student, [], y), final

    by_episode = options.kd_reduction == "per-task"
    sums = [Sum(len(student)) for _ in range(3)]
    losses: list[Losses] = []
    for results in fast.each(longest_first(batch.episodes, options.inner_steps), work):
        losses.append((results[0].loss, results[1].loss, results[2].loss))
        shares = _shares(options, losses[-1:], len(episodes)) if by_episode else (1.0, 1.0, 1.0)
        for total, result, share in zip(sums, results, shares, strict=True):
            total.add(result.gradient, share)

    def finish(pulled: Gradient, everyone: Sequence[Values]) -> None:
        # A gap of batch sums is known after the last episode only, so its share is applied to whole sums.
        if not by_episode:
            found = [(one[0], one[1], one[2]) for values in everyone for one in values]
            for total, share in zip(sums, _shares(options, found, len(episodes)), strict=True):
                total.scale(share)
        taught, own, final = sums
        own.add(final.gradient)
        if options.shared:
            own.add(taught.gradient)
        else:
            batch.put(taught.gradient[: len(taught_weights)], taught_weights)
        batch.put(own.gradient[: len(fast.weights)], fast.weights)

    return Begun([torch.stack(one) for one in losses], finish)


def _shares(options: MAMLAlign.Options, losses: Sequence[Losses], count: int) -> tuple[float, float, float]:
    """Return what the gradients of L_Y(θ_T), L_Y(θ) and L_Z(θ_S) are multiplied with, for B = `count` episodes.

    The losses are those of all episodes, or of one where each has an L_kd of its own.
    """
    gap = sum((teacher - student).item() for teacher, student, _ in losses)
    # d(λ gap²) = 2 λ gap · d(gap): a mean gap brings 1/B twice, a mean of squares once.
    pull = 2 * options.kd_weight * gap / {"sum": 1, "mean": count**2, "per-task": count}[options.kd_reduction]
    task = 0.5 / count if options.task_reduction == "mean" else 0.5
    # L_Y(θ) is part of L_kd alone, so it gets no share of the task.
    return task + (0.0 if options.detach_teacher else pull), -pull, task
