"""`metasearch merge`: average the weights of several encoders."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from metasearch.compress.average import State, average, copied, put, require_same_form, resolve_shares
from metasearch.compress.output import claim, whole
from metasearch.config.recipe import Recipe
from metasearch.config.run import EncoderConfig
from metasearch.encoders.encoder import Encoder
from metasearch.io import atomic_write
from metasearch.pipelines.cards import merged_card
from metasearch.pipelines.dev_evaluator import DevEvaluator
from metasearch.pipelines.factory import load_encoder
from metasearch.pipelines.publish import CARD
from metasearch.runs.markdown import markdown


@dataclass(frozen=True)
class Part:
    """An encoder that goes into a merged one.

    Attributes:
        name: built-in name, folder or hub name.
        share: of its weights in the mean.
        fingerprint: of its checkpoint.
    """

    name: str
    share: float
    fingerprint: str


@dataclass(frozen=True)
class MergeResult:
    """What `merge` made.

    Attributes:
        parts: the encoders that went into it, in their order.
        fingerprint: of what was made.
    """

    parts: tuple[Part, ...]
    fingerprint: str

    def table(self) -> str:
        """Return the parts in Markdown."""
        return markdown(
            ["encoder", "share", "fingerprint"], [[p.name, f"{p.share:g}", p.fingerprint] for p in self.parts]
        )


def merge(
    encoders: Sequence[EncoderConfig | str],
    folder: Path,
    alpha: float | None = None,
    shares: Sequence[float] | None = None,
) -> MergeResult:
    """Write an encoder with averaged weights, summed in float64 and rounded once.

    Tokenizer, modules, prompts and lengths are those of the first encoder. Encoders are loaded one after the other.

    Args:
        encoders: two or more of the same form.
        folder: new or empty.
        alpha: of two encoders: the mean is (1 − α) · first + α · second.
        shares: of each encoder; with neither all have the same.

    Raises:
        ConfigError: the shares do not fit the encoders.
        EncoderError: an encoder cannot be loaded, or is not of the form of the first; the first difference is named.
        RunFolderError: the folder is not empty or cannot be written.
    """
    refs = [EncoderConfig.of(each) for each in encoders]
    each = resolve_shares(len(refs), alpha, shares)
    claim(folder)
    made = load_encoder(refs[0], identify=True, device="cpu")
    parts = [Part(refs[0].name, each[0], made.origin)]

    def states() -> Iterator[tuple[float, State]]:
        yield each[0], made.model.state_dict()
        for ref, share in zip(refs[1:], each[1:], strict=True):
            other = load_encoder(ref, identify=True, device="cpu")
            require_same_form(made, other)
            parts.append(Part(ref.name, share, other.origin))
            yield share, other.model.state_dict()

    put(made, average(states()))
    done = MergeResult(tuple(parts), made.fingerprint)
    _write(made, done, folder)
    return done


def _write(encoder: Encoder, done: MergeResult, folder: Path) -> None:
    with whole(folder) as partial:
        encoder.write(partial)
        shares = [(part.name, part.share, part.fingerprint) for part in done.parts]
        atomic_write(partial / CARD, merged_card(encoder, shares))


# The stage `merge` of a run: of the weights between those before and those after training, the best on dev are kept.
#
# Wortsman et al. 2022, "Robust fine-tuning of zero-shot models", equation 1; the share of the trained weights, α, is
# chosen on the part of dev that gives the dev scores of training.

log = logging.getLogger(__name__)


class MergeStage:
    """Keep an encoder's weights before training, and choose between them and the trained ones.

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
        """Set the trained encoder's weights to the α with the best dev score, and return that α.

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
