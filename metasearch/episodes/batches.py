"""Shuffled epochs of batches, for stages that learn from single examples, such as distillation."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from metasearch.config.arrangement import Arrangement, Variant
from metasearch.config.seeding import stream
from metasearch.data.records import Example
from metasearch.episodes.episode import Episode, LabelledSet
from metasearch.errors import DataError

Order = NDArray[np.intp]


class Examples(Protocol):
    """Examples by number: a corpus, or a list of scored pairs."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Example: ...


class Batches:
    """Episodes with one set each, in reshuffled epochs, for the trainer.

    Batch i depends on the examples, the settings and (seed, name, i) alone, so a run resumes to the same batches.
    Examples of similar length share a batch, which saves padding: an epoch is shuffled, cut into stretches of
    `bucket` batches, each stretch sorted by length and cut into batches, and the batches are shuffled.

    With `parts`, such as the language of each example `(P,)`, every part gives the same number of examples: a larger
    part is visited without replacement from one epoch to the next, a smaller one several times, in a fresh order each
    time.

    Args:
        examples: P examples.
        lengths: length of each example in tokens `(P,)`.
        size: examples in a batch; the last one of an epoch may hold fewer.
        seed: seed of the run.
        parts: number of the part of each example `(P,)`; by default one part.
        name: name of the random streams.
        bucket: batches that are sorted together; 1 sorts nothing.

    Raises:
        DataError: no examples.
    """

    def __init__(
        self,
        examples: Examples,
        lengths: ArrayLike,
        size: int,
        seed: int,
        parts: ArrayLike | None = None,
        name: str = "train",
        bucket: int = 50,
    ) -> None:
        if not len(examples):
            raise DataError(f"{name}: no examples")
        self.examples, self.lengths = examples, np.asarray(lengths)
        self.size, self.bucket = size, bucket
        self.seed, self.name = seed, name
        numbers = np.zeros(len(examples)) if parts is None else np.asarray(parts)
        self._members: list[Order] = [np.flatnonzero(numbers == number) for number in np.unique(numbers)]
        self._quota = -(-len(examples) // len(self._members))
        # Of the latest epoch only: each can be made again from its stream.
        self._epoch: tuple[int, list[Order]] | None = None

    @property
    def steps_per_epoch(self) -> int:
        """Batches in an epoch."""
        return -(-self._quota * len(self._members) // self.size)

    def batch(self, step: int, size: int = 1) -> list[Episode]:
        """Return a step's only episode, whatever `size` the trainer asks for: all batches have one size."""
        examples = tuple(self.examples[row] for row in self.rows(step).tolist())
        variant = variant_of(examples)
        return [Episode(Arrangement((variant,)), (LabelledSet(variant, examples),))]

    def rows(self, step: int) -> Order:
        """Return the example numbers for a step `(size,)`; steps count over all epochs, from 0."""
        epoch, place = divmod(step, self.steps_per_epoch)
        if self._epoch is None or self._epoch[0] != epoch:
            self._epoch = (epoch, self._cut(epoch))
        return self._epoch[1][place]

    def visited(self, steps: int) -> Order:
        """Return the distinct example numbers in the first steps, sorted."""
        # What whole epochs visit is known without making them: of each part the first of its endless row.
        epochs = steps // self.steps_per_epoch
        seen = np.zeros(len(self.examples), bool)
        for part, members in enumerate(self._members):
            count = epochs * self._quota
            seen[members if count >= len(members) else self._permuted(part, 0)[:count]] = True
        for step in range(epochs * self.steps_per_epoch, steps):
            seen[self.rows(step)] = True
        return np.flatnonzero(seen)

    def _cut(self, epoch: int) -> list[Order]:
        rng = stream(self.seed, self.name, "epoch", epoch)
        order = rng.permutation(np.concatenate([self._share(part, epoch) for part in range(len(self._members))]))
        return cut(order, self.lengths[order], self.size, self.bucket, rng)

    def _share(self, part: int, epoch: int) -> Order:
        """Return a part's examples for an epoch: the next ones in endlessly many permutations."""
        members = self._members[part]
        start, end = epoch * self._quota, (epoch + 1) * self._quota
        # The permutations that this epoch reaches into; each has its own stream, so none before it is drawn.
        rounds = range(start // len(members), -(-end // len(members)))
        row = [self._permuted(part, i) for i in rounds]
        first = start - rounds.start * len(members)
        return np.concatenate(row)[first : first + self._quota]

    def _permuted(self, part: int, time: int) -> Order:
        """Return a part's examples in the n-th pass's order, from 0."""
        members = self._members[part]
        return members[stream(self.seed, self.name, "part", part, time).permutation(len(members))]


def cut(order: Order, lengths: Order, size: int, bucket: int, rng: np.random.Generator) -> list[Order]:
    """Cut shuffled examples `(P,)` with their lengths `(P,)` into shuffled batches with similar lengths."""
    batches: list[Order] = []
    for start in range(0, len(order), bucket * size):
        stretch = order[start : start + bucket * size]
        if bucket > 1:
            # Stable, so that texts of one length keep their shuffled order everywhere.
            stretch = stretch[np.argsort(lengths[start : start + bucket * size], kind="stable")]
        batches += [stretch[i : i + size] for i in range(0, len(stretch), size)]
    # Unshuffled, every stretch would run from short texts to long ones.
    return [batches[i] for i in rng.permutation(len(batches))]


def variant_of(examples: Sequence[Example]) -> Variant:
    """Return a batch's languages, such as `en_{ar,de}`: the first query language by name, then all others."""
    first, *others = sorted({example.languages[0] for example in examples})
    return Variant(first, tuple(sorted({*others, *(example.languages[1] for example in examples)})))
