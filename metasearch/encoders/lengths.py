"""How long texts of a role may be by the lengths that a task declares, which are of one kind of task only."""

from metasearch.spec.recipe import MaxLength, Role

_KINDS: tuple[tuple[Role, ...], ...] = (("question", "candidate"), ("text",))
"""Roles of retrieval, and of similarity and translation."""


def length_of(lengths: MaxLength, role: Role) -> int:
    """Return the longest input of a role in tokens; a role of the other kind of task has the longest of that kind.

    So no text is read further than the task's own are. Where nothing is declared, each role has its default.
    """
    declared = lengths.model_fields_set
    (other,) = (kind for kind in _KINDS if role not in kind)
    roles = other if declared and declared <= set(other) else (role,)
    return max(int(getattr(lengths, each)) for each in roles)
