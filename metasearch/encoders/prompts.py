"""Prompts: what is put before the texts of a role, as sentence-transformers does in its `encode` methods.

A question is read as by `encode_query`, a candidate as by `encode_document` and a text as by `encode`.
"""

from collections.abc import Mapping

from sentence_transformers import SentenceTransformer

from metasearch.spec.recipe import Role

_NAMES: dict[Role, tuple[str, ...]] = {
    "question": ("query",),
    "candidate": ("document", "passage", "corpus"),
    "text": (),
}
"""Names under which a model may have the prompt of a role; the first that it has is taken, else its default prompt."""

_TEXT = "text"


def prompt_of(model: SentenceTransformer, role: Role) -> str:
    """Return what a model puts before a text."""
    name = next((name for name in _NAMES[role] if name in model.prompts), model.default_prompt_name)
    return model.prompts.get(name) or ""


def replace_prompts(model: SentenceTransformer, prompts: Mapping[Role, str]) -> None:
    """Replace the prompts of some roles; a model is saved with them, that of `text` as its default prompt."""
    for role, prompt in prompts.items():
        # Candidates under both names in use, as others look for either.
        names = _NAMES[role][:2] or (_TEXT,)
        model.prompts.update(dict.fromkeys(names, prompt))
        if role == "text":
            model.default_prompt_name = _TEXT
