"""How to compress an encoder, checked as far as that goes without the encoder."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from metasearch.errors import ConfigError, require_known

Initial = Literal["svd", "random"]
"""What a bottleneck starts from.

- `svd`: the best approximation of the assistant's word table; positions, types and LayerNorm are the assistant's.
- `random`: as the authors have it; the whole embedding block is fresh, from PyTorch's defaults.
"""


Layers = int | tuple[int, ...]
"""How many layers stay, or which: 1 is that above the words."""

Rows = Literal["words", "tokens"]
"""What the rows of a static student are.

- `words`: what the embedding block gives for each word, at the mean of the first positions.
- `tokens`: what the whole encoder gives for each word alone, before it is normalised (Model2Vec).
"""


@dataclass(frozen=True)
class Plan:
    """How to compress; the other attributes are arguments of `metasearch.compress.student.make_student`.

    Attributes:
        layers: how many layers stay, or which, from 1.
        merge: into how many layers the layers are merged, or the last layers of the groups that become one.
        feed_forward: neurons that the feed-forward block of each layer keeps.
        static: what the rows of a static student are; None makes none.
        dimensions: columns that they keep; None keeps all.
        texts: text files, or folders of them, that choose neurons, or say how frequent words are, of which the
            approximation by a bottleneck is best for the most frequent.
        trim: text files, or folders of them, whose words are the vocabulary to keep; all words where there is none.
        vocabulary: tokens of these that stay at most, the most frequent ones; None keeps all.
        seed: seed of fresh weights, and of the choice among many texts.
    """

    bottleneck: int | None = None
    recurrent: int | None = None
    repeats: int | None = None
    layers: Layers | None = None
    merge: Layers | None = None
    feed_forward: int | None = None
    static: Rows | None = None
    dimensions: int | None = None
    texts: Sequence[Path] = ()
    initial: Initial = "svd"
    trim: Sequence[Path] = ()
    vocabulary: int | None = None
    seed: int = 0

    @property
    def slims(self) -> bool:
        """Whether layers, or neurons of them, are left out, which leaves a stock model."""
        return self.layers is not None or self.fits

    @property
    def fits(self) -> bool:
        """Whether layers are fitted to what others did, on texts."""
        return self.merge is not None or self.feed_forward is not None

    @property
    def shrinks(self) -> bool:
        """Whether a student is made, whose architecture is ours; the other parts leave a stock model."""
        return any(value is not None for value in (self.bottleneck, self.recurrent, self.repeats))

    @property
    def weighs_words(self) -> bool:
        """Whether texts can say how much the words of a bottleneck matter."""
        return self.bottleneck is not None and self.initial == "svd"

    def check(self, writes: bool = True) -> None:
        """Raise `ConfigError` where parts of the plan do not fit together; sizes alone can be asked for without any."""
        self._check_static()
        if self.vocabulary is not None and not self.trim:
            raise ConfigError(f"vocabulary {self.vocabulary}: which tokens? Name texts with --trim-vocab")
        if writes and not self.shrinks and not self.trim and not self.slims and self.static is None:
            raise ConfigError(
                "nothing to compress: say --bottleneck, --recurrent, --layers, --merge, --feed-forward, --static or "
                "--trim-vocab"
            )
        if self.layers is not None and self.merge is not None:
            raise ConfigError("--layers leaves layers out and --merge puts them together; choose one of them")
        if writes and self.fits and not self.texts:
            name, value = ("feed-forward", self.feed_forward) if self.merge is None else ("merge", self.merge)
            written = ",".join(map(str, value)) if isinstance(value, tuple) else value
            raise ConfigError(f"{name} {written}: fitted on which texts? Name some with --texts")
        if self.texts and not self.fits and self.static is None and not self.weighs_words:
            if self.bottleneck is not None:
                raise ConfigError("--texts weigh words for --init svd; a random word table has no use for them")
            raise ConfigError(
                "--texts are what layers are fitted on, or say how frequent words are: say --merge, --feed-forward, "
                "--bottleneck or --static, too"
            )
        if self.repeats is not None and self.recurrent is None:
            raise ConfigError(f"repeats {self.repeats}: which layers? Say how many recurrent ones to keep, too")
        check_initial(self.initial, self.bottleneck)

    def _check_static(self) -> None:
        if self.static is None:
            if self.dimensions is not None:
                raise ConfigError(f"dimensions {self.dimensions}: they are those of word vectors; say --static, too")
            return
        require_known("static", self.static, get_args(Rows))
        if self.shrinks or self.slims:
            raise ConfigError(
                "--static makes word vectors, which have no layers: leave out --bottleneck, --recurrent, --repeats, "
                "--layers, --merge and --feed-forward"
            )


def check_initial(initial: str, bottleneck: int | None) -> None:
    """Raise `ConfigError` where a way to begin is unknown, or there is no bottleneck to begin."""
    require_known("initial", initial, get_args(Initial))
    if initial == "random" and bottleneck is None:
        raise ConfigError("initial random is for a bottleneck; without one, the assistant's word table is kept")
