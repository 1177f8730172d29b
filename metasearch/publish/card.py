"""The model card: `README.md` of a model's folder, made of what the run itself wrote. Uses no network and no clock."""

from collections.abc import Iterable, Sequence

from huggingface_hub import ModelCard, ModelCardData

from metasearch.publish.about import About, Base, Figures, Source, Usage
from metasearch.publish.figures import eval_results, interval_table, tables
from metasearch.runs.markdown import markdown

_METHODS = {"question": "encode_query", "candidate": "encode_document", "text": "encode"}
_HEADER = "---\n{}\n---\n"


def render(about: About) -> str:
    """Return a card as text, which `huggingface_hub.ModelCard` reads; the same values give the same text."""
    data = ModelCardData(**about.front())
    if about.figures is not None and (found := eval_results(about.figures)):
        data.model_name, data.eval_results = about.title, found
    body = "\n\n".join(part for part in _parts(about) if part)
    # Through the library's own reader, so that what it cannot read is found here and not by who opens the card.
    return str(ModelCard(f"{_HEADER.format(data.to_yaml())}\n{body}\n"))


def _parts(about: About) -> Iterable[str]:
    yield f"# {about.title}"
    yield about.summary
    yield from ("## Use", use(about.usage))
    yield from ("## Figures", _figures(about.figures))
    yield from ("## Data", _data(about.data))
    yield from ("## Licence", _licence(about))
    yield from ("## How it was made", markdown(["", ""], [[name, value] for name, value in about.made.items()], left=2))
    yield f"All settings:\n\n```yaml\n{about.recipe.strip()}\n```" if about.recipe else ""
    yield from ("## Limits", "\n".join(f"- {sentence}" for sentence in about.limits))


def use(usage: Usage) -> str:
    """Return how a model is used with plain sentence-transformers, and how each role's texts are read."""
    loading = "import metasearch.encoders  # knows how this model is stored\n" if usage.needs_metasearch else ""
    lines = [
        [
            each.role,
            f"`{_METHODS[each.role]}`",
            f"`{each.prompt}`" if each.prompt else "none",
            str(each.length or "whole"),
        ]
        for each in usage.readings
    ]
    return f"""```python
{loading}from sentence_transformers import SentenceTransformer

model = SentenceTransformer(".")  # the folder of this card, or the model's name on a hub
questions = model.encode_query(["Where is the key?"])
answers = model.encode_document(["The key is under the mat.", "Bread is baked in an oven."])
print(model.similarity(questions, answers))
```

Vectors have {usage.dimension} dimensions and unit length, and are compared by their cosine; the model has \
{usage.parameters:,} parameters.{_cuts(usage)} Each method puts the prompt of its role before a text \
and cuts it at the role's length:

{markdown(["texts", "method", "prompt", "tokens at most"], lines, left=3)}"""


def _cuts(usage: Usage) -> str:
    """Return that vectors may be cut, and to how many numbers; nothing where they were not trained for it."""
    if not usage.cuts:
        return ""
    said = " or ".join(filter(None, [", ".join(map(str, usage.cuts[:-1])), str(usage.cuts[-1])]))
    return (
        f" They were trained to be cut to their first {said} numbers, too: "
        f'`SentenceTransformer(".", truncate_dim={usage.cuts[0]})` does it.'
    )


def _figures(figures: Figures | None) -> str:
    if figures is None or not figures.rows:
        return "None were measured. `metasearch evaluate --task TASK --encoder MODEL` measures some."
    before = f" `{figures.before}` is the encoder as it was." if figures.before else ""
    row = next((row for row in figures.rows if row["learner"] == figures.label and row["split"] == "test"), None)
    facts = [] if row is None else [f"{key} {row[key]}" for key in ("fold", "seed") if key in row]
    where = f" of {', '.join(facts)}" if facts else ""
    said = f"Scores times 100 on the test part{where}; `{figures.label}` is this model.{before}"
    return "\n\n".join([said, figures.shown or tables(figures), _intervals(figures)])


def _intervals(figures: Figures) -> str:
    if not figures.intervals:
        return "These are figures of one run, and no intervals were estimated: another seed or fold gives others."
    return (
        f"{interval_table(figures.intervals)}\n\nIntervals are over other test questions. They do not say what another "
        "seed or fold would change: this is one run."
    )


def _data(data: Sequence[Source]) -> str:
    if not data:
        return "None: no data was read."
    lines = []
    for each in data:
        about = [
            each.description,
            f"licence: {each.licence}",
            *([each.url] if each.url else []),
            *([f"fingerprint `{each.fingerprint}`"] if each.fingerprint else []),
        ]
        lines.append(f"- **{each.name}** ({each.use}): {'; '.join(filter(None, about))}")
    return "\n".join(lines)


def _licence(about: About) -> str:
    said = (
        "That of this model as a whole stands in the header of this card, as `license`; `unknown` means that nobody "
        "has said it. What it was made of has these:"
    )
    parts = [_base(base) for base in about.bases] + [f"- data `{each.name}`: {each.licence}" for each in about.data]
    return "\n\n".join(filter(None, [said, "\n".join(parts)]))


def _base(base: Base) -> str:
    name = f"{base.name} ({base.title})" if base.title and base.title != base.name else base.name
    mark = f", fingerprint `{base.fingerprint}`" if base.fingerprint else ""
    return f"- {base.role} {name}: {base.licence}{mark}"
