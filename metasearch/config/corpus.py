"""Which pairs of a parallel corpus are used, as declared by a stage."""

from typing import Literal

from metasearch.config.base import Count, FrozenConfig
from metasearch.config.languages import Language

DEFAULT_PIVOT = "en"
Balance = Literal["none", "file", "language"]


class CorpusSettings(FrozenConfig):
    """What is read of a parallel corpus, and in which shares it is trained on.

    Attributes:
        pivot: the language that every file has on one side; the one that the teacher knows.
        languages: languages of the translations; empty takes all that are there.
        only: corpora such as `TED2020`; empty takes all that are there.
        max_lines: number of pairs that are read of a file; 0 reads all. The multi-stage distillation paper has
            300,000 in stages 2 and 3, and 500,000 in stages 1 and 4.
        max_chars: a pair with a longer side is dropped; 0 drops none. The same paper has 250.
        max_tokens: the same in tokens, special tokens included; 0 drops none. The EMA teacher paper has 128.
        normalise: write compatible characters, quotes and dashes in one way each, see `metasearch.data.normalise`.
        balance: `file` gives every file the same share of an epoch, whatever its size, as the multi-stage paper does;
            `language` every language, as the EMA teacher paper does; `none` takes every pair once.
        dev: pairs of each language that are held out of training.
    """

    pivot: Language = DEFAULT_PIVOT
    languages: tuple[Language, ...] = ()
    only: tuple[str, ...] = ()
    max_lines: Count = 0
    max_chars: Count = 0
    max_tokens: Count = 0
    normalise: bool = False
    balance: Balance = "none"
    dev: Count = 0
