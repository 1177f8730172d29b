"""`metasearch merge`: average the weights of several encoders."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from metasearch.compress.average import State, average, put, require_same_form, resolve_shares
from metasearch.compress.output import claim, whole
from metasearch.config.run import EncoderConfig
from metasearch.io import atomic_write
from metasearch.pipelines.cards import merged_card
from metasearch.pipelines.factory import load_encoder
from metasearch.pipelines.publish import CARD
from metasearch.runs.markdown import markdown


class Part(NamedTuple):
    """An encoder that goes into a merged one, its share of the mean, and the fingerprint of its checkpoint."""

    name: str
    share: float
    fingerprint: str


@dataclass(frozen=True)
class MergeResult:
    """The merged encoders in their order, and the fingerprint of the result."""

    parts: tuple[Part, ...]
    fingerprint: str

    def table(self) -> str:
        """Return the parts in Markdown."""
        lines = [[part.name, f"{part.share:g}", part.fingerprint] for part in self.parts]
        return markdown(["encoder", "share", "fingerprint"], lines)


def merge(
    encoders: Sequence[EncoderConfig | str],
    folder: Path,
    alpha: float | None = None,
    shares: Sequence[float] | None = None,
) -> MergeResult:
    """Write an encoder with averaged weights, summed in float64 and rounded once.

    Tokenizer, modules, prompts and lengths come from the first encoder. Encoders are loaded one after the other.
    For two encoders the mean may be (1 − `alpha`) · first + `alpha` · second; otherwise each has its share, equal by
    default.
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
    with whole(folder) as partial:
        made.write(partial)
        atomic_write(partial / CARD, merged_card(made, parts))
    return MergeResult(tuple(parts), made.fingerprint)
