"""How an index is made: what never changes in it, and so is said once."""

from collections.abc import Mapping
from typing import Literal

from metasearch.config.base import Count, FrozenConfig, Positive
from metasearch.config.languages import Language
from metasearch.config.recipe import Role

PASSAGE_LENGTH = 128
"""Tokens of a passage where nothing else is said and the encoder reads so many."""


class IndexSettings(FrozenConfig):
    """How documents become passages and vectors.

    Attributes:
        length: tokens of the longest passage, prompt and special tokens included.
        overlap: tokens of the end of a passage that the next one may begin with.
        column: name of the column with the text in JSON lines and tables.
        titles: put a document's or a row's title before each of its passages.
        names: let the names of files and folders tell the language, such as `faq.de.md` and `de/faq.md`.
        language: of documents that do not tell it.
        detect: languages to choose from for texts that still have none; `all` for all that are known; None leaves them.
        neutral: take out of the vectors what their languages differ in.
        prompts: what is put before texts of a role, in place of the encoder's own prompt.
    """

    length: Positive | None = None
    overlap: Count = 0
    column: str = "text"
    titles: bool = True
    names: bool = True
    language: Language | None = None
    detect: tuple[Language, ...] | Literal["all"] | None = None
    neutral: bool = False
    prompts: Mapping[Role, str] = {}
