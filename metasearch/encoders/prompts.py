"""Prompts: text before each role's texts, as in the `encode` methods of sentence-transformers.

A question is read as by `encode_query`, a candidate as by `encode_document` and a text as by `encode`.
"""

from collections.abc import Mapping
from typing import Protocol

from metasearch.config.roles import Role


class Prompted(Protocol):
    """What has prompts, such as a `SentenceTransformer`."""

    prompts: dict[str, str]
    default_prompt_name: str | None


_NAMES: dict[Role, tuple[str, ...]] = {
    "question": ("query", "question", "search_query"),
    "candidate": ("document", "passage", "corpus", "doc", "text", "search_document"),
    "text": (),
}
"""Names under which a model may have the prompt of a role, the first before the others; else it has its default prompt.

sentence-transformers itself looks for `query`, and for `document`, `passage` and `corpus`.
"""

_LOOKED_FOR = ("query", "document", "passage", "corpus")
_TEXT = "text"


def prompt_of(model: Prompted, role: Role) -> str:
    """Return what a model puts before a text.

    sentence-transformers adds an empty prompt under `query` and `document` to a model without one, and saves it. So an
    empty prompt counts only where the model has no other for the role.
    """
    prompts, default = model.prompts, model.default_prompt_name
    names = [name for name in _NAMES[role] if name in prompts and not name == default == _TEXT]
    name = next((name for name in names if prompts[name]), names[0] if names else default)
    return (prompts.get(name) if name else "") or ""


def unused_prompts(model: Prompted) -> list[str]:
    """Return the names of a model's prompts that stand before no texts."""
    used = {"", *(prompt_of(model, role) for role in _NAMES)}
    return [name for name, prompt in model.prompts.items() if (prompt or "") not in used]


def written_out(model: Prompted) -> dict[str, str]:
    """Return a model's prompts, in which `query` and `document` are the prompts for questions and candidates."""
    return {**model.prompts, **{names[0]: prompt_of(model, role) for role, names in _NAMES.items() if names}}


def replace_prompts(model: Prompted, prompts: Mapping[Role, str]) -> None:
    """Replace the prompts of some roles; they are saved with the model, `text` as its default prompt."""
    # Before another changes it: the default prompt may be that of questions, too.
    texts = prompts.get("text", prompt_of(model, "text"))
    model.prompts = written_out(model)
    for role, prompt in prompts.items():
        # Under all names in use, as others look for any of them.
        names = (name for name in _NAMES[role] if name in _LOOKED_FOR or name in model.prompts)
        model.prompts.update(dict.fromkeys(names, prompt))
    if prompt_of(model, "text") != texts:
        model.prompts[_TEXT], model.default_prompt_name = texts, _TEXT
