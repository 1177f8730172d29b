"""Model cards for runs, and for compressed, merged and neutral encoders."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from huggingface_hub import try_to_load_from_cache

from metasearch.compress.export.facts import Facts
from metasearch.compress.export.form import Form
from metasearch.compress.export.onnx_folder import EXAMPLE
from metasearch.compress.export.plain import is_compressed
from metasearch.compress.plan import Plan
from metasearch.compress.sizes import Sizes
from metasearch.config import registry, yaml
from metasearch.config.distill_run import DistillConfig
from metasearch.config.distillation import Distillation
from metasearch.config.library import Library
from metasearch.config.recipe import ZERO_SHOT, Recipe, Role
from metasearch.config.run import RunConfig
from metasearch.config.task import Task
from metasearch.data.benchmark import Benchmark
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.inputs import is_static
from metasearch.encoders.lengths import UNLIMITED
from metasearch.encoders.matryoshka import trained_dimensions
from metasearch.encoders.neutral import is_neutral
from metasearch.encoders.open import is_path
from metasearch.errors import MetasearchError
from metasearch.io import atomic_write
from metasearch.pipelines.publish.card import (
    CARD,
    UNKNOWN,
    Base,
    Card,
    Dataset,
    Scores,
    read_licence,
    read_title,
    scored_tasks,
)  # fmt: skip
from metasearch.runs.describe import LOCAL
from metasearch.runs.folder import RunFolder
from metasearch.runs.markdown import markdown
from metasearch.runs.rows import Row
from metasearch.runs.versions import describe_versions, versions

log = logging.getLogger(__name__)

SERVERS = (
    "text-embeddings-inference and vLLM do not normalise between pooling and the projection, so they compute other "
    "vectors. An ONNX graph (`metasearch export --onnx`) carries the projection."
)
"""Limit of every neutral encoder that is no graph."""

_NOT_SETTINGS = {"description", "sources"}
"""Keys of a recipe that are no settings."""
_METHODS = {"question": "encode_query", "candidate": "encode_document", "text": "encode"}
_EXAMPLE = """from sentence_transformers import SentenceTransformer
{needs}
model = SentenceTransformer("."{trust})  # the folder of this card, or the name of the model on a hub
questions = model.encode_query(["Where is the key?"])
answers = model.encode_document(["The key is under the mat.", "Bread is baked in an oven."])
print(model.similarity(questions, answers))
"""


def write_training_card(files: RunFolder, config: RunConfig, encoder: Encoder, facts: Mapping[str, str]) -> None:
    """Write a trained model's card with facts of its run, after its scores are in the results."""
    rows, recipe, label = files.results(), config.recipe, config.recipe.delivers
    base = find_base("base", config.encoder.name, next((str(row["weights"]) for row in rows if "weights" in row), ""))
    task = Library(config.data.include).task(config.data.task)
    languages = tuple(task.languages)
    if recipe.translate and task.translate:
        languages = (*languages, *sorted(task.trained_languages - set(languages)))
    limits = [f"One seed ({config.seed}) and one fold ({config.data.fold}): another training may gain less, or lose."]
    if any(row.get("seeded") for row in rows):
        limits.insert(0, "Its weights began as random numbers: it is for trials, and useless for search.")
    _write_run_card(
        files,
        "train",
        facts,
        recipe,
        encoder,
        (base,),
        limits,
        title=f"{label} on {config.data.task}",
        summary=f"A sentence encoder for search across {len(languages)} languages, trained by metasearch: {label} from "
        f"{base.name}, in mode {config.mode}, on {config.data.task} ({task.description.rstrip('.')}).",
        data=(_describe_task("trained and scored on", task, rows),),
        languages=languages,
        scores=Scores(rows, label, ZERO_SHOT, {config.data.task: task.kind}),
        tags=("meta-learning",),
    )


def write_distillation_card(
    files: RunFolder, config: DistillConfig, encoder: Encoder, facts: Mapping[str, str]
) -> None:
    """Write a distilled model's card with facts of its run, after its scores are in the results."""
    rows, (number, name, last) = files.results(), config.stages[-1]
    library = Library(config.data.include)
    tasks = {task: library.task(task) for task in scored_tasks(rows)}
    own = [row for row in rows if row["task"] in tasks]
    kinds = {task: each.kind for task, each in tasks.items()}
    _write_run_card(
        files,
        "distill",
        facts,
        config.recipe,
        encoder,
        tuple(find_base(role, named) for role in config.used if (named := config.encoders.named(role)) is not None),
        [f"One seed ({config.seed}): a distillation with another may be better or worse."],
        title=f"{last.trains} of {config.recipe.recipe}",
        summary=f"A sentence encoder distilled by metasearch: the {last.trains} after the stages "
        f"{', '.join(each for _, each, _ in config.stages)}. {config.recipe.description}.",
        data=[*_describe_corpora(files, config), *(_describe_task("scored on", each, rows) for each in tasks.values())],
        scores=Scores(own, f"{number} {name}", f"{config.stages[0][2].trains}, before", kinds) if own else None,
        tags=("distillation",),
    )


def _write_run_card(
    files: RunFolder, command: str, facts: Mapping[str, str], recipe: Recipe | Distillation, *args: Any, **rest: Any
) -> None:
    """Write a run's model card, with the licence in its current card."""
    card, settings = files.model / CARD, recipe.model_dump(mode="json", exclude=_NOT_SETTINGS)
    shown = {name: value for name, value in facts.items() if name not in LOCAL}
    rest |= {"facts": {"command": f"`metasearch {command}`", **shown}, "recipe": yaml.dump(settings)}
    atomic_write(card, _card(*args, licence=read_licence(card), **rest))


def compressed_card(student: Encoder, base: str, plan: Plan, before: Sizes, after: Sizes) -> str:
    """Return the card for a student of `metasearch compress`; `base` is the encoder as given."""
    names = [name for name in Plan.model_fields if name not in ("seed", "initial")]
    given = {name.replace("_", "-"): value for name in names if (value := getattr(plan, name)) not in (None, ())}
    source = find_base("base", base)
    return _card(
        student,
        (source,),
        ["It was not trained after it was made smaller; `metasearch distill` does that."],
        title=f"Student of {source.short}",
        summary=f"A smaller sentence encoder, made by metasearch from {source.name} by {', '.join(given)}.",
        data=[
            Dataset("read for words or layers", name)
            for name in dict.fromkeys(path.name for path in (*plan.trim, *plan.texts))
        ],
        facts={
            "command": "`metasearch compress`",
            **{name: _describe_value(value) for name, value in given.items()},
            "initial, seed": f"{plan.initial}, {plan.seed}",
            "weights": f"{before.total:,} before, {after.total:,} after",
            "versions": describe_versions(versions()),
        },
        tags=("compression",),
    )


def merged_card(encoder: Encoder, parts: Sequence[tuple[str, float, str]]) -> str:
    """Return the card for an encoder of `metasearch merge`, from its parts' names, weights and fingerprints."""
    bases = tuple(find_base("merged", name, fingerprint) for name, _, fingerprint in parts)
    shares = [f"{part[1]:g} of {base.short} ({part[2]})" for part, base in zip(parts, bases, strict=True)]
    return _card(
        encoder,
        bases,
        ["It was neither trained nor scored after the merge."],
        title=f"Between {' and '.join(base.short for base in bases)}",
        summary="A sentence encoder whose weights are a weighted mean, made by metasearch from "
        f"{', '.join(base.name for base in bases)}.",
        facts={
            "command": "`metasearch merge`",
            "weights": " + ".join(shares),
            "versions": describe_versions(versions()),
        },
        tags=("merge",),
    )


def tuned_card(
    encoder: Encoder,
    base: str,
    fingerprint: str,
    result: str,
    facts: Mapping[str, str],
    languages: Sequence[str],
    rows: Sequence[Row],
    licence: str,
) -> str:
    """Return the card for an encoder of `metasearch tune`.

    `result` says what was kept and why, and `rows` are the mean scores of `tuned` and of the `base encoder`.
    """
    source = find_base("base", base, fingerprint)
    return _card(
        encoder,
        (source,),
        ["One seed: another training may gain less, or lose."],
        title=f"{source.short}, tuned",
        summary=f"The sentence encoder {source.name}, adapted by metasearch to labelled questions. {result}",
        data=(Dataset("trained and scored on", "labels", facts["labels"]),),
        languages=tuple(languages),
        scores=Scores(rows, "tuned", "base encoder", {"labels": "retrieval"}) if rows else None,
        facts={"command": "`metasearch tune`", **{k: v for k, v in facts.items() if k not in LOCAL}},
        licence=licence,
        tags=("language-neutral",),
    )


def neutral_card(
    encoder: Encoder,
    base: str,
    made: Mapping[str, str],
    counts: Mapping[str, int],
    rows: Sequence[Row],
    tasks: Sequence[Benchmark],
    shown: str,
) -> str:
    """Return the card for an encoder of `metasearch neutralise`.

    `made` are facts of the projection, `counts` language → texts in the estimate, `rows` scores `before` and `after`
    on `tasks`, and `shown` their tables.
    """
    source = find_base("base", base)
    data = [Dataset("estimated from", "texts", f"{count} texts in {language}") for language, count in counts.items()]
    kinds = {each.task.task: each.task.kind for each in tasks}
    return _card(
        encoder,
        (source,),
        [],
        title=f"{source.short} without the language in its vectors",
        summary=f"The sentence encoder {source.name} with a linear module at its end, made by metasearch. The module "
        "removes language identity from the vectors, so that a search prefers no answer for its language.",
        data=[*data, *(_describe_task("scored on", each.task, rows) for each in tasks)],
        languages=tuple(counts),
        scores=Scores(rows, "after", "before", kinds, shown) if rows else None,
        facts={"command": "`metasearch neutralise`", **made, "versions": describe_versions(versions())},
        tags=("language-neutral",),
    )


def exported_card(
    encoder: Encoder,
    base: str,
    form: Form,
    rows: Sequence[Row] = (),
    benchmark: Benchmark | None = None,
    shown: str = "",
    graph: Facts | None = None,
) -> str:
    """Return the card for a model of `metasearch export`, with scores on a benchmark if available.

    `base` is the name of the encoder before, and `graph` has the facts of the folder of an ONNX graph.
    """
    source = find_base("base", base)
    kind, made = "static embeddings" if form.static else "a sentence-transformers model", ""
    if graph is not None:
        rounding = ", before its weights were rounded to int8" if form.int8 else ""
        kind = "an ONNX graph"
        made = f" Its vectors differ from the encoder's by at most {graph.difference:.1e}{rounding}."
    changes = [("in int8", form.int8), (f"with {form.dimensions} dimensions", form.dimensions)]
    how = " ".join([kind, *(change for change, wanted in changes if wanted)])
    asked = {"form": form.name, "static": form.static, "dimensions": form.dimensions, "directions from": form.texts}
    scored: dict[str, Any] = {}
    if benchmark is not None:
        task = benchmark.task
        scored["data"] = [_describe_task("scored on", task, rows)]
        scored["scores"] = Scores(rows, form.name, "before", {task.task: task.kind}, shown)
    return _card(
        encoder,
        (source,),
        ["It knows no order of words."] if form.static else [],
        graph=graph,
        int8=form.int8,
        title=f"{source.short} as {how}",
        summary=f"The sentence encoder {source.name} as {how}, written by metasearch.{made}",
        facts={
            "command": "`metasearch export`",
            **{name: _describe_value(value) for name, value in asked.items() if value},
            "versions": describe_versions(graph.versions if graph else versions()),
        },
        tags=("static-embeddings",) if form.static else (),
        **scored,
    )


def _card(
    encoder: Encoder,
    bases: Sequence[Base],
    limits: Sequence[str],
    graph: Facts | None = None,
    int8: bool = False,
    languages: Sequence[str] = (),
    **rest: Any,
) -> str:
    """Return a card with usage and limits; general limits follow the model's own.

    `int8` says that the weights of a model with layers are in eight bits.
    """
    own = is_compressed(encoder) or (int8 and not is_static(encoder.model))
    library = "onnx" if graph else "metasearch" if own else "sentence-transformers"
    lengths = graph.lengths if graph else encoder.input.lengths
    cut = [int(getattr(lengths, role)) for role in get_args(Role) if getattr(lengths, role) != UNLIMITED]
    more = []
    if languages:
        more.append(
            f"It was made with texts in {', '.join(languages)}. Its quality in other languages was not measured."
        )
    if cut:
        more.append(f"Texts are truncated to {max(cut)} tokens.")
    if is_neutral(encoder) and graph is None:
        more.append(SERVERS)
    if bases:
        names = ", ".join(base.name for base in bases)
        more.append(f"It has the errors and biases of {names}, unless training happened to change them.")
    more.append("Questions may prefer answers in their own language; `metasearch report RUN` shows by how much.")
    use = _describe_use(encoder, library, graph)
    return str(Card(use=use, library=library, bases=bases, limits=[*limits, *more], languages=languages, **rest))


def _describe_use(encoder: Encoder, library: str, graph: Facts | None) -> str:
    """Return how a model is used, in Markdown: a graph at the lengths and with the prompts of its folder."""
    lines, longest = [], max(encoder.input.lengths.model_dump().values())
    for role in get_args(Role):
        prompt = graph.prompts[role] if graph else encoder.prompt(role)
        length = getattr(graph.lengths, role) if graph else longest
        method = f'encode(texts, "{role}")' if graph else _METHODS[role]
        shown = "unlimited" if length == UNLIMITED else str(length)
        lines.append([role, f"`{method}`", f"`{prompt}`" if prompt else "none", shown])
    own = library == "metasearch"
    needs = "# It needs metasearch-encoders to be installed, which trust_remote_code allows it to import." * own
    example = _EXAMPLE.format(needs=needs, trust=", trust_remote_code=True" * own)
    truncations = " or ".join(map(str, trained_dimensions(encoder.model)))
    truncated = f" They can be truncated to their first {truncations} dimensions (Matryoshka) with `truncate_dim`."
    return f"""```python
{EXAMPLE.format(folder=".") if graph else example}```

The model has {encoder.parameter_count:,} parameters. Vectors have {encoder.dimension()} dimensions and unit length; \
compare them by cosine similarity.{truncated if truncations else ""} Each method adds a prompt and truncates the text:

{markdown(["texts", "method", "prompt", "tokens at most"], lines, left=3)}"""


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
    licence = read_licence(Path(cached)) if isinstance(cached, str) else UNKNOWN
    return Base(role, f"`{name}`", name, licence, fingerprint)


def _read_card(card: Path) -> tuple[str, str]:
    """Return a card's licence and title."""
    try:
        return read_licence(card), read_title(card) if card.is_file() else ""
    except MetasearchError as error:
        log.warning("%s: ignored in the new card: %s", card, error)
        return UNKNOWN, ""


def _describe_corpora(files: RunFolder, config: DistillConfig) -> Iterator[Dataset]:
    """Yield each stage's data, by file name without folder."""
    for number, name, stage in config.stages:
        path = files.path / f"{number}-{name}" / "data.txt"
        found = path.read_text(encoding="utf-8").strip() if path.is_file() else ""
        fingerprint, _, description = found.partition(" ")
        names = ", ".join(Path(each).name for each in config.texts.of(stage))
        yield Dataset(f"stage {name}", names, description, fingerprint=fingerprint)


def _describe_task(use: str, task: Task, rows: Sequence[Row]) -> Dataset:
    data = next((str(row["data"]) for row in rows if row["task"] == task.task), "")
    return Dataset(use, task.task, task.description, task.source.url, task.source.licence, data)


def _describe_value(value: object) -> str:
    if isinstance(value, tuple | list):
        paths = [each for each in value if isinstance(each, Path)]
        return f"{len(paths)} files of text" if paths else ", ".join(map(str, value))
    return str(value)
