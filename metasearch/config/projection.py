"""Remove language bias before or after training."""

from typing import Annotated, Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

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


class RecipeProjection(ProjectionSettings):
    """Remove language bias from the encoder's embeddings; in YAML, `when` alone stands for the whole section.

    Attributes:
        when: `before` training, which then goes through the projection and trains it along, or `after` it: then it is
            fitted anew for each dev score, and the run has scores with and without it.
    """

    when: Literal["before", "after"]

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        return {"when": value} if isinstance(value, str) else value

    @model_serializer(mode="wrap")
    def _changed(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Return all values that differ from the defaults, for the label of an arm."""
        defaults = {name: field.default for name, field in type(self).model_fields.items() if name != "when"}
        return {name: value for name, value in write(self).items() if defaults.get(name, ...) != getattr(self, name)}
