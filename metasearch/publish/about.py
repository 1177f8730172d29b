"""What a model card says, before it is written: plain values, which the jobs that make models fill in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from metasearch.publish.licence import UNKNOWN
from metasearch.runs.rows import Row
from metasearch.spec.recipe import Role


@dataclass(frozen=True)
class Base:
    """An encoder that a model is made of, or was taught by.

    Attributes:
        role: what it is to the model, such as `base` or `teacher`.
        name: as a reader of the card knows it; a local folder is never named.
        hub: its name on a model hub, where it is known to be there.
        licence: its licence, or `unknown`.
        fingerprint: of its checkpoint; empty where nobody took it.
        title: of its own card, where it has one.
    """

    role: str
    name: str
    hub: str | None = None
    licence: str = UNKNOWN
    fingerprint: str = ""
    title: str = ""


@dataclass(frozen=True)
class Source:
    """Data that a model was trained, estimated or scored on.

    Attributes:
        use: what it was used for, such as `trained and scored on`.
        name: of the task, or of a file.
        description: one line.
        url: where it comes from; empty where that is not known.
        licence: as its declaration has it, or `unknown`.
        fingerprint: of the data; empty where nobody took it.
    """

    use: str
    name: str
    description: str = ""
    url: str = ""
    licence: str = UNKNOWN
    fingerprint: str = ""


@dataclass(frozen=True)
class Reading:
    """How plain sentence-transformers reads the texts of one role.

    Attributes:
        role: `question`, `candidate` or `text`.
        prompt: what stands before each text.
        length: longest input in tokens; None where texts are never cut.
    """

    role: Role
    prompt: str
    length: int | None


@dataclass(frozen=True)
class Usage:
    """What one has to know of a model to use it.

    Attributes:
        readings: of each role.
        dimension: of its vectors.
        parameters: weights, shared ones counted once.
        needs_metasearch: whether `import metasearch.encoders` goes before loading.
        cuts: to how many of their first numbers vectors were trained to be cut.
    """

    readings: tuple[Reading, ...]
    dimension: int
    parameters: int
    needs_metasearch: bool = False
    cuts: tuple[int, ...] = ()


@dataclass(frozen=True)
class Interval:
    """The figure of a model, or what it gained, with an interval over test questions; all times 100.

    Attributes:
        task: name of the task.
        measure: such as `map@20`.
        what: what the figure is of, such as `maml` or `maml less zero-shot`.
        value: the figure.
        low: lower end; None where it is undefined.
        high: upper end, likewise.
        units: how many articles or questions are resampled.
        unit: `articles`, or `questions`.
    """

    task: str
    measure: str
    what: str
    value: float
    low: float | None
    high: float | None
    units: int
    unit: str


@dataclass(frozen=True)
class Figures:
    """The scores of a model and of what it was before.

    Attributes:
        rows: scores as in `results.jsonl`, of all that the tables show.
        label: the model's `learner` in these rows.
        before: `learner` of the encoder as it was; None where it has no scores.
        kinds: task → `retrieval`, `similarity` or `translation`.
        intervals: over test questions; empty where none were estimated.
        shown: Markdown in place of the tables of the rows, where who made the model shows them in a way of its own.
    """

    rows: Sequence[Row]
    label: str
    before: str | None
    kinds: Mapping[str, str]
    intervals: tuple[Interval, ...] = ()
    shown: str = ""


@dataclass(frozen=True)
class About:
    """All that a card says.

    Attributes:
        title: first heading, and the model's name beside its figures.
        summary: one paragraph.
        usage: how the model is used.
        bases: what it was made of.
        data: what it was trained and scored on.
        languages: of the data that it was made with; empty where they are not known.
        figures: its scores; None where none were measured.
        made: name → value of each fact of how it was made.
        recipe: all settings, as YAML; empty where there is no recipe.
        limits: sentences.
        licence: of the model as a whole, an identifier of model hubs; `unknown` unless somebody said it.
        tags: further tags of the header.
    """

    title: str
    summary: str
    usage: Usage
    bases: tuple[Base, ...] = ()
    data: tuple[Source, ...] = ()
    languages: tuple[str, ...] = ()
    figures: Figures | None = None
    made: Mapping[str, str] = field(default_factory=dict)
    recipe: str = ""
    limits: tuple[str, ...] = ()
    licence: str = UNKNOWN
    tags: tuple[str, ...] = ()

    def front(self) -> dict[str, Any]:
        """Return the header of the card, its figures apart; what is not known is left out, save the licence."""
        hubs = sorted({base.hub for base in self.bases if base.hub})
        library = "metasearch" if self.usage.needs_metasearch else "sentence-transformers"
        tags = ["sentence-transformers", "sentence-similarity", "semantic-search", "metasearch", *self.tags]
        return {
            "language": list(self.languages) or None,
            "license": self.licence,
            "library_name": library,
            "pipeline_tag": "sentence-similarity",
            "base_model": hubs or None,
            "tags": [*tags, *(["multilingual"] if len(self.languages) > 1 else [])],
        }
