"""What a run is asked to do, as resolved from the command line; `config.yaml` of its run folder.

Together with a `Recipe`, a configuration is all that a run depends on besides the data and the encoder's weights. Its
keys are flat. What is opened for it is named by two values made of some of them: a `DataRef` and an `EncoderRef`.
"""

from collections.abc import Mapping
from typing import Any, Literal, Self, TypeVar

from pydantic import BaseModel, model_validator

from metasearch.errors import ConfigError
from metasearch.spec import yaml
from metasearch.spec.declared import Count, Declared, Positive
from metasearch.spec.recipe import DEFAULT_ENGINE, ZERO_SHOT, Engine, Recipe, Role
from metasearch.spec.run_stages import NeutralSettings

Device = Literal["auto", "cpu", "cuda", "mps"]
Precision = Literal["fp32", "bf16"]
Checkpointing = Literal["auto", "on", "texts", "off"]
"""What is recomputed in the backward pass: `on`, layers; `texts`, a few texts at a time; `auto`, layers, once a step
has run out of memory."""


def require_way_back(checkpointing: Checkpointing, engine: Engine) -> None:
    """Raise `ConfigError` where texts are to be computed again by the reference, which encodes a set in one pass."""
    if checkpointing == "texts" and engine == "reference":
        raise ConfigError("--checkpointing texts needs fast gradients; with --gradients reference say on")


WHOLE_TASK = "task"
"""In place of languages to trim an encoder to: all of the task."""


class Reference(Declared):
    """Names something to open, and says how."""

    @classmethod
    def of(cls, config: BaseModel, **own: Any) -> Self:
        """Return the reference that a configuration makes with the keys that both have.

        Args:
            config: of a run, a score, a distillation or a study.
            **own: values of keys that the configuration does not have, or has of another kind.
        """
        shared = {key: getattr(config, key) for key in cls.model_fields if hasattr(config, key)}
        return cls(**{**shared, **own})

    @classmethod
    def to(cls, name: Self | str, **keys: Any) -> Self:
        """Return a reference by the value of its first key and of further ones, or change keys of one that is given.

        Raises:
            ConfigError: there is no such key, or a value is wrong.
        """
        tree = {next(iter(cls.model_fields)): name} if isinstance(name, str) else name.model_dump()
        return yaml.check({**tree, **keys}, cls, f"'{name}'" if isinstance(name, str) else cls.__name__)


class DataRef(Reference):
    """The data of a task, with one fold held out.

    Attributes:
        task: name of the task, such as `lareqa`.
        fold: which fold is held out.
        fold_seed: shuffle articles or rows with this seed before cutting folds; None keeps the task's protocol.
        data: folder of the data files; None looks beside the task, or in `METASEARCH_DATA`.
        include: folders with further tasks, modes and recipes.
    """

    task: str
    fold: Count = 0
    fold_seed: int | None = None
    data: str | None = None
    include: tuple[str, ...] = ()


class EncoderRef(Reference):
    """An encoder, and where and how it is loaded.

    Attributes:
        name: built-in name, local folder or hub name, such as `tiny`, `runs/my-run/model` or `org/name`.
        device: where it runs; `auto` takes a GPU when there is one.
        seed: of the weights of an encoder that is made from a seed.
        prompts: what is put before the texts of a role, in place of the encoder's own prompt.
        trust_remote_code: run Python code that comes with the checkpoint.
    """

    name: str
    device: Device = "auto"
    seed: int = 0
    prompts: Mapping[Role, str] = {}
    trust_remote_code: bool = False

    @classmethod
    def of(cls, config: BaseModel, **own: Any) -> Self:
        """Return the reference that a configuration makes; its key `encoder` is the name, unless another is given."""
        return super().of(config, **{"name": getattr(config, "encoder", None), **own})


class RunConfig(Declared):
    """A learner that is trained on a fold of a task, and scored beside the encoder as it was.

    Attributes:
        mode: transfer mode.
        recipe: all hyper-parameters, resolved.
        seed: of episodes, dropout, and the weights of an encoder that is made from a seed.
        max_steps: outer steps at most; when it is less than an epoch, both phases shrink in proportion.
        precision: of forward passes.
        checkpointing: what is computed again on the way back, for less memory and the same gradient.
        engine: what computes the outer gradient.
        trim: languages of the task, or `task` for all of them, to whose words the encoder's vocabulary is cut.
        task: this and all others as in `DataRef` and `EncoderRef`.
    """

    task: str
    mode: str
    encoder: str
    recipe: Recipe
    fold: Count = 0
    fold_seed: int | None = None
    seed: int = 0
    max_steps: Positive | None = None
    device: Device = "auto"
    precision: Precision = "fp32"
    checkpointing: Checkpointing = "auto"
    engine: Engine = DEFAULT_ENGINE
    prompts: Mapping[Role, str] = {}
    trim: tuple[str, ...] = ()
    data: str | None = None
    include: tuple[str, ...] = ()
    trust_remote_code: bool = False

    @model_validator(mode="after")
    def _can_be_computed_again(self) -> "RunConfig":
        require_way_back(self.checkpointing, self.engine)
        return self


class ScoreConfig(Declared):
    """An encoder that is scored as it is, on dev and test of a fold.

    Attributes:
        label: what the encoder is called in results, `zero-shot` unless something else made it.
        trim: as in `RunConfig`.
        neutralise: how the language is taken out of its vectors before; None leaves them as they are.
        task: this and all others as in `DataRef` and `EncoderRef`.
    """

    task: str
    encoder: str
    label: str = ZERO_SHOT
    neutralise: NeutralSettings | None = None
    fold: Count = 0
    fold_seed: int | None = None
    seed: int = 0
    device: Device = "auto"
    prompts: Mapping[Role, str] = {}
    trim: tuple[str, ...] = ()
    data: str | None = None
    include: tuple[str, ...] = ()
    trust_remote_code: bool = False


Config = TypeVar("Config", bound=Declared)
