"""Settings of the projection that removes language bias."""

from typing import Annotated

from pydantic import Field

from metasearch.config.base import Flag, Positive, Settings
from metasearch.config.languages import Language

LEAST = 5
"""Texts of a language that an estimate needs: the mean of fewer tells more of their contents than of the language."""


class ProjectionSettings(Settings):
    """How the projection that removes language bias is estimated; a language needs `LEAST` texts."""

    rank: Annotated[Positive | None, Flag(metavar="R")] = None
    """Number of directions to remove; by default one less than languages."""
    texts: Annotated[int, Field(ge=LEAST), Flag(name="--max-texts-per-language", metavar="N")] = 600
    """Texts of each language, at most."""
    languages: Annotated[tuple[Language, ...], Flag(metavar="LIST", comma=True)] = ()
    """Languages in the estimate, such as ar,de,el; by default all languages of the texts."""
