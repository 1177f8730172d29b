"""Studies in which two learners do not differ in truth, as per-question differences: what a test must not reject.

A difference in points is the sum of effects, each drawn anew for each study and none with a mean: of the fold, of the
seed on it, of both in a language, of the article, of the question, of the question in a language, and of the question
with the seed. Their sizes are those of MAML (trans) less zero-shot with `mini` on LAReQA without paragraphs, 12 steps:
on fold 0 questions (the mean over languages) vary by 2.7 points and by 3.9 more in each language, articles by no more
than their questions, and five runs with other seeds on two folds by 0.5.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
_CHUNK = 100


@dataclass(frozen=True)
class Design:
    """A study of two equal learners: how large it is, and standard deviations of the effects in points.

    Attributes:
        fold: of the fold; of it a share `overlap` of the variance is common to all folds, as where they are trained on
            the same articles.
        seed: of a seed on a fold; where `uneven`, from a third to twice of it, from the first fold to the last.
        language: of a fold and of a seed in a language, each.
        article: of an article.
        question: of a question, t-distributed with 4 degrees of freedom, since few questions change much.
        translation: of a question in a language.
        repeat: of a question with a seed.
    """

    name: str
    folds: int = 5
    seeds: int = 1
    articles: int = 10
    questions: int = 24
    languages: int = 7
    fold: float = 0.2
    seed: float = 0.48
    language: float = 0.2
    article: float = 0.1
    question: float = 1.8
    translation: float = 3.9
    repeat: float = 1.2
    overlap: float = 0.0
    uneven: bool = False


DESIGNS = (
    Design("5 folds × 1 seed"),
    Design("5 folds × 2 seeds", seeds=2),
    Design("5 folds × 3 seeds", seeds=3),
    Design("3 folds × 1 seed, 8 articles of 3 questions", folds=3, articles=8, questions=3),
    Design("3 folds × 3 seeds", folds=3, seeds=3),
    Design("1 fold × 3 seeds, of other seeds and questions on it", folds=1, seeds=3, fold=0.0),
    Design("1 fold × 2 seeds, likewise", folds=1, seeds=2, fold=0.0),
    Design("5 folds × 3 seeds, training changes nothing", seeds=3, fold=0.0, seed=0.0, language=0.0),
    Design("5 folds × 3 seeds, seeds change nothing", seeds=3, fold=0.5, seed=0.0),
    Design("5 folds × 3 seeds, folds change nothing", seeds=3, fold=0.0),
    Design("5 folds × 1 seed, folds differ in spread", uneven=True),
)
BEYOND = (Design("5 folds × 3 seeds, fold effects correlate with 0.3", seeds=3, overlap=0.3),)
"""What no test of one cross-validation allows for."""


def studies(design: Design, count: int, random: np.random.Generator) -> Iterator[Array]:
    """Yield studies without a true difference, folds × seeds × articles × questions × languages, `(F, S, A, Q, L)`."""
    for start in range(0, count, _CHUNK):
        yield from _chunk(design, min(_CHUNK, count - start), random)


def _chunk(design: Design, count: int, random: np.random.Generator) -> Array:
    f, s, a, q, n = design.folds, design.seeds, design.articles, design.questions, design.languages
    normal = random.standard_normal
    own, common = normal((count, f)), normal((count, 1))
    fold = design.fold * (np.sqrt(1 - design.overlap) * own + np.sqrt(design.overlap) * common)
    spread = design.seed * (np.linspace(1 / 3, 2, f) if design.uneven else np.ones(f))
    question = random.standard_t(4, (count, f, 1, a, q, 1)) / np.sqrt(2)
    values: Array = (
        fold.reshape(count, f, 1, 1, 1, 1)
        + spread.reshape(f, 1, 1, 1, 1) * normal((count, f, s, 1, 1, 1))
        + design.language * (normal((count, f, 1, 1, 1, n)) + normal((count, f, s, 1, 1, n)))
        + design.article * normal((count, f, 1, a, 1, 1))
        + design.question * question
        + design.translation * normal((count, f, 1, a, q, n))
        + design.repeat * normal((count, f, s, a, q, 1))
    )
    return values
