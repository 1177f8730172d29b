"""Which pairs of a parallel corpus a stage uses."""

from typing import Annotated, Literal

from metasearch.config.base import Count, Flag, Settings
from metasearch.config.languages import Language

DEFAULT_PIVOT = "en"
Balance = Literal["none", "file", "language"]


STAGE_SETTINGS = frozenset({"max_tokens", "balance", "dev"})
"""Settings of a corpus that belong to training; tokens are counted by the encoder that is trained."""


class CorpusSettings(Settings):
    """The pairs to read from a parallel corpus, and their shares in training.

    The multi-stage distillation paper reads 300,000 pairs of a file in stages 2 and 3 and 500,000 in stages 1 and 4,
    drops pairs with a side over 250 characters, and balances by file. The EMA teacher paper drops pairs with a side
    over 128 tokens, and balances by language.

    Attributes:
        balance: `file` or `language` gives each the same share of an epoch; `none` takes every pair once.
        dev: pairs of each language that are held out of training.
    """

    pivot: Annotated[Language, Flag(metavar="TAG")] = DEFAULT_PIVOT
    """Language on one side of every file."""
    languages: Annotated[tuple[Language, ...], Flag(metavar="TAGS", comma=True)] = ()
    """Languages of the translations, such as de,fr; by default all."""
    only: Annotated[tuple[str, ...], Flag(name="--corpora", metavar="NAMES", comma=True)] = ()
    """Corpora to read, such as TED2020; by default all."""
    max_lines: Count = 0
    """Pairs to read from each file; 0 reads all."""
    max_chars: Count = 0
    """Longest side of a pair in characters; 0 takes any."""
    max_tokens: Count = 0
    """Longest side of a pair in tokens, special tokens included; 0 takes any."""
    normalise: bool = False
    """Write compatible characters, quotes and dashes in one way each."""
    balance: Balance = "none"
    dev: Count = 0
