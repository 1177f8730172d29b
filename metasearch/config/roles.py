"""What a text is to an encoder: a question, a candidate or neither, and how long it may be."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, model_validator

from metasearch.config.base import FrozenConfig, Length

Role = Literal["question", "candidate", "text"]
"""What a text is to the encoder; it decides how long the text may be and which prompt stands before it."""
ROLE_NAMES: dict[str, Role] = {"query": "question", "document": "candidate", "text": "text"}
"""Role as users name it → role; the names `question` and `candidate` work, too."""
PublicRole = Annotated[Role, BeforeValidator(lambda name: ROLE_NAMES.get(name, name))]
"""A role, or its public name."""


def public_name(role: str) -> str:
    """Return a role's public name: `query` for `question`, `document` for `candidate`."""
    return next((name for name, own in ROLE_NAMES.items() if own == role), role)


class MaxLength(FrozenConfig):
    """Longest inputs in tokens, special tokens included; longer ones are truncated.

    Files may also write `query` and `document`. Tasks of retrieval have questions and candidates, all others `text`.
    None leaves a role the checkpoint's own length (`metasearch.encoders.lengths`).
    """

    question: Length | None = None
    candidate: Length | None = None
    text: Length | None = None

    @model_validator(mode="before")
    @classmethod
    def _rename(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        for name, role in ROLE_NAMES.items():
            if name != role and name in value and role in value:
                raise ValueError(f"'{name}' and '{role}' are the same; omit one")
        return {ROLE_NAMES.get(str(name), name): length for name, length in value.items()}
