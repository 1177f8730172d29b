"""The block `translate` of a task: rows of its train part are translated, and the translations are trained on."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from metasearch.spec.declared import Contradiction, Declared
from metasearch.spec.languages import Language

ORACLE = "oracle"
"""In place of a translator: the parallel rows that the data itself has."""


class Translate(Declared):
    """Which rows of train are translated into which languages, and by what.

    Attributes:
        by: a translator's name, or `oracle`, which takes the rows that the data has of the same ids in other languages.
        source: the language that is translated from. One that is no language of the task is read for train alone.
        into: languages that are translated into; arrangements may name them whether they are languages of the task or
            not.
        own: what becomes of rows that train has in these languages: all are left out (`drop`), or they stay and only
            what has none is translated (`keep`). It must be said where there are any.
        overlap: what becomes of a row whose text stands in dev or test: it is an error (`refuse`), or the row is left
            out and counted (`drop`). A row whose id or article stands there is always an error.
        options: the translator's own.
    """

    by: str = "files"
    source: Language
    into: Annotated[tuple[Language, ...], Field(min_length=1)]
    own: Literal["drop", "keep"] | None = None
    overlap: Literal["refuse", "drop"] = "refuse"
    options: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _consistent(self) -> "Translate":
        if len(set(self.into)) < len(self.into):
            raise Contradiction("a language stands twice", "into")
        if self.source in self.into:
            raise Contradiction(f"'{self.source}' is the language that is translated from", "into")
        if self.by == ORACLE and self.own == "keep":
            raise Contradiction("an oracle's rows are train's own; leave the key out", "own")
        if self.by == ORACLE and self.options:
            raise Contradiction("an oracle has none", "options")
        return self
