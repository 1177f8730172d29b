"""The outer gradient of a meta-batch in shards, which one process computes one after another, or several at once.

    values of my shards → values of all shards → the loss of the meta-batch → gradients of my shards → their sum

The loss is that of the whole meta-batch: a loss that couples episodes or compares texts, such as MAML-Align's or a
contrast, sees all of them, and the gradient is that of one shard but for rounding and dropout.
"""

from collections.abc import Sequence

import torch

from metasearch.episodes.episode import Episode
from metasearch.fast import FastGradients
from metasearch.fast.memory import not_enough, out_of_memory
from metasearch.learners.base import Learner, OuterLoss
from metasearch.learners.gradients import Gradients, dense_parts, pull, put, take_off
from metasearch.spec.seeding import seed_of
from metasearch.training.adding import TreeSum, added
from metasearch.training.processes import Processes


def outer_gradient(
    gradients: Gradients, learner: Learner, episodes: Sequence[Episode], shards: int, processes: Processes
) -> OuterLoss:
    """Put the outer gradient of a meta-batch into `.grad`, which must be empty, and return the loss.

    With one shard it is what `gradients` computes. With more, shard s draws its dropout from (torch's seed, s).

    Raises:
        OutOfMemory: memory does not suffice, in whatever way the gradients can be taken.
    """
    try:
        if shards == 1:
            return gradients(learner, episodes)
        return _in_shards(gradients, learner, episodes, shards, processes)
    except RuntimeError as error:
        if out_of_memory(error):
            texts = isinstance(gradients, FastGradients) and gradients.checkpointing != "texts"
            raise not_enough(learner.encoder.device, error, texts) from error
        raise


def _in_shards(
    gradients: Gradients, learner: Learner, episodes: Sequence[Episode], shards: int, processes: Processes
) -> OuterLoss:
    seed, mine, begun = torch.initial_seed(), processes.mine(shards), []
    for number, shard in enumerate(learner.shards(episodes, shards)):
        if number in mine:
            torch.manual_seed(seed_of(seed, "shard", number))
            begun.append(gradients.begin(learner, episodes, shard))
    everyone = processes.gather([each.values for each in begun], learner.encoder.device)
    loss, pulled, own = pull(learner, episodes, everyone)
    total = TreeSum()
    for number in mine:
        # Taken off the list, so that what a shard kept is freed when it is done.
        begun.pop(0).finish(pulled[number], everyone)
        gradient = take_off(learner)
        # What the loss depends on beside the values, such as a head, has its gradient from the loss once.
        total.add(added(gradient, own) if number == 0 else gradient)
    whole = processes.total(total.total, [parameter.detach() for _, parameter in learner.named_parameters()])
    put(learner, whole)
    return learner.reported(loss, dense_parts(whole))
