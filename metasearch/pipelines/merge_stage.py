"""The stage `merge` of a run: of the weights between those before and those after training, the best on dev are kept.

Wortsman et al. 2022, "Robust fine-tuning of zero-shot models", equation 1; the share of the trained weights, α, is
chosen on the part of dev that gives the dev scores of training.
"""

import logging
from typing import Any

from metasearch.compress.average import average, copied, put
from metasearch.config.recipe import Recipe
from metasearch.encoders.encoder import Encoder
from metasearch.pipelines.dev_evaluator import DevEvaluator

log = logging.getLogger(__name__)


class MergeStage:
    """Keeps the weights of an encoder that is to be trained, and chooses between them and those after training.

    Args:
        encoder: before training; with a map, where one comes before. A resumed run opens it as it was then.
        recipe: says which α are tried; without the stage nothing is kept.
        dev: gives the dev score of the encoder's present weights.

    Attributes:
        facts: the dev score of every α that was tried, and the α that was chosen; empty before, and without the stage.
    """

    def __init__(self, encoder: Encoder, recipe: Recipe, dev: DevEvaluator) -> None:
        self._encoder, self._merge, self._dev = encoder, recipe.merge, dev
        self._before = copied(encoder) if recipe.merge else {}
        self.facts: dict[str, Any] = {}

    def choose(self) -> float:
        """Give the encoder, which is trained now, the weights of the α with the best dev score, and return that α.

        Of α with the same score the smallest is taken, whose weights are nearest to those before training.
        """
        assert self._merge is not None
        after, scores = copied(self._encoder), dict[float, float]()
        for alpha in sorted(set(self._merge.alphas)):
            put(self._encoder, average([(1 - alpha, self._before), (alpha, after)]))
            scores[alpha] = self._dev()
        chosen = max(scores, key=scores.__getitem__)
        put(self._encoder, average([(1 - chosen, self._before), (chosen, after)]))
        self.facts = {"merge": {"alpha": chosen, "dev": {f"{alpha:g}": score for alpha, score in scores.items()}}}
        shown = ", ".join(f"{alpha:g} {100 * score:.2f}" for alpha, score in scores.items())
        log.info("merge: dev scores by alpha: %s; alpha %g is kept", shown, chosen)
        return chosen
