"""How far a difference would move if training were repeated: t intervals over folds, heterogeneity, and seeds needed.

A difference of two learners on fold f with seed s is the sum of the true difference, an effect of the fold (what is
trained on and tested on), one of the seed (initial order, episodes), and the sampling of articles and questions:
`d_fs = δ + F_f + S_fs + Q_f`. The seeds of a fold are averaged; the means of F folds have other models and other test
questions each, so that their variance estimates `σ²_F + σ²_S / S + σ²_Q`, all that training and testing again would
change, with F - 1 degrees of freedom. The interval is Student's over these means: the t-test over few clusters of
Ibragimov & Müller (2010), which stays below its level where folds differ in variance. Bouckaert & Frank (2004) ask the
same of a test: that it repeats when the experiment does.

Why not the percentiles of a hierarchical bootstrap (folds, seeds, articles, questions; Davison & Hinkley 1997, section
3.8): drawing folds leaves out 1 / F of their variance and has a normal's tails, while drawing within folds counts
what is within a second time, so that on five folds it rejects a true null from hardly ever to 12 % of the time at 5 %
(`python -m benchmarks.statistics.calibration`). Few clusters are a known limit of such methods (Cameron, Gelbach &
Miller 2008).

Folds share training articles, which may make their means correlate. That is not in the interval: Nadeau & Bengio
(2003) widen it by a rule of thumb, and one cross-validation has no unbiased estimate of it (Bengio & Grandvalet 2004).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from metasearch.evaluation.statistics.paired import paired_test

Over = Literal["folds", "seeds and questions", "folds and seeds"]


@dataclass(frozen=True)
class TrainingInterval:
    """A difference's interval over what training and testing again would change.

    Attributes:
        low: lower end.
        high: upper end.
        p: two-sided, that of the same t.
        se: standard error of the difference.
        df: degrees of freedom; where two variances are added, Satterthwaite's (1946), of which no use is made.
        over: what is resampled; of an only fold its seeds and questions, which says nothing of other folds.
    """

    low: float
    high: float
    p: float
    se: float
    df: float
    over: Over

    def excludes(self, value: float) -> bool:
        """Return whether a value is outside."""
        return not self.low <= value <= self.high


@dataclass(frozen=True)
class FoldDifference:
    """A difference on one fold.

    Attributes:
        seeds: the difference with each seed; one value, their mean, where the arms' seeds cannot be paired.
        questions: sampling variance, over the fold's articles and questions, of the mean over seeds.
        articles: articles (or questions, where these are not known) that the variance is estimated from.
    """

    seeds: tuple[float, ...]
    questions: float
    articles: int

    @property
    def mean(self) -> float:
        """Mean over seeds."""
        return float(np.mean(self.seeds))


@dataclass(frozen=True)
class Heterogeneity:
    """Whether a difference is another one on other folds.

    Cochran's Q weighs each fold by what its questions and seeds leave open; I² is the share of the spread beyond that
    (Higgins & Thompson 2002). With one seed Q cannot tell what the fold does from what the seed does.

    Attributes:
        low: smallest difference of a fold.
        high: largest.
        q: `Σ w_f (d_f - d̄)²` with `w_f = 1 / variance_f` and d̄ the mean with these weights.
        df: number of folds less 1.
        p: of a χ² as large with these degrees of freedom.
        i2: `max(0, (Q - df) / Q)`.
    """

    low: float
    high: float
    q: float
    df: int
    p: float
    i2: float


@dataclass(frozen=True)
class Components:
    """Variances of the difference on one fold with one seed.

    Attributes:
        training: of the fold and the seed, beyond its questions.
        seeds: of the seed alone; None where every fold has one.
        questions: of the articles and questions.
    """

    training: float
    seeds: float | None
    questions: float


def training_interval(folds: Sequence[FoldDifference], level: float, crossed: bool = False) -> TrainingInterval | None:
    """Return the interval of the mean over folds; None where nothing was trained twice.

    Of an only fold with several seeds, the variances of its seeds and of its questions are added. `crossed` folds share
    their models, one for each seed, such as a student that is scored on all folds: then what folds and what seeds do is
    added, and one seed has no interval.
    """
    means = np.array([fold.mean for fold in folds])
    value = float(means.mean())
    if crossed:
        return _crossed(folds, value, level)
    if len(folds) > 1:
        test = paired_test(means.tolist(), [0.0] * len(means), level)
        # Of two or more pairs, all of these are there.
        se = (test.sd or 0.0) / len(folds) ** 0.5
        low, high, p = test.low, test.high, test.p
        assert low is not None
        assert high is not None
        assert p is not None
        return TrainingInterval(low, high, p, se, len(folds) - 1, "folds")
    (fold,) = folds
    if len(fold.seeds) < 2 or not np.isfinite(fold.questions):
        return None
    parts = [_of_mean(np.array(fold.seeds)), (fold.questions, fold.articles - 1)]
    return _added(value, parts, level, "seeds and questions")


def _crossed(folds: Sequence[FoldDifference], value: float, level: float) -> TrainingInterval | None:
    if len(folds) < 2 or len({len(fold.seeds) for fold in folds}) > 1 or len(folds[0].seeds) < 2:
        return None
    values = np.array([fold.seeds for fold in folds])
    # What folds and seeds do together is in both, so that the sum is rather too large than too small.
    parts = [_of_mean(values.mean(axis=1)), _of_mean(values.mean(axis=0))]
    return _added(value, parts, level, "folds and seeds")


def _of_mean(values: NDArray[np.float64]) -> tuple[float, int]:
    """Return the variance of the mean of some values, and its degrees of freedom."""
    return float(values.var(ddof=1)) / len(values), len(values) - 1


def _added(value: float, parts: Sequence[tuple[float, int]], level: float, over: Over) -> TrainingInterval:
    """Return the interval of a value whose variance is a sum of estimates, each with its degrees of freedom.

    The critical value is the mean of those of Student's t, weighted by the variances (Cochran & Cox 1950):
    Satterthwaite's degrees of freedom, which come out large where two seeds happen to agree, reject 10 % at 5 %.
    """
    variance = sum(part for part, _ in parts)
    se = variance**0.5

    def reach(of: float) -> float:
        critical = (part * float(special.stdtrit(max(df, 1), (1 + of) / 2)) for part, df in parts)
        return sum(critical) / se if se else 0.0

    spread = sum(part**2 / max(df, 1) for part, df in parts)
    df = variance**2 / spread if spread else float(parts[0][1])
    return TrainingInterval(value - reach(level), value + reach(level), _p(abs(value), reach), se, df, over)


def _p(distance: float, reach: Callable[[float], float]) -> float:
    """Return 1 - the level of the interval that just reaches 0, by bisection; 1 where there is no distance."""
    if not distance:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if reach(1 - middle) > distance else (low, middle)
    return high


def components(folds: Sequence[FoldDifference]) -> Components | None:
    """Return the variances behind a difference, by the method of moments; None of one fold with one seed.

    Variances of seeds are pooled over folds by their degrees of freedom. What folds and seeds add to the questions
    cannot be below 0. Of an only fold with several seeds, training is its seeds.
    """
    questions = float(np.mean([fold.questions for fold in folds]))
    if not np.isfinite(questions):  # the measure is undefined on most resamples
        return None
    repeated = [fold.seeds for fold in folds if len(fold.seeds) > 1]
    seeds = None
    if repeated:
        squares = sum(np.var(each, ddof=1) * (len(each) - 1) for each in repeated)
        seeds = float(squares / sum(len(each) - 1 for each in repeated))
    if len(folds) < 2:
        return None if seeds is None else Components(seeds, seeds, questions)
    between = float(np.var([fold.mean for fold in folds], ddof=1))
    if seeds is None:
        return Components(max(0.0, between - questions), None, questions)
    count = float(np.mean([1 / len(fold.seeds) for fold in folds]))
    return Components(max(0.0, between - questions - seeds * count) + seeds, seeds, questions)


def heterogeneity(folds: Sequence[FoldDifference], crossed: bool = False) -> Heterogeneity | None:
    """Return how much the folds differ; None of an only fold, or where a fold's own variance is 0.

    What a seed does to all of `crossed` folds, which share their models, makes none differ from another.
    """
    found = components(folds)
    if len(folds) < 2 or found is None:
        return None
    means = np.array([fold.mean for fold in folds])
    seeds = _interaction(folds) if crossed else found.seeds or 0.0
    own = np.array([fold.questions + seeds / len(fold.seeds) for fold in folds])
    if not (own > 0).all():
        return None
    weights = 1 / own
    q = float(np.sum(weights * (means - np.sum(weights * means) / weights.sum()) ** 2))
    df = len(folds) - 1
    i2 = max(0.0, (q - df) / q) if q else 0.0
    return Heterogeneity(float(means.min()), float(means.max()), q, df, float(special.chdtrc(df, q)), i2)


def _interaction(folds: Sequence[FoldDifference]) -> float:
    """Return the variance of what a seed does to a fold beyond what it does to all; 0 where nothing tells it."""
    counts = {len(fold.seeds) for fold in folds}
    if len(counts) > 1 or counts == {1}:
        return 0.0
    values = np.array([fold.seeds for fold in folds])
    rest = values - values.mean(0) - values.mean(1, keepdims=True) + values.mean()
    return float(np.square(rest).sum() / np.prod([size - 1 for size in values.shape]))


# How many seeds would tell a difference apart, from the variances that a study has shown.

POWER = 0.8
"""Chance of finding a difference that is there (Cohen 1988)."""
MOST = 100
"""Seeds beyond which no study is planned."""


@dataclass(frozen=True)
class SeedsNeeded:
    """How many seeds a difference needs, on as many folds as a study has.

    Attributes:
        difference: to be told apart from 0.
        power: chance that its interval then excludes 0.
        fewest: seeds, if all variation of training is that of seeds as far as is known; None where no number up to
            `MOST` is enough.
        certain: whether the study had several seeds on a fold, so that it knows what seeds do.
        smallest: difference that `MOST` seeds would tell apart with this power; None where it is unbounded.
    """

    difference: float
    power: float
    fewest: int | None
    certain: bool
    smallest: float | None


def seeds_needed(found: Components, folds: int, difference: float, level: float, power: float = POWER) -> SeedsNeeded:
    """Return the seeds that a difference needs, by the power of the t-test over folds (noncentral t).

    The variance of the difference is `(σ²_F + σ²_Q + σ²_S / S) / F` with F - 1 degrees of freedom; of an only fold its
    `σ²_Q + σ²_S / S` with S - 1, since more than its seeds is not known. With one seed seen, σ²_F is taken as 0 and all
    variation of training as σ²_S, so that what is found is a lower bound.

    >>> seeds_needed(Components(training=1.0, seeds=1.0, questions=0.0), folds=5, difference=1.0, level=0.95).fewest
    3
    """
    seeds = found.training if found.seeds is None else found.seeds
    constant = found.training - seeds + found.questions

    def chance(count: int, of: float) -> float:
        df = folds - 1 if folds > 1 else count - 1
        return _power(of / max((constant + seeds / count) / folds, _TINY) ** 0.5, df, level) if df else 0.0

    fewest = next((count for count in range(1, MOST + 1) if chance(count, difference) >= power), None)
    return SeedsNeeded(
        difference, power, fewest, found.seeds is not None, _smallest(lambda of: chance(MOST, of), power)
    )


_TINY = 1e-30
"""A variance for what shows none, so that every difference is told apart."""


def _power(shift: float, df: float, level: float) -> float:
    """Return the chance that t is above its critical value, t noncentral with a shift in standard errors.

    The other side, a difference found in the wrong direction, is left out: no chance near `POWER` has any of it.
    """
    critical = float(special.stdtrit(df, (1 + level) / 2))
    if shift > 30 + critical:  # the series of the noncentral t does not converge there
        return 1.0
    return 1 - float(special.nctdtr(df, shift, critical))


def _smallest(chance: Callable[[float], float], power: float) -> float | None:
    """Return the smallest difference with such a chance, by bisection; None where none up to 1 has it."""
    low, high = 0.0, 1.0
    if chance(high) < power:
        return None
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if chance(middle) >= power else (middle, high)
    return high
