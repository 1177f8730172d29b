"""Draws whole episodes."""

from collections.abc import Sequence

from metasearch.episodes.episode import Episode, LabelledSet
from metasearch.episodes.pairs import PairSampler
from metasearch.episodes.translations import QuestionTranslations
from metasearch.episodes.triplets import TripletSampler
from metasearch.spec.arrangement import Arrangement
from metasearch.spec.recipe import Episodes
from metasearch.spec.seeding import stream
from metasearch.spec.task import Phase


class EpisodeSampler:
    """Draws episode i of a phase, from (seed, phase, i) and, for graded negatives, the encoder's present weights.

    Arrangements take turns, so that each has the same number of episodes (MAML-Align paper, Table 4). The first set
    has k examples, each further one q; each set has a random stream of its own. Translations are drawn last, so that
    the rest of a set is the same without them.

    Args:
        sets: draws the sets.
        arrangements: of the phase.
        settings: how to draw.
        phase: such as `meta-train`.
        seed: of the run.
        translations: adds translations of the questions, where there are to be any.

    Raises:
        DataError: the data is too small for k, q or the number of negatives.
    """

    def __init__(
        self,
        sets: TripletSampler | PairSampler,
        arrangements: Sequence[Arrangement],
        settings: Episodes,
        phase: Phase,
        seed: int,
        translations: QuestionTranslations | None = None,
    ) -> None:
        self.sets = sets
        self.arrangements = tuple(arrangements)
        self.settings = settings
        self.phase = phase
        self.seed = seed
        self.translations = translations
        for arrangement in self.arrangements:
            for i, variant in enumerate(arrangement.variants):
                sets.check(variant, self._size(i), f"{phase}, episodes.{'q' if i else 'k'}={self._size(i)}")

    def episode(self, index: int) -> Episode:
        """Return episode `index`."""
        arrangement = self.arrangements[index % len(self.arrangements)]
        drawn: list[LabelledSet] = []
        first: LabelledSet | None = None
        for i, variant in enumerate(arrangement.variants):
            rng = stream(self.seed, self.phase, index, i)
            # Like the first set, not the one before it: Z, too, resembles the support of X→Y.
            plain = self.sets.draw(variant, self._size(i), rng, like=first)
            first = first or plain
            drawn.append(self.translations.add(plain, arrangement, rng) if self.translations else plain)
        return Episode(arrangement, tuple(drawn))

    def batch(self, step: int, size: int) -> list[Episode]:
        """Return the meta-batch of an outer step: episodes `step * size` to `step * size + size - 1`."""
        return [self.episode(step * size + i) for i in range(size)]

    def _size(self, position: int) -> int:
        return self.settings.q if position else self.settings.k
