"""The parts of the model cards that commands write, and how they become one; each command fills in its own."""

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, get_args

from huggingface_hub import EvalResult, ModelCard, ModelCardData, try_to_load_from_cache

from metasearch.compress.onnx_encoder import Facts
from metasearch.compress.onnx_folder import EXAMPLE
from metasearch.compress.standard import is_compressed
from metasearch.config import registry, yaml
from metasearch.config.distillation import Distillation
from metasearch.config.measure import is_rank
from metasearch.config.recipe import Recipe
from metasearch.config.roles import Role
from metasearch.config.task import Task
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.lengths import UNLIMITED
from metasearch.encoders.open import is_path
from metasearch.errors import first_line
from metasearch.runs.markdown import DIRECTIONS, by_direction, by_language, fact_table, markdown
from metasearch.runs.rows import MEAN, Row
from metasearch.runs.versions import LOCAL, describe_versions, versions

log = logging.getLogger(__name__)

CARD = "README.md"
UNKNOWN = "unknown"
"""Licence of a model until its owner states one; model hubs know the word."""
SERVERS = (
    "text-embeddings-inference and vLLM do not normalise between pooling and the projection, so they compute other "
    "vectors. An ONNX graph (`metasearch export --onnx`) carries the projection."
)
"""Limit of every neutral encoder that is no graph."""
ROUTED = (
    "Only sentence-transformers 6 loads it: it ends in a `Router`, which maps queries and documents apart. It cannot "
    "become an ONNX graph, and text-embeddings-inference and vLLM cannot serve it."
)
"""Limit of every encoder with an adapter."""

_UNMEASURED = "None were measured. `metasearch evaluate --task TASK --encoder MODEL` measures them."

_TEMPLATE = Path(__file__).with_name("card.md.j2")
_METHODS = {"question": "encode_query", "candidate": "encode_document", "text": "encode"}


# The parts of a card.


class Base(NamedTuple):
    """An encoder that a model was made from, or that taught it; only `role` and `name` are always known.

    `name` is in Markdown, and never the path of a local folder; `title` is that of its own card.
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


class Dataset(NamedTuple):
    """Data that a model was trained, estimated or scored on; only `use` and `name` are always known."""

    use: str
    name: str
    description: str = ""
    url: str = ""
    licence: str = UNKNOWN
    fingerprint: str = ""


@dataclass(frozen=True)
class Scores:
    """Scores of a model and the encoder before, from rows as in `results.jsonl`.

    `label` and `before` are their `learner` in these rows.
    """

    rows: Sequence[Row]
    label: str
    before: str

    @property
    def which(self) -> str:
        """Fold and seed, as far as the rows name them."""
        row = next(row for row in self.rows if row["learner"] == self.label and row["split"] == "test")
        return ", ".join(f"{key} {row[key]}" for key in ("fold", "seed") if key in row)

    @property
    def tables(self) -> str:
        """Tables of the test scores."""
        parts = []
        for task in dict.fromkeys(row["task"] for row in self.rows):
            rows = [row for row in self.rows if row["task"] == task]
            directed = any(row["pool"] in DIRECTIONS for row in rows)
            parts += [f"### {task}", (by_direction if directed else by_language)(rows, "test")]
        return "\n\n".join(parts)

    def results(self) -> list[EvalResult]:
        """Return test scores for the header: the mean over languages in each pool."""
        own = [row for row in self.rows if (row["learner"], row["split"]) == (self.label, "test")]
        return [_result(row) for row in own if row["language"] == MEAN]


def _result(row: Row) -> EvalResult:
    return EvalResult(
        task_type=_task_type(row["pool"]),
        dataset_type=row["task"],
        dataset_name=row["task"],
        dataset_config=f"{row['pool']}, {row['language']}",
        dataset_split=row["split"],
        dataset_revision=row["data"],
        metric_type=row["measure"],
        metric_name=f"{row['measure']}, {row['pool']}, {row['language']}",
        metric_value=round((1 if is_rank(row["measure"]) else 100) * row["value"], 2),
    )


def _task_type(pool: str) -> str:
    """Return the name of a kind of task in sentence-transformers' cards."""
    if pool in DIRECTIONS:
        return "translation"
    return "semantic-similarity" if pool == "pairs" else "information-retrieval"


def make_card(
    encoder: Encoder,
    bases: Sequence[Base],
    limits: Sequence[str],
    *,
    command: str,
    title: str,
    summary: str,
    facts: Mapping[str, str],
    data: Sequence[Dataset] = (),
    languages: Sequence[str] = (),
    scores: Scores | None = None,
    measured: str = _UNMEASURED,
    recipe: Recipe | Distillation | None = None,
    tags: Sequence[str] = (),
    graph: Facts | None = None,
    int8: bool = False,
) -> str:
    """Return a card; the same values give the same text.

    `limits` are the model's own, before general ones. `measured` describes the scores where there are no `scores` in
    rows. Facts in `LOCAL` are not shown. `graph` has the facts of an ONNX graph's folder. `int8` says that the weights
    are in eight bits.
    """
    own = is_compressed(encoder) or int8
    library = "onnx" if graph else "metasearch" if own else "sentence-transformers"
    family = "onnx" if graph else "sentence-transformers"
    every = [family, "sentence-similarity", "semantic-search", "metasearch", *tags]
    header = ModelCardData(
        language=list(languages) or None,
        license=UNKNOWN,
        library_name=library,
        pipeline_tag="sentence-similarity",
        base_model=sorted({base.hub for base in bases if base.hub}) or None,
        tags=[*every, *(["multilingual"] if len(languages) > 1 else [])],
        model_name=title if scores else None,
        eval_results=scores.results() if scores else None,
    )
    made = {"command": f"`metasearch {command}`", **{k: v for k, v in facts.items() if k not in LOCAL}}
    made.setdefault("versions", describe_versions(versions()))
    lengths = graph.lengths if graph else encoder.input.lengths
    cut = [int(getattr(lengths, role)) for role in get_args(Role) if getattr(lengths, role) != UNLIMITED]
    # The library parses what it will have to read.
    card = ModelCard.from_template(
        header,
        template_path=str(_TEMPLATE),
        title=title,
        summary=summary,
        graph=EXAMPLE.format(folder=".") if graph else None,
        own=own,
        parameters=f"{encoder.parameter_count:,}",
        dimensions=encoder.dimension(),
        methods=_describe_methods(encoder, graph),
        scores=scores,
        measured=measured,
        data=data,
        bases=bases,
        made=fact_table("", made),
        recipe=yaml.dump(recipe.model_dump(mode="json", exclude={"description", "sources"})).strip() if recipe else "",
        limits=limits,
        languages=languages,
        longest=max(cut, default=None),
        servers=None if graph else describe_servers(encoder),
    )
    return str(card)


def describe_servers(encoder: Encoder) -> str | None:
    """Return what cannot compute the vectors of an encoder that is no graph; None where everything can."""
    if encoder.adapter is not None:
        return ROUTED
    return SERVERS if encoder.neutral else None


def _describe_methods(encoder: Encoder, graph: Facts | None) -> str:
    """Return a table of text roles: a graph has the lengths and prompts in its folder."""
    lines, longest = [], max(encoder.input.lengths.model_dump().values())
    for role in get_args(Role):
        prompt = encoder.prompt(role)
        length = getattr(graph.lengths, role) if graph else longest
        method = f'encode(texts, "{role}")' if graph else _METHODS[role]
        shown = "unlimited" if length == UNLIMITED else str(length)
        lines.append([role, f"`{method}`", f"`{prompt}`" if prompt else "none", shown])
    return markdown(["texts", "method", "prompt", "tokens at most"], lines, left=3)


def find_base(role: str, name: str, fingerprint: str = "") -> Base:
    """Return a card's reference to an encoder, by its name in a run; never a folder path."""
    if name in registry.names("encoders"):
        # The module of a built-in encoder may have `HUB`, `LICENCE`, or `FOLDER` with a card.
        module = registry.load("encoders", name)
        licence, title = _read_card(Path(module.FOLDER) / CARD) if hasattr(module, "FOLDER") else (UNKNOWN, "")
        licence = getattr(module, "LICENCE", None) or licence
        return Base(role, f"`{name}`", getattr(module, "HUB", None), licence, fingerprint, title)
    if Path(name).is_dir() or is_path(name):
        licence, title = _read_card(Path(name) / CARD)
        return Base(role, "a local checkpoint", None, licence, fingerprint, title)
    cached = try_to_load_from_cache(name, CARD)
    licence, _ = _read_card(Path(cached)) if isinstance(cached, str) else (UNKNOWN, "")
    return Base(role, f"`{name}`", name, licence, fingerprint)


def _read_card(path: Path) -> tuple[str, str]:
    """Return a card's licences and first heading: `unknown` and an empty text where there is no card."""
    if not path.is_file():
        return UNKNOWN, ""
    try:
        # ModelCard.load would look for a missing file on the hub.
        card = ModelCard(path.read_text(encoding="utf-8-sig"))
    except Exception as error:  # the YAML library and the card raise errors of their own
        log.warning("%s: ignored in the new card: its header cannot be read: %s", path, first_line(error))
        return UNKNOWN, ""
    stated = card.data.get("license")
    licences = [each for each in (stated if isinstance(stated, list) else [stated]) if isinstance(each, str) and each]
    title = re.search(r"^# +(.+?) *$", card.text, re.M)
    return ", ".join(licences) or UNKNOWN, title[1] if title else ""


def describe_task(use: str, task: Task, rows: Sequence[Row]) -> Dataset:
    """Return a task for a card, with the fingerprint of its data from rows of scores."""
    data = next((str(row["data"]) for row in rows if row["task"] == task.name), "")
    return Dataset(use, task.name, task.description, task.source.url, task.source.licence, data)


def describe_value(value: object) -> str:
    """Return an option's value in words; paths are counted, since they may be private."""
    if isinstance(value, tuple | list):
        paths = [each for each in value if isinstance(each, Path)]
        return f"{len(paths)} files of text" if paths else ", ".join(map(str, value))
    return str(value)
