"""Model cards: what a card says, its text and its header, and what a card that exists already says. Uses no network."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from huggingface_hub import EvalResult, ModelCard, ModelCardData

from metasearch.config.recipe import Role
from metasearch.errors import ConfigError, DataError, MetasearchError, first_line
from metasearch.io import read_bytes
from metasearch.runs.markdown import DIRECTIONS, by_direction, by_language, fact_table, markdown
from metasearch.runs.rows import MEAN, STAGE, Row

CARD = "README.md"
UNKNOWN = "unknown"
"""Licence that nobody has stated; model hubs know the word."""

_TASK_TYPES = {
    "retrieval": "information-retrieval", "similarity": "semantic-similarity", "translation": "translation",
}  # fmt: skip
"""Kind of a task → its name in the header, as in cards of sentence-transformers."""
_METHODS = {"question": "encode_query", "candidate": "encode_document", "text": "encode"}
_BOTH = DIRECTIONS[-1]
_TITLE = re.compile(r"^# +(.+?) *$", re.M)
_IDENTIFIER = re.compile(r"[a-z0-9][a-z0-9.+-]{1,63}")


@dataclass(frozen=True)
class Base:
    """An encoder that a model was made from, or that taught it.

    Attributes:
        role: `base`, `teacher`, ...
        name: Markdown; never the path of a local folder.
        hub: name on a model hub, if it has one.
        licence: its licence, or `unknown`.
        fingerprint: of its checkpoint; may be empty.
        title: title of its own card; may be empty.
    """

    role: str
    name: str
    hub: str | None = None
    licence: str = UNKNOWN
    fingerprint: str = ""
    title: str = ""

    @property
    def short(self) -> str:
        """Name for a title."""
        return self.title or self.name.strip("`")


@dataclass(frozen=True)
class Dataset:
    """Data that a model was trained, estimated or scored on.

    Attributes:
        use: such as `trained and scored on`.
        name: name of the task or the file.
        description: one line.
        url: source; may be empty.
        licence: as declared, or `unknown`.
        fingerprint: of the data; may be empty.
    """

    use: str
    name: str
    description: str = ""
    url: str = ""
    licence: str = UNKNOWN
    fingerprint: str = ""


@dataclass(frozen=True)
class Usage:
    """How a model is loaded and used.

    Attributes:
        inputs: role, prompt, and maximum length in tokens (None: no truncation) of each kind of text.
        dimension: dimensions of a vector.
        parameters: number of weights; shared weights count once.
        library: that loads the model, as model hubs name it; `metasearch` stands for `import metasearch.encoders` and
            sentence-transformers.
        truncations: dimensions to which vectors were trained to be truncated.
        example: Python code that uses the model; by default that of sentence-transformers. It defines
            `encode(texts, role)`.
    """

    inputs: tuple[tuple[Role, str, int | None], ...]
    dimension: int
    parameters: int
    library: Literal["sentence-transformers", "metasearch", "onnx"] = "sentence-transformers"
    truncations: tuple[int, ...] = ()
    example: str = ""

    def __str__(self) -> str:
        """Return the section in Markdown."""
        lines = [
            [role, f"`{self._method(role)}`", f"`{prompt}`" if prompt else "none", str(length or "unlimited")]
            for role, prompt, length in self.inputs
        ]
        truncated = (
            f" They can be truncated to their first {' or '.join(map(str, self.truncations))} dimensions (Matryoshka) "
            "with `truncate_dim`."
        )
        return f"""```python
{self.example or self._default_example()}```

The model has {self.parameters:,} parameters. Vectors have {self.dimension} dimensions and unit length; compare them \
by cosine similarity.{truncated if self.truncations else ""} Each method adds a prompt and truncates the text:

{markdown(["texts", "method", "prompt", "tokens at most"], lines, left=3)}"""

    def _method(self, role: Role) -> str:
        return f'encode(texts, "{role}")' if self.example else _METHODS[role]

    def _default_example(self) -> str:
        registers = "import metasearch.encoders  # registers the architecture of this model\n"
        loading = registers if self.library == "metasearch" else ""
        return f"""{loading}from sentence_transformers import SentenceTransformer

model = SentenceTransformer(".")  # the folder of this card, or the name of the model on a hub
questions = model.encode_query(["Where is the key?"])
answers = model.encode_document(["The key is under the mat.", "Bread is baked in an oven."])
print(model.similarity(questions, answers))
"""


@dataclass(frozen=True)
class Scores:
    """The scores of a model and of the encoder before.

    Attributes:
        rows: as in `results.jsonl`.
        label: `learner` of the model in these rows.
        before: `learner` of the encoder before.
        kinds: task → `retrieval`, `similarity` or `translation`.
        shown: tables in Markdown; made from the rows if empty.
    """

    rows: Sequence[Row]
    label: str
    before: str
    kinds: Mapping[str, str]
    shown: str = ""

    def __str__(self) -> str:
        """Return the section in Markdown."""
        row = next(row for row in self.rows if row["learner"] == self.label and row["split"] == "test")
        which = ", ".join(f"{key} {row[key]}" for key in ("fold", "seed") if key in row)
        said = (
            f"Scores times 100 on test data ({which}). `{self.label}` is this model, `{self.before}` the encoder "
            "before. Another seed or fold gives other scores; `metasearch compare` gives confidence intervals."
        )
        return f"{said}\n\n{self.shown or self._tables()}"

    def _tables(self) -> str:
        parts = []
        for task in scored_tasks(self.rows):
            rows = [row for row in self.rows if row["task"] == task]
            table = by_direction(rows, "test") if _main_pool(rows) == _BOTH else by_language(rows, "test")
            parts += [f"### {task}", table]
        return "\n\n".join(parts)

    def results(self) -> list[EvalResult]:
        """Return test scores for the header: all languages of the main pool, the means of other pools."""
        before = {_key(row): row["value"] for row in self.rows if row["learner"] == self.before}
        return [self._result(row, before.get(_key(row))) for row in self._header_rows()]

    def _header_rows(self) -> Iterator[Row]:
        for task in scored_tasks(self.rows):
            wanted = (task, self.label, "test")
            own = [row for row in self.rows if (row["task"], row["learner"], row["split"]) == wanted]
            own = [row for row in own if "found" not in row]  # no means over groups of languages
            main = _main_pool(own)
            yield from (row for row in own if row["pool"] == main or row["language"] == MEAN)

    def _result(self, row: Row, before: float | None) -> EvalResult:
        task, pool, language = row["task"], row["pool"], row["language"]
        args = {"fold": row["fold"], "pool": pool, "questions": row.get("count")}
        return EvalResult(
            task_type=_TASK_TYPES[self.kinds[task]],
            dataset_type=task,
            dataset_name=task,
            dataset_config=f"{pool}, {language}",
            dataset_split=row["split"],
            dataset_revision=row["data"],
            dataset_args={key: value for key, value in args.items() if value is not None},
            metric_type=row["measure"],
            metric_name=f"{row['measure']}, {pool}, {language}",
            metric_value=round(100 * row["value"], 2),
            metric_args=None if before is None else {"before": round(100 * before, 2)},
        )


@dataclass(frozen=True)
class Card:
    """Everything that a card says.

    Attributes:
        title: first heading, and the name of the model beside its scores.
        summary: one paragraph.
        usage: how the model is used.
        bases: encoders that it was made from.
        data: what it was trained and scored on.
        languages: of the training data; empty if unknown.
        scores: None if nothing was scored.
        facts: name → value of each fact of how it was made.
        recipe: all settings as YAML; may be empty.
        limits: sentences.
        licence: of the model as a whole, an identifier of model hubs; `unknown` until the user states it.
        tags: further tags of the header.
    """

    title: str
    summary: str
    usage: Usage
    bases: tuple[Base, ...]
    data: Sequence[Dataset] = ()
    languages: tuple[str, ...] = ()
    scores: Scores | None = None
    facts: Mapping[str, str] = field(default_factory=dict)
    recipe: str = ""
    limits: Sequence[str] = ()
    licence: str = UNKNOWN
    tags: tuple[str, ...] = ()

    def text(self) -> str:
        """Return the card as text; the same values give the same text."""
        body = "\n\n".join(filter(None, self._parts()))
        # The library parses what it will have to read.
        return str(ModelCard(f"---\n{self._header().to_yaml()}\n---\n{body}\n"))

    def _header(self) -> ModelCardData:
        family = "onnx" if self.usage.library == "onnx" else "sentence-transformers"
        tags = [family, "sentence-similarity", "semantic-search", "metasearch", *self.tags]
        return ModelCardData(
            language=list(self.languages) or None,
            license=self.licence,
            library_name=self.usage.library,
            pipeline_tag="sentence-similarity",
            base_model=sorted({base.hub for base in self.bases if base.hub}) or None,
            tags=[*tags, *(["multilingual"] if len(self.languages) > 1 else [])],
            model_name=self.title if self.scores else None,
            eval_results=self.scores.results() if self.scores else None,
        )

    def _parts(self) -> Iterator[str]:
        yield from (f"# {self.title}", self.summary, "## Use", str(self.usage))
        unscored = "None were measured. `metasearch evaluate --task TASK --encoder MODEL` measures them."
        yield from ("## Scores", str(self.scores) if self.scores else unscored)
        yield from ("## Data", "\n".join(map(_describe_dataset, self.data)) or "No data was read.")
        yield from (
            "## Licence",
            "The header of this card states the licence of the model as `license`; `unknown` means that nobody has "
            "stated it. Licences of what the model was made from:",
            "\n".join([*map(_describe_base, self.bases), *(f"- data `{d.name}`: {d.licence}" for d in self.data)]),
        )
        yield from ("## How it was made", fact_table("", self.facts))
        yield f"All settings:\n\n```yaml\n{self.recipe.strip()}\n```" if self.recipe else ""
        yield from ("## Limits", "\n".join(f"- {sentence}" for sentence in self.limits))


def _describe_dataset(data: Dataset) -> str:
    mark = f"fingerprint `{data.fingerprint}`" if data.fingerprint else ""
    facts = filter(None, [data.description, f"licence: {data.licence}", data.url, mark])
    return f"- **{data.name}** ({data.use}): {'; '.join(facts)}"


def _describe_base(base: Base) -> str:
    name = f"{base.name} ({base.title})" if base.title and base.title != base.name else base.name
    mark = f", fingerprint `{base.fingerprint}`" if base.fingerprint else ""
    return f"- {base.role} {name}: {base.licence}{mark}"


def scored_tasks(rows: Iterable[Row]) -> list[str]:
    """Return the tasks of rows; the dev scores of a distillation's stages belong to no task."""
    return [task for task in dict.fromkeys(row["task"] for row in rows) if task != STAGE]


def _main_pool(rows: Sequence[Row]) -> str:
    """Return the pool of the main score: the first; of translations the mean of both directions."""
    pools = list(dict.fromkeys(row["pool"] for row in rows))
    return _BOTH if _BOTH in pools else next(iter(pools), "")


def _key(row: Row) -> tuple[str, ...]:
    return tuple(str(row[key]) for key in ("task", "split", "measure", "pool", "language", "candidates"))


def load_card(path: Path) -> ModelCard:
    """Return a card; `DataError` if it cannot be read as one. Uses no network."""
    try:
        # ModelCard.load would look for a missing file on the hub.
        return ModelCard(read_bytes(path).decode("utf-8-sig"))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None
    except Exception as error:  # the YAML library and the card raise errors of their own
        raise DataError(f"{path}: no model card: its header cannot be read: {first_line(error)}") from None


def missing_card(folder: Path) -> str:
    """Return the error text for the folder of a model without a card."""
    how = "write the file: the lines '---', 'license: ID' and '---', and below them a description of the model"
    return f"{folder} has no {CARD}, its model card; {how}"


def read_title(path: Path) -> str:
    """Return the first heading of a card, or an empty text; `DataError` as `load_card`."""
    found = _TITLE.search(load_card(path).text)
    return found[1] if found else ""


def read_licence(path: Path) -> str:
    """Return the licence that a card states, several with commas between; `unknown` if it states none."""
    try:
        stated = load_card(path).data.get("license") if path.is_file() else None
    except MetasearchError:
        return UNKNOWN  # the card of another model is damaged
    named = stated if isinstance(stated, list) else [stated]
    return ", ".join(each for each in named if isinstance(each, str) and each) or UNKNOWN


def require_identifier(licence: str) -> str:
    """Return a licence as model hubs write it; `ConfigError` for text that cannot be one."""
    if not _IDENTIFIER.fullmatch(licence):
        near = re.sub(r"[\s_]+", "-", licence.strip().lower())
        hint = f" Did you mean '{near}'?" if _IDENTIFIER.fullmatch(near) else ""
        raise ConfigError(
            f"licence '{licence}': expected an identifier of model hubs, such as apache-2.0 or cc-by-sa-4.0.{hint}"
        )
    return licence
