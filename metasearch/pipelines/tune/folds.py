"""Held-out folds of labelled data, and the one-language view of the labels that fine-tuning draws its sets from.

Fine-tuning compares a question with the answers of the other questions of its set. A few labels in several languages
fill one set and not one for each language pair, so that all of them count as one language, `mul`.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

from metasearch.config.arrangement import Arrangement, Variant
from metasearch.config.task import PHASES
from metasearch.data.benchmark import Benchmark
from metasearch.data.folds import Split, split
from metasearch.data.records import Candidate, Data, RetrievalData
from metasearch.errors import ConfigError

LEAST_LABELS = 8
"""Labelled questions below which nothing is held out: a fold would have one or two."""
LEAST_FOLDS = 3
"""A paired test of fewer differences tells next to nothing."""
_DEV_GROUPS = 4
_POOLED = "mul"
"""ISO 639-2 code of several languages."""


@dataclass(frozen=True)
class Labels:
    """Labelled questions, and unlabelled texts beside them.

    Attributes:
        data: the labels.
        benchmark: the labels with folds and measures; None if there are too few to hold some out.
        folds: number of folds to hold out, at most as many as the benchmark has.
        extra: candidates that answer no question: negatives in training, and searched by every fold.
        whole: whether a fold searches the documents of all folds; else its own, as in papers.
    """

    data: RetrievalData
    benchmark: Benchmark | None
    folds: int
    extra: tuple[Candidate, ...] = ()
    whole: bool = True

    @classmethod
    def of(cls, labels: Benchmark | RetrievalData, folds: int) -> "Labels":
        """Return labels with `folds` folds, fewer for few labels, or the first folds of a benchmark."""
        if isinstance(labels, RetrievalData):
            count = count_folds(labels, folds)
            return cls(labels, labels.benchmark(folds=count, name="labels") if count else None, count)
        task = labels.task
        if not isinstance(labels.data, RetrievalData) or task.folds.method != "kfold":
            raise ConfigError(f"task '{task.name}': tune needs questions with answers, to be cut into folds")
        return cls(labels.data, labels, min(folds, task.folds.k), whole=False)

    @property
    def everything(self) -> RetrievalData:
        """Labels and unlabelled texts."""
        return replace(self.data, candidates=(*self.data.candidates, *self.extra))

    def hold_out(self) -> list[Benchmark]:
        """Return a benchmark for each fold: `test` is held out, and `train` is the rest, unlabelled texts included.

        `dev` is a small part of train: the trainer reports a score of it, which decides nothing here.
        """
        assert self.benchmark is not None
        folds = self.benchmark.task.folds
        return [self._benchmark(split(self.data, folds, fold).test.groups, fold) for fold in range(self.folds)]

    def train_on_all(self) -> Benchmark:
        """Return a benchmark whose training split has every label."""
        return self._benchmark((), 0)

    def _benchmark(self, held: Collection[str], fold: int) -> Benchmark:
        assert self.benchmark is not None
        everything, held = self.everything, set(held)
        train = everything.select([group for group in everything.groups if group not in held])
        test = self.data.select(held)
        pool = everything.candidates if self.whole else (*test.candidates, *self.extra)
        asked = {question.group for question in train.questions}
        dev = train.select([group for group in train.groups if group in asked][:_DEV_GROUPS])
        parts = Split(train, dev, replace(test, candidates=pool))
        return replace(self.benchmark, data=everything, split=parts, fold=fold)


def count_folds(data: RetrievalData, most: int) -> int:
    """Return the number of folds, each of two groups or more; 0 where there are too few labels to hold any out."""
    if len(data.questions) < LEAST_LABELS:
        return 0
    folds = min(most, len({question.group for question in data.questions}) // 2)
    return folds if folds >= LEAST_FOLDS else 0


def pooled(benchmark: Benchmark, links: int = 2) -> Benchmark:
    """Return a benchmark whose training and dev splits have all texts in one language, for episodes of `links` sets."""
    chain = Arrangement((Variant(_POOLED, (_POOLED,)),) * links)
    train, dev = _one_language(benchmark.split.train), _one_language(benchmark.split.dev)
    arrangements = {phase: [chain] for phase in PHASES}
    return replace(benchmark, arrangements=arrangements, split=Split(train, dev, benchmark.split.test))


def _one_language(data: Data) -> RetrievalData:
    assert isinstance(data, RetrievalData)
    questions = tuple(replace(question, language=_POOLED) for question in data.questions)
    candidates = tuple(replace(candidate, language=_POOLED) for candidate in data.candidates)
    return replace(data, questions=questions, candidates=candidates)
