"""The fast form of learners whose loss is one of the outputs of texts: the texts are encoded in parts on threads."""

from collections.abc import Sequence

from metasearch.episodes.episode import Episode
from metasearch.fast.encoder import FastEncoder
from metasearch.fast.parts import Parts
from metasearch.fast.transfer import Gradient
from metasearch.learners.base import Values
from metasearch.learners.ema import EMA
from metasearch.learners.gradients import Begun
from metasearch.learners.texts import TextLearner


def gradient(
    learner: TextLearner, episodes: Sequence[Episode], shard: Sequence[str], fast: FastEncoder, bf16: bool
) -> Begun:
    """Encode the texts of a shard, and go back from their outputs."""
    if not shard:
        return Begun([learner.outputs(learner.encoder.embedder, shard)], lambda pulled, everyone: None)
    parts = Parts(fast, shard, learner.options.output, bf16)
    outputs, back = parts.begin(parts.batch.weights(fast.weights))

    def finish(pulled: Gradient, everyone: Sequence[Values]) -> None:
        if pulled[0] is not None:
            parts.batch.put(back(pulled[0]), fast.weights)

    return Begun([outputs], finish)


def ema_gradient(
    learner: EMA,
    episodes: Sequence[Episode],
    shard: tuple[Sequence[str], Sequence[str]],
    fast: FastEncoder,
    bf16: bool,
) -> Begun:
    """Encode the texts of the student as above, and those of the teacher, in parts as well."""
    student, sources = shard
    if sources:
        parts = Parts(fast, sources, learner.options.output, bf16)
        # The teacher is a copy of the student's network, so its weights can run in the student's copies.
        taught = parts.outputs(parts.batch.weights(learner.average.weights))
    else:
        taught = learner.outputs(learner.teacher, sources)
    begun = gradient(learner, episodes, student, fast, bf16)
    return Begun([*begun.values, taught], begun.finish)
