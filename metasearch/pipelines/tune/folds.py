"""Held-out folds of labelled data, and the one-language view of the labels that fine-tuning draws its sets from.

Fine-tuning compares a question with the answers of the other questions of its set. A few labels in several languages
fill one set and not one for each language pair, so that all of them count as one language, `mul`.
"""

from dataclasses import dataclass, replace
from typing import Self

from metasearch.config.arrangement import Arrangement, Variant
from metasearch.config.task import PHASES
from metasearch.data.benchmark import Benchmark
from metasearch.data.folds import Split, split
from metasearch.data.records import Candidate, RetrievalData
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
    def of(cls, labels: Benchmark | RetrievalData, folds: int) -> Self:
        """Return labels with `folds` folds, or the first folds of a benchmark.

        Few labels have fewer folds, each of two groups or more, and none where there are too few to hold any out.
        """
        if isinstance(labels, RetrievalData):
            groups = len({question.group for question in labels.questions})
            count = min(folds, groups // 2) if len(labels.questions) >= LEAST_LABELS else 0
            count = count if count >= LEAST_FOLDS else 0
            return cls(labels, labels.benchmark(folds=count, name="labels") if count else None, count)
        task = labels.task
        if not isinstance(labels.data, RetrievalData) or task.folds.method != "kfold":
            raise ConfigError(f"task '{task.name}': tune needs questions with answers, to be cut into folds")
        return cls(labels.data, labels, min(folds, task.folds.k), whole=False)

    @property
    def everything(self) -> RetrievalData:
        """Labels and unlabelled texts."""
        return replace(self.data, candidates=(*self.data.candidates, *self.extra))

    def hold_out(self, fold: int | None) -> Benchmark:
        """Return a benchmark: `test` is a fold or nothing, and `train` is the rest, unlabelled texts included.

        `dev` is a small part of train: the trainer reports a score of it, which decides nothing here.
        """
        assert self.benchmark is not None
        everything = self.everything
        held = () if fold is None else {*split(self.data, self.benchmark.task.folds, fold).test.groups}
        train = everything.select([group for group in everything.groups if group not in held])
        test = self.data.select(held)
        pool = everything.candidates if self.whole else (*test.candidates, *self.extra)
        asked = {question.group for question in train.questions}
        dev = train.select([group for group in train.groups if group in asked][:_DEV_GROUPS])
        parts = Split(train, dev, replace(test, candidates=pool))
        return replace(self.benchmark, data=everything, split=parts, fold=fold or 0)


def pooled(benchmark: Benchmark, links: int = 2) -> Benchmark:
    """Return a benchmark whose training and dev splits have all texts in one language, for episodes of `links` sets."""
    parts = []
    for part in (benchmark.split.train, benchmark.split.dev):
        assert isinstance(part, RetrievalData)
        questions = tuple(replace(question, language=_POOLED) for question in part.questions)
        candidates = tuple(replace(candidate, language=_POOLED) for candidate in part.candidates)
        parts.append(replace(part, questions=questions, candidates=candidates))
    train, dev = parts
    chain = Arrangement((Variant(_POOLED, (_POOLED,)),) * links)
    arrangements = {phase: [chain] for phase in PHASES}
    return replace(benchmark, arrangements=arrangements, split=Split(train, dev, benchmark.split.test))
