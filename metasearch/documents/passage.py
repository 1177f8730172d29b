"""A part of a document that a search finds, and the place it was taken from."""

from dataclasses import dataclass

from metasearch.spec.languages import UNKNOWN


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a document.

    Attributes:
        text: what is searched and shown; begins with the document's title and a line end where titles are put before.
        file: the document as users see it, with forward slashes: the path as it was given, then that within the folder.
        line: the line of the file, from 1, in which the passage begins.
        language: a tag such as `de` or `zh-Hant`; `und` where it is not known.
    """

    text: str
    file: str
    line: int
    language: str = UNKNOWN
