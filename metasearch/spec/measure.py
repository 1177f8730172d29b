"""Measures by name, such as `map@20`: a metric and a cut-off. Importing this package imports no metric and no torch."""

import re
from dataclasses import dataclass
from typing import Literal, Self

from metasearch.errors import ConfigError, nearest

RETRIEVAL = ("map",)
SIMILARITY = ("pearson", "spearman")
TRANSLATION = ("accuracy",)
_KNOWN = {"retrieval": RETRIEVAL, "similarity": SIMILARITY, "translation": TRANSLATION}


Pool = Literal["multilingual", "bilingual", "monolingual", "pairs", "xx-en", "en-xx", "both"]
"""What is ranked: candidates of all languages together, of one other language, or of the question's own; for
similarity nothing; for translations the pivot language, from each other one (`xx-en`), or the other way round
(`en-xx`), and the mean of both."""


@dataclass(frozen=True, order=True)
class Measure:
    """A metric and, for rankings, how deep it looks.

    Attributes:
        metric: `map`, `pearson`, `spearman` or `accuracy`.
        k: cut-off, or None for the whole ranking.
    """

    metric: str
    k: int | None = None

    @classmethod
    def parse(cls, text: str, kind: str) -> Self:
        """Read `map@20` for a retrieval task, `pearson` for a similarity task or `accuracy` for a translation task.

        Raises:
            ConfigError: no such metric for this kind of task, or a cut-off that is no positive number.
        """
        known = _KNOWN[kind]
        match = re.fullmatch(r"([a-z]+)(?:@([1-9][0-9]*))?", text)
        if match is None or match[1] not in known:
            choices = [*known, "map@20"] if kind == "retrieval" else known
            raise ConfigError(f"unknown {kind} measure '{text}'.{nearest(text, choices)}")
        if match[2] and kind != "retrieval":
            raise ConfigError(f"measure '{text}': only rankings have a cut-off; write '{match[1]}'")
        return cls(match[1], int(match[2]) if match[2] else None)

    def __str__(self) -> str:
        return self.metric if self.k is None else f"{self.metric}@{self.k}"
