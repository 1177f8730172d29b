"""Shuffled epochs of batches of a prepared corpus, while only a window of it is in use at a time.

An epoch goes through chunks of consecutive pairs in random order, some dozen of them in a window, and shuffles the
pairs of each window. So every window is a sample of all files, and what is read from the disk is read in long pieces
(Xu et al. 2022, "In-Database Machine Learning with CorgiPile"). Pairs of a corpus that is no larger than a window come
as from `Batches`.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from metasearch.data.example import Example
from metasearch.episodes.batches import Order, cut, episode_of
from metasearch.episodes.episode import Episode
from metasearch.errors import DataError
from metasearch.spec.seeding import stream

WINDOW = 2**18
"""Pairs of a window, about."""
_CHUNK = 2**12
"""Pairs of a chunk."""


class Rows(Protocol):
    """Rows of a corpus; see `metasearch.data.prepared.ranges.Ranges`."""

    def __len__(self) -> int: ...

    def rows(self, numbers: NDArray[Any], /) -> Order:
        """Return the rows with these numbers within the set."""


class Corpus(Protocol):
    """Pairs by row; see `metasearch.data.prepared.corpus.PreparedCorpus`."""

    def pairs(self, rows: NDArray[Any], /) -> Sequence[Example]:
        """Return the pairs of some rows, in their order."""

    def lengths(self, rows: NDArray[Any], /) -> Order:
        """Return the tokens of the longer side of some rows."""

    def forget(self) -> None:
        """Let go of memory."""


class Windows:
    """Episodes of one set each, as `Batches` gives them.

    Batch i depends on the corpus, the settings and (seed, name, i) alone. As there, each share gives the same number of
    pairs to an epoch, a larger one walked through from one epoch to the next, and a smaller one several times. The last
    batch of each window may be smaller.

    Args:
        corpus: the pairs.
        shares: rows that share an epoch, such as those of each language; one share gives every row once.
        size: pairs in a batch.
        seed: seed of the run.
        name: name of the random streams.
        longest: tokens at which longer texts are cut.
        window: pairs of a window, about.
        bucket: batches that are sorted together; 1 sorts nothing.

    Raises:
        DataError: there are no pairs.
    """

    def __init__(
        self,
        corpus: Corpus,
        shares: Sequence[Rows],
        size: int,
        seed: int,
        name: str = "train",
        longest: int = 2**31,
        window: int = WINDOW,
        bucket: int = 50,
    ) -> None:
        self._count = sum(map(len, shares))
        if not self._count:
            raise DataError(f"{name}: there are no examples")
        self.corpus, self.shares, self.size = corpus, shares, size
        self.seed, self.name, self.longest, self.window, self.bucket = seed, name, longest, window, bucket
        self._quota = -(-self._count // len(shares))
        windows = 1 if self._count <= window else -(-self._quota * len(shares) // window)
        # Of each share, which of its pairs of an epoch the windows have.
        self._bounds = np.arange(windows + 1) * self._quota // windows
        batches = -(-np.diff(self._bounds) * len(shares) // size)
        self._steps = np.concatenate([[0], np.cumsum(batches)])
        self._latest: tuple[tuple[int, int], list[Order]] | None = None
        self._chunks: dict[int, tuple[int, Order, Order]] = {}

    @property
    def steps_per_epoch(self) -> int:
        """Batches in an epoch."""
        return int(self._steps[-1])

    def batch(self, step: int, size: int = 1) -> list[Episode]:
        """Return the one episode of a step, whatever `size` the trainer asks for: all batches have one size."""
        return [episode_of(self.corpus.pairs(self.rows(step)))]

    def rows(self, step: int) -> Order:
        """Return the rows of a step `(size,)`; steps are counted over all epochs, from 0."""
        epoch, place = divmod(step, self.steps_per_epoch)
        window = int(np.searchsorted(self._steps, place, side="right")) - 1
        if self._latest is None or self._latest[0] != (epoch, window):
            self.corpus.forget()
            self._latest = ((epoch, window), self._cut(epoch, window))
        return self._latest[1][place - int(self._steps[window])]

    def visited(self, steps: int) -> Iterator[Order]:
        """Yield the rows that the first steps look at, some at a time; a row may come several times."""
        if steps < self.steps_per_epoch or len(self.shares) > 1:
            yield from map(self.rows, range(steps))
            return
        # One epoch visits everything, and none needs to be made to know it.
        for start in range(0, self._count, self.window):
            yield self.shares[0].rows(np.arange(start, min(start + self.window, self._count)))

    def _cut(self, epoch: int, window: int) -> list[Order]:
        """Return the batches of a window."""
        names = ("epoch", epoch) if len(self._bounds) == 2 else ("epoch", epoch, "window", window)
        rng = stream(self.seed, self.name, *names)
        low, high = (epoch * self._quota + int(bound) for bound in self._bounds[window : window + 2])
        order = rng.permutation(np.concatenate([self._share(i, low, high) for i in range(len(self.shares))]))
        lengths = np.minimum(self.corpus.lengths(order), self.longest)
        return cut(order, lengths, self.size, self.bucket, rng)

    def _share(self, share: int, low: int, high: int) -> Order:
        """Return rows of a share from an endless row of its shuffles, in each of which every row comes once."""
        count = len(self.shares[share])
        rounds = range(low // count, -(-high // count))
        pieces = [self._shuffled(share, i, max(low - i * count, 0), min(high - i * count, count)) for i in rounds]
        return self.shares[share].rows(np.concatenate([np.zeros(0, np.int64), *pieces]))

    def _shuffled(self, share: int, number: int, low: int, high: int) -> Order:
        """Return which rows of a share stand from one place on and before another in one of its shuffles."""
        rng, count = stream(self.seed, self.name, "part", share, number), len(self.shares[share])
        if count <= self.window:
            return rng.permutation(count)[low:high]
        if self._chunks.get(share, (-1,))[0] != number:
            chunks = rng.permutation(-(-count // _CHUNK))
            sizes = np.where(chunks == len(chunks) - 1, count - (len(chunks) - 1) * _CHUNK, _CHUNK)
            self._chunks[share] = (number, chunks, np.concatenate([[0], np.cumsum(sizes)]))
        _, chunks, ends = self._chunks[share]
        first, last = np.searchsorted(ends, low, side="right") - 1, np.searchsorted(ends, high, side="left")
        begins, sizes = chunks[first:last] * _CHUNK, np.diff(ends[first : last + 1])
        found = np.concatenate([np.arange(start, start + size) for start, size in zip(begins, sizes, strict=True)])
        return found[low - int(ends[first]) : high - int(ends[first])]
