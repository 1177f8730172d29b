"""The texts of any kind of data, as an encoder reads them."""

from collections.abc import Iterator
from typing import NamedTuple

from metasearch.data.records import Data, RetrievalData
from metasearch.spec.recipe import Role


class RoleText(NamedTuple):
    """A text, what it is to the encoder, and its language."""

    role: Role
    text: str
    language: str


def texts_of(data: Data) -> Iterator[RoleText]:
    """Yield every text of questions, candidates or pairs, in their order; one that stands there twice comes twice."""
    if isinstance(data, RetrievalData):
        yield from (RoleText("question", question.text, question.language) for question in data.questions)
        yield from (RoleText("candidate", candidate.text, candidate.language) for candidate in data.candidates)
    else:
        for pair in data.pairs:
            yield from (RoleText("text", *side) for side in zip(pair.texts, pair.languages, strict=True))
