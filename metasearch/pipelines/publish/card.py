"""Model cards as text: content of new cards, and parsing of existing ones. Uses no network."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from huggingface_hub import EvalResult, ModelCard, ModelCardData

from metasearch.errors import ConfigError, DataError, MetasearchError, first_line
from metasearch.io import read_bytes
from metasearch.runs.markdown import DIRECTIONS, by_direction, by_language, fact_table
from metasearch.runs.rows import MEAN, STAGE, Row

CARD = "README.md"
UNKNOWN = "unknown"
"""Licence that nobody has stated; model hubs know the word."""

_TASK_TYPES = {
    "retrieval": "information-retrieval", "similarity": "semantic-similarity", "translation": "translation",
}  # fmt: skip
"""Kind of a task → its name in the header, as in cards of sentence-transformers."""
_BOTH = DIRECTIONS[-1]
_TITLE = re.compile(r"^# +(.+?) *$", re.M)
_IDENTIFIER = re.compile(r"[a-z0-9][a-z0-9.+-]{1,63}")


class Base(NamedTuple):
    """An encoder that a model was made from, or that taught it; only `role` and `name` are always known."""

    role: str
    name: str
    """Markdown; never the path of a local folder."""
    hub: str | None = None
    licence: str = UNKNOWN
    fingerprint: str = ""
    title: str = ""
    """Title of its own card."""

    @property
    def short(self) -> str:
        """Name for a title."""
        return self.title or self.name.strip("`")

    def __str__(self) -> str:
        name = f"{self.name} ({self.title})" if self.title and self.title != self.name else self.name
        mark = f", fingerprint `{self.fingerprint}`" if self.fingerprint else ""
        return f"- {self.role} {name}: {self.licence}{mark}"


class Dataset(NamedTuple):
    """Data that a model was trained, estimated or scored on; only `use` and `name` are always known."""

    use: str
    name: str
    description: str = ""
    url: str = ""
    licence: str = UNKNOWN
    fingerprint: str = ""

    def __str__(self) -> str:
        mark = f"fingerprint `{self.fingerprint}`" if self.fingerprint else ""
        facts = filter(None, [self.description, f"licence: {self.licence}", self.url, mark])
        return f"- **{self.name}** ({self.use}): {'; '.join(facts)}"


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
        row = next(row for row in self.rows if row["learner"] == self.label and row["split"] == "test")
        which = ", ".join(f"{key} {row[key]}" for key in ("fold", "seed") if key in row)
        return (
            f"Scores times 100 on test data ({which}). `{self.label}` is this model, `{self.before}` the encoder "
            "before. Another seed or fold gives other scores; `metasearch compare` gives confidence intervals.\n\n"
            f"{self.shown or self._tables()}"
        )

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
        found = []
        for task in scored_tasks(self.rows):
            own = [
                row for row in self.rows if (row["task"], row["learner"], row["split"]) == (task, self.label, "test")
            ]
            own = [row for row in own if "found" not in row]  # no means over groups of languages
            main = _main_pool(own)
            chosen = (row for row in own if row["pool"] == main or row["language"] == MEAN)
            found += [_result(row, before.get(_key(row)), self.kinds[task]) for row in chosen]
        return found


def _result(row: Row, before: float | None, kind: str) -> EvalResult:
    args = {"fold": row["fold"], "pool": row["pool"], "questions": row.get("count")}
    return EvalResult(
        task_type=_TASK_TYPES[kind],
        dataset_type=row["task"],
        dataset_name=row["task"],
        dataset_config=f"{row['pool']}, {row['language']}",
        dataset_split=row["split"],
        dataset_revision=row["data"],
        dataset_args={key: value for key, value in args.items() if value is not None},
        metric_type=row["measure"],
        metric_name=f"{row['measure']}, {row['pool']}, {row['language']}",
        metric_value=round(100 * row["value"], 2),
        metric_args=None if before is None else {"before": round(100 * before, 2)},
    )


@dataclass(frozen=True)
class Card:
    """Everything that a card says.

    Attributes:
        title: first heading, and the name of the model beside its scores.
        summary: one paragraph.
        use: how the model is used, in Markdown.
        library: that loads the model, as model hubs name it.
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
    use: str
    library: str
    bases: Sequence[Base]
    data: Sequence[Dataset] = ()
    languages: Sequence[str] = ()
    scores: Scores | None = None
    facts: Mapping[str, str] = field(default_factory=dict)
    recipe: str = ""
    limits: Sequence[str] = ()
    licence: str = UNKNOWN
    tags: Sequence[str] = ()

    def __str__(self) -> str:
        """Return the card as text; the same values give the same text."""
        # The library parses what it will have to read.
        return str(ModelCard(f"---\n{self._header().to_yaml()}\n---\n{self._body()}\n"))

    def _header(self) -> ModelCardData:
        family = "onnx" if self.library == "onnx" else "sentence-transformers"
        tags = [family, "sentence-similarity", "semantic-search", "metasearch", *self.tags]
        return ModelCardData(
            language=list(self.languages) or None,
            license=self.licence,
            library_name=self.library,
            pipeline_tag="sentence-similarity",
            base_model=sorted({base.hub for base in self.bases if base.hub}) or None,
            tags=[*tags, *(["multilingual"] if len(self.languages) > 1 else [])],
            model_name=self.title if self.scores else None,
            eval_results=self.scores.results() if self.scores else None,
        )

    def _body(self) -> str:
        unscored = "None were measured. `metasearch evaluate --task TASK --encoder MODEL` measures them."
        licences = [*map(str, self.bases), *(f"- data `{each.name}`: {each.licence}" for each in self.data)]
        parts = (
            f"# {self.title}", self.summary,
            "## Use", self.use,
            "## Scores", str(self.scores or unscored),
            "## Data", "\n".join(map(str, self.data)) or "No data was read.",
            "## Licence",
            "The header of this card states the licence of the model as `license`; `unknown` means that nobody has "
            "stated it. Licences of what the model was made from:", "\n".join(licences),
            "## How it was made", fact_table("", self.facts),
            f"All settings:\n\n```yaml\n{self.recipe.strip()}\n```" if self.recipe else "",
            "## Limits", "\n".join(f"- {sentence}" for sentence in self.limits),
        )  # fmt: skip
        return "\n\n".join(filter(None, parts))


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
