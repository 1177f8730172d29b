"""What an outer step takes of memory, told before the first one; layers are computed again where it is too much."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from metasearch.encoders.encoder import Embedder
from metasearch.episodes.episode import Episode
from metasearch.errors import ConfigError, OutOfMemory
from metasearch.fast import FastGradients
from metasearch.fast.encoder import FastEncoder
from metasearch.fast.gradients import FORMS
from metasearch.fast.memory import capacity, most_tokens
from metasearch.learners.base import Learner
from metasearch.learners.gradients import ReferenceGradients
from metasearch.learners.texts import TextLearner
from metasearch.runs.ranks import Rank
from metasearch.spec.recipe import Outer
from metasearch.training.activations import Activations, Group, groups_of, words_of
from metasearch.training.allocator import return_memory
from metasearch.training.processes import ALONE
from metasearch.training.room import MOMENTS
from metasearch.training.trainer import Trainer

log = logging.getLogger(__name__)

_SHARE = 0.9
"""Of the memory there is; the rest is for the process itself and for results that come and go."""


@dataclass(frozen=True)
class StepMemory:
    """What an outer step takes, in bytes.

    Attributes:
        parts: `weights`, of the encoder and of what its learner keeps beside it, and the best ones where they lie on
            the device; `gradients`, the outer one, and weights and gradients of inner steps; `optimiser`, its state
            once it has seen every word of the table; `activations`, what autograd keeps until the way back, of all that
            is computed at the same time.
        there: what the device has.
        graphs: the graphs of second-order inner steps, whether they are kept, and so among the activations, or not.
    """

    parts: Mapping[str, int]
    there: int
    graphs: int = 0

    @property
    def needed(self) -> int:
        """All of it."""
        return sum(self.parts.values())

    @property
    def fits(self) -> bool:
        """Whether the device has that much to give."""
        return self.needed <= _SHARE * self.there

    def __str__(self) -> str:
        """Return what is needed, of what is there, and its parts."""
        listed = ", ".join(f"{name} {shown(size)}" for name, size in self.parts.items())
        return f"{shown(self.needed)} of {shown(self.there)} ({listed})"


def require_memory(trainer: Trainer) -> Trainer:
    """Return a training; log what its first outer step takes, and let its gradients compute layers again if need be.

    There is need where checkpointing is `auto`, and the step would not fit.

    Raises:
        ConfigError: texts are to be computed again, and the gradients or the learner cannot.
        OutOfMemory: with `auto`, where it does not fit in that way either.
    """
    learner, gradients = trainer.learner, trainer.gradients
    # A function of somebody else may do anything, and without steps there is no meta-batch.
    if not isinstance(gradients, ReferenceGradients) or not trainer.schedule.total:
        return trainer
    if gradients.checkpointing == "texts" and not _has_fast_form(gradients, learner):
        raise ConfigError(
            f"--checkpointing texts is of fast gradients, which there are none of here for {type(learner).__name__}; "
            "--checkpointing on computes layers again"
        )
    phase, position = trainer.schedule.at(0)
    episodes = phase.episodes.batch(position, trainer.schedule.batch)
    learner.train(trainer.dropout)
    given = learner, gradients, episodes, trainer.settings, trainer.precision == "bf16", trainer.processes.rank
    kept = found = step_memory(*given)
    automatic = gradients.checkpointing == "auto" and not kept.fits
    if automatic:
        gradients.checkpointing = "on"
        found = step_memory(*given)
    learner.train(False)
    takes = f"an outer step takes about {found} on {learner.encoder.device}"
    if automatic and not found.fits:
        raise OutOfMemory(
            f"{takes}, with layers that are computed again on the way back. Less is needed with a smaller "
            "budget.meta_batch or budget.batch, episodes.k, episodes.q or n_neg, a shorter max_length, --trim, "
            "--precision bf16 or, in first order, --checkpointing texts; --checkpointing on tries it all the same"
        )
    # By the first meta-batch, whole, in every process and in a run that goes on, so that all have the same bits.
    if found.graphs and not trainer.dropout and _has_fast_form(gradients, learner):
        gradients.encoder.settle(found.graphs)
    again = ""
    if gradients.checkpointing in ("on", "texts"):
        again = f"; {_again(learner, gradients)} are computed again on the way back"
        return_memory()
    log.info("memory: %s%s%s", takes, again, f"; otherwise it would be {shown(kept.needed)}" if automatic else "")
    return trainer


def step_memory(
    learner: Learner,
    gradients: ReferenceGradients,
    episodes: Sequence[Episode],
    outer: Outer,
    bf16: bool = False,
    rank: Rank = ALONE.rank,
) -> StepMemory:
    """Return what the outer step of a meta-batch takes in one process.

    Args:
        learner: what is trained, with dropout as it will be.
        gradients: how its outer gradient is taken, and what is computed again for it on the way back.
        episodes: the meta-batch.
        outer: settings of the optimiser.
        bf16: whether forward passes run in bfloat16.
        rank: which process of how many; those of one machine share its memory, unless each has a GPU of its own.
    """
    encoder, groups = learner.encoder, groups_of(learner, episodes)
    # A learner without a fast form takes the reference's way in any case.
    fast = gradients.encoder if _has_fast_form(gradients, learner) else None
    size = sum(parameter.nbytes for _, parameter in learner.named_parameters())
    moved = size - (_rows_apart(fast, groups) if fast else 0)
    own = moved - (_still(learner, fast, groups) if fast else 0)  # the reference copies what does not move, too
    steps = _inner_steps(learner)
    # The reference keeps the graphs of all episodes until the end, fast gradients those of one job for each thread.
    # Of a loss of outputs the graphs of all texts are kept, and only the way there has threads.
    jobs = fast.workers if fast else sum(len(episode.sets) - 1 for episode in episodes)
    of_texts = isinstance(learner, TextLearner)
    at_once = None if fast is None or of_texts else jobs
    # A group has one thread, or that of texts those of all processes.
    most = _most(learner, gradients, jobs * rank.count if of_texts else 1)
    passes = Activations(learner, groups, bf16, gradients.checkpointing == "on", most)
    activations = passes.of(at_once, padded=fast is None) // (rank.count if of_texts else 1)
    points, graphs = 0, (steps + 1) * activations if passes.second_order and steps else 0
    if graphs:
        if fast is None or fast.keeps_graphs(graphs):
            activations = graphs
        else:
            points = steps * own * jobs
    on_cpu = encoder.device.type == "cpu"
    best = size if on_cpu else 0
    parts = {
        "weights": encoder.size + sum(tensor.nbytes for tensor in learner.state().values()) + best,
        # A job has its own weights where they move, and its gradient.
        "gradients": moved * (1 + jobs) + own * (steps > 0) * jobs + points,
        "optimiser": MOMENTS[outer.optimizer] * size,
        "activations": activations,
    }
    return StepMemory(parts, capacity(encoder.device) // (rank.beside if on_cpu else 1), graphs)


def _inner_steps(learner: Learner) -> int:
    """Return how many a transfer has; of second order one at least, whatever the options are called."""
    named = (getattr(learner.options, name, 0) for name in ("inner_steps", "student_inner_steps"))
    return max(*named, int(learner.second_order))


def _again(learner: Learner, gradients: ReferenceGradients) -> str:
    """Return what is computed again on the way back, in words."""
    if gradients.checkpointing == "on":
        return "layers"
    return "a few texts at a time" if _most(learner, gradients, 1) else "all texts of a pass"


def _most(learner: Learner, gradients: ReferenceGradients, threads: int) -> int | None:
    """Return how many tokens are there at a time, by threads, where a few texts are computed again; else None."""
    # As `metasearch.fast.layout` cuts them. In second order the graph of an inner gradient keeps all of them.
    cut = isinstance(learner.encoder.embedder, Embedder)
    if gradients.checkpointing != "texts" or not cut or learner.second_order:
        return None
    return threads * most_tokens(learner.encoder.device)


def _has_fast_form(gradients: ReferenceGradients, learner: Learner) -> TypeGuard[FastGradients]:
    return isinstance(gradients, FastGradients) and type(learner) in FORMS


def _rows_apart(fast: FastEncoder, groups: Sequence[Group]) -> int:
    """Return the bytes of the rows of a sliced word table that a meta-batch has no word of, which do not move."""
    if fast.plan.table is None:
        return 0
    table = fast.weights[fast.plan.table]
    return (len(table) - words_of(fast.encoder, groups)) * table[0].nbytes


def _still(learner: Learner, fast: FastEncoder, groups: Sequence[Group]) -> int:
    """Return the bytes of the weights that inner steps leave as they are, of which a job has no copy."""
    shifts = learner.adaptation.shifts
    size = sum(weight.nbytes for weight, shifted in zip(fast.weights, shifts, strict=True) if not shifted)
    table = fast.plan.table
    return size if table is None or shifts[table] else size - _rows_apart(fast, groups)


def shown(size: int) -> str:
    """Return bytes as a message has them."""
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.0f} MiB"
