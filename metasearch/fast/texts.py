"""The fast form of learners whose loss is one of the outputs of texts: the texts are encoded in parts on threads."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from metasearch.episodes.episode import Episode
from metasearch.fast.encoder import FastEncoder
from metasearch.fast.parts import Parts
from metasearch.learners.base import OuterLoss
from metasearch.learners.ema import EMA
from metasearch.learners.sets import numbered
from metasearch.learners.texts import TextLearner, rows


def gradient(learner: TextLearner, episodes: Sequence[Episode], fast: FastEncoder, bf16: bool) -> OuterLoss:
    """Take the gradient of the learner's loss of outputs."""
    pairs = learner.pairs(episodes)
    row_of = numbered(learner.texts(pairs))
    return _of_texts(learner, list(row_of), fast, bf16, lambda outputs: learner.loss_of(pairs, row_of, outputs))


def ema_gradient(learner: EMA, episodes: Sequence[Episode], fast: FastEncoder, bf16: bool) -> OuterLoss:
    """Take the gradient with the vectors of the teacher, too, computed in parts."""
    pairs = learner.pairs(episodes)
    row_of, row_of_source = numbered(learner.texts(pairs)), numbered(pair.source for pair in pairs)
    parts = Parts(fast, list(row_of_source), learner.options.output, bf16)
    # The teacher is a copy of the student's network, so its weights can run in the student's copies.
    taught = parts.outputs(parts.batch.weights(learner.average.weights))
    teacher = rows(row_of_source, [pair.source for pair in pairs], taught)
    return _of_texts(learner, list(row_of), fast, bf16, lambda out: learner.align(pairs, row_of, out, teacher))


def _of_texts(
    learner: TextLearner, texts: Sequence[str], fast: FastEncoder, bf16: bool, outer: Callable[[Tensor], OuterLoss]
) -> OuterLoss:
    """Put the gradient of a loss of the outputs of distinct texts into `.grad`, and return the loss.

    The learner may have parameters beside the encoder's, such as a head, that the loss depends on.
    """
    parts = Parts(fast, texts, learner.options.output, bf16)
    # By identity: `in` on tensors would compare their values.
    encoders = set(map(id, fast.weights))
    beside = [parameter for _, parameter in learner.named_parameters() if id(parameter) not in encoders]
    # `Parts.gradient` asks for the loss once, as a scalar; its terms are kept here.
    losses: list[OuterLoss] = []

    def total(outputs: Tensor) -> Tensor:
        losses.append(outer(outputs))
        return losses[0].total

    of_weights, of_beside = parts.gradient(parts.batch.weights(fast.weights), total, beside)
    parts.batch.put(of_weights, fast.weights)
    for parameter, one in zip(beside, of_beside, strict=True):
        if one is not None:
            parameter.grad = one if parameter.grad is None else torch.add(parameter.grad, one)
    (loss,) = losses
    return OuterLoss(loss.total.detach(), loss.terms)
