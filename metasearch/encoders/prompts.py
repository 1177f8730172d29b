"""Prompts: text before each role's texts, as in the `encode` methods of sentence-transformers.

A question is read as by `encode_query`, a candidate as by `encode_document` and a text as by `encode`.
"""

from collections.abc import Mapping

from sentence_transformers import SentenceTransformer

from metasearch.config.recipe import Role

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


def written_out(model: SentenceTransformer) -> dict[str, str]:
    """Return a model's prompts, with explicit ones for questions and candidates, under the names with priority.

    sentence-transformers adds an empty prompt under these names on loading, which would hide other names and the
    default.
    """
    first = {names[0]: prompt_of(model, role) for role, names in _NAMES.items() if names}
    return {**first, **model.prompts}


def replace_prompts(model: SentenceTransformer, prompts: Mapping[Role, str]) -> None:
    """Replace the prompts of some roles; they are saved with the model, `text` as its default prompt."""
    # Before another changes it: the default prompt may be that of questions, too.
    texts = prompts.get("text", prompt_of(model, "text"))
    model.prompts = written_out(model)
    for role, prompt in prompts.items():
        # Under all names in use, as others look for any of them.
        model.prompts.update(dict.fromkeys(_NAMES[role], prompt))
    if prompt_of(model, "text") != texts:
        model.prompts[_TEXT], model.default_prompt_name = texts, _TEXT
