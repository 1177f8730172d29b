"""Whether answers look unlike what they are ranked against: then training can learn the look and not the content."""

from collections.abc import Callable, Mapping, Sequence
from unicodedata import category

import numpy as np
from numpy.typing import NDArray

from metasearch.data.records import Candidate

_LIMIT = 0.8
"""AUC from which answers are told by their form."""
_LEAST = 8
"""Answers and others below which nothing is said."""
_FOLDS = 4
_LINE = 80
"""Characters of a first line that may be a title."""


def _titled(text: str) -> float:
    first, line, _ = text.strip().partition("\n")
    return float(bool(line) and len(first) <= _LINE)


FEATURES: Mapping[str, Callable[[str], float]] = {
    "length": lambda text: float(np.log(len(text))),
    "title": _titled,
    "punctuation": lambda text: sum(category(char).startswith("P") for char in text) / len(text),
    "last character": lambda text: float(category(text.rstrip()[-1:] or " ").startswith("P")),
}


def warn_of_form(answers: Sequence[Candidate], others: Sequence[Candidate]) -> str:
    """Return a warning if form alone tells answers from other candidates, which names the feature; else nothing.

    The mean AUC over folds by group, of a logistic regression on four features of a text. 0.5 is chance.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import GroupKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    texts = [each for each in (*answers, *others) if each.text.strip()]
    groups = [each.group or each.id for each in texts]
    right = np.array([bool(each.answers) for each in texts])
    if min(right.sum(), (~right).sum()) < _LEAST or len({*groups}) < _FOLDS:
        return ""
    values = np.array([[feature(each.text) for feature in FEATURES.values()] for each in texts])
    scores: list[float] = []
    for train, test in GroupKFold(_FOLDS).split(values, right, groups):
        if 0 < right[train].sum() < len(train) and 0 < right[test].sum() < len(test):
            model = make_pipeline(StandardScaler(), LogisticRegression(class_weight="balanced"))
            found = model.fit(values[train], right[train]).decision_function(values[test])
            scores.append(float(roc_auc_score(right[test], found)))
    if not scores or np.mean(scores) < _LIMIT:
        return ""
    feature = max(zip(map(lambda own: _alone(own, right), values.T), FEATURES, strict=True))[1]
    return (
        f"Answers look unlike the other candidates: form alone tells them apart (AUC {np.mean(scores):.2f}; 0.5 is "
        f"chance), most of all their {feature}. Training may learn that form."
    )


def _alone(values: NDArray[np.float64], right: NDArray[np.bool_]) -> float:
    """Return how well one feature tells answers, in either direction."""
    from sklearn.metrics import roc_auc_score

    auc = float(roc_auc_score(right, values))
    return max(auc, 1 - auc)
