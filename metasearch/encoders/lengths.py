"""Where texts are truncated: at the length that a task declares for their role, else at the checkpoint's own."""

import sys
from collections.abc import Mapping

from metasearch.config.recipe import MaxLength, Role
from metasearch.errors import EncoderError

UNLIMITED = sys.maxsize
"""Length of a role whose texts are read to their end."""

_KINDS: tuple[tuple[Role, ...], ...] = (("question", "candidate"), ("text",))
"""Roles of retrieval, and of similarity and translation."""
_LEAST = 3
"""A word between two special tokens."""


def own_lengths(saved: Mapping[Role, float | None]) -> MaxLength:
    """Return the lengths that a checkpoint was saved with.

    Args:
        saved: role → tokens; None, infinity, or a number such as the 10³⁰ of tokenizers where there is no limit.

    Raises:
        EncoderError: a text of so few tokens has no word.
    """
    for role, length in saved.items():
        if length is not None and length < _LEAST:
            raise EncoderError(
                f"it reads {length:g} tokens of a {role} (max_seq_length, or {role}'s own length in "
                f"sentence_bert_config.json), special tokens included; a length is at least {_LEAST}"
            )
    return MaxLength(
        **{role: UNLIMITED if length is None or length >= UNLIMITED else int(length) for role, length in saved.items()}
    )


def complete(declared: MaxLength | None, own: MaxLength) -> MaxLength:
    """Return every role's length.

    A role that is not declared has the longest declared length of the other kind of task, so that no text is read
    further than in training. Where that kind is not declared either, it has the checkpoint's own length.

    Args:
        declared: as a task has them; None where there is no task.
        own: those of the checkpoint, of all roles.
    """
    given = declared.model_dump(exclude_none=True) if declared else {}
    found: dict[str, int] = {}
    for kind, other in (_KINDS, _KINDS[::-1]):
        elsewhere = max((given[role] for role in other if role in given), default=None)
        here = any(role in given for role in kind)
        for role in kind:
            found[role] = given.get(role) or (None if here else elsewhere) or getattr(own, role)
    return MaxLength(**found)
