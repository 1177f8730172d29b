"""A learner's hyper-parameters as typed, frozen values, from `tasks/recipes/*.yaml`."""

from collections.abc import Collection, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)

from metasearch.config.base import Contradiction, Count, FrozenConfig, NonNegative, Positive, Rate
from metasearch.config.projection import ProjectionSettings
from metasearch.config.roles import MaxLength as MaxLength  # plug-ins of other packages import it from here
from metasearch.errors import nearest

Share = Annotated[float, Field(ge=0, lt=1)]


ZERO_SHOT = "zero-shot"
"""Name of the learner of an encoder that is scored without training."""
SET = "set by the user"
"""Source of a value that was put over a recipe, as with `--set`."""
NEUTRAL = "neutral"
"""Stands for the learner of a base encoder with a projection."""


_GONE = {
    "distil": ("loss-gap", "the paper's term is the one term"),
    "kd_temperature": ("0.05", "the paper's term is the one term"),
    "kd_share": (None, "use kd_weight"),
    "inner_fall": (None, "use inner_lr"),
}
"""Options of `_LEARNERS` in earlier versions: the value without effect, and what to use."""
_LEARNERS = ("maml", "maml-align", "meta-sgd")


class Episodes(FrozenConfig):
    """How to draw the sets in an episode.

    Attributes:
        k: examples (triplets, or scored pairs) in the support set.
        q: examples in each query set.
        n_neg: negatives for each anchor and positive, flattened to triplets of one negative each.
        queries: `random`, or `similar` to the support's questions by the base encoder.
        similar_top: how many nearest questions a `similar` query is drawn from.
        negatives: class of the negatives by their distance to the anchor on the current encoder; or `mined`, from the
            nearest of all candidates on the base encoder (`metasearch.episodes.triplets`).
        negative_pool: how many random negatives are looked at to find one of that class; how many nearest ones count.
        relative_margin: share of the answer's cosine by which a `mined` negative is less like the question.
        translations: whether each triplet has a translation of its question, for a loss that aligns the two.
    """

    k: Positive = 8
    q: Positive = 4
    n_neg: Positive = 3
    queries: Literal["random", "similar"] = "random"
    similar_top: Positive = 5
    negatives: Literal["random", "easy", "semi-hard", "hard", "mined"] = "random"
    negative_pool: Positive = 64
    relative_margin: NonNegative = 0.05
    translations: bool = False

    @property
    def needs_vectors(self) -> bool:
        """Whether episodes are drawn by vectors of the encoder."""
        return (self.queries, self.negatives) != ("random", "random")


class Loss(BaseModel):
    """The loss on a set of examples: a name, and options known to that loss.

    An option that is null is dropped: a recipe's option for its own loss may not exist for another.

    Attributes:
        name: name of the loss, or of several, of which the first that fits a task's examples is taken; None takes
            `triplet` for triplets, and `cosine-mse` for scored pairs.
        margin: margin of a triplet loss; it also separates the classes of graded negatives, whatever the loss.
        distance: distance of a triplet loss; see `metasearch.algorithms.losses.paper`.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    name: str | Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    margin: NonNegative = 1.0
    distance: Literal["euclidean", "cosine"] = "euclidean"

    @model_validator(mode="before")
    @classmethod
    def _read_name(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        return {key: value for key, value in values.items() if value is not None or key == "name"}

    @model_validator(mode="after")
    def _check_names(self) -> "Loss":
        # Without a name the losses are built in, and their options are all fields here: another key is a slip.
        if self.name is None and (key := next(iter(self.model_extra or ()), "")):
            raise Contradiction(f"unknown key.{nearest(key, type(self).model_fields)}", key)
        return self

    def options(self, known: Collection[str]) -> dict[str, Any]:
        """Return the options for a loss; an option without a field here may be unknown to it."""
        own = {name: getattr(self, name) for name in ("margin", "distance") if name in known}
        return own | dict(self.model_extra or {})


class Outer(FrozenConfig):
    """The outer optimiser and its rate over time.

    Attributes:
        optimizer: AdamW, or LARS, which is SGD with a rate for each layer.
        lr: the highest rate.
        eps: of AdamW.
        weight_decay: decoupled in AdamW, part of the gradient in LARS.
        warmup: share of the steps over which the rate rises in a line to `lr`.
        decay: how the rate falls towards 0 in the steps after that.
        clip: the longest a gradient may be, in the norm over all parameters; 0 does not clip.
        exempt_bias_and_norm: no weight decay on biases and norms (parameters of one dimension), nor LARS's own rate.
        momentum: of LARS.
        trust: η of LARS, how far a layer moves in one step relative to its norm, before `lr`.
    """

    optimizer: Literal["adamw", "lars"] = "adamw"
    lr: Rate
    eps: Rate = 1e-8
    weight_decay: NonNegative = 0.0
    warmup: Share = 0.0
    decay: Literal["none", "linear", "cosine"] = "none"
    clip: NonNegative = 0.0
    exempt_bias_and_norm: bool = False
    momentum: Share = 0.9
    trust: Rate = 1e-3


def _power_of_two(count: int) -> int:
    if count & (count - 1):
        above = 1 << count.bit_length()
        raise ValueError(f"{count} is not a power of two; the nearest are {above // 2} and {above}")
    return count


Shards = Annotated[int, Field(ge=1), AfterValidator(_power_of_two)]


class EvalSchedule(FrozenConfig):
    """When the trainer evaluates and stops early, and in how many parts it takes a gradient.

    Attributes:
        eval_every: outer steps between two evaluations on dev, each followed by a checkpoint; 0 evaluates once, at
            the end.
        patience: outer steps without a better dev score after which training stops; 0 never stops.
        shards: parts that a step is cut into for several processes, whose gradients are added in a fixed order.
    """

    step: ClassVar[tuple[str, str]] = ("", "")
    """The field with the work of an outer step, and what it counts."""
    eval_every: Count = 25
    patience: Count = 50
    shards: Shards = 1

    @model_validator(mode="after")
    def _every_shard_has_work(self) -> Self:
        key, what = self.step
        if key and self.shards > (there := getattr(self, key)):
            most = 1 << there.bit_length() - 1
            raise Contradiction(
                f"{self.shards} shards of {there} {what} in a step leave some empty; {most} at most", "shards"
            )
        return self


class Budget(EvalSchedule):
    """How long is trained and when it is stopped.

    Attributes:
        meta_train: episodes in the meta-train phase of an epoch.
        meta_valid: episodes in the meta-valid phase of an epoch; both phases update the weights.
        meta_batch: episodes in one outer step.
        epochs: passes over both phases, at most.
        dev_holdout: share of the dev groups kept out of meta-valid episodes and used alone for the dev score.
    """

    step = "meta_batch", "episodes"
    meta_train: Count = 7000
    meta_valid: Count = 2000
    meta_batch: Positive = 4
    epochs: Positive = 20
    dev_holdout: Share = 0.0


class RecipeProjection(ProjectionSettings):
    """Remove language bias from the encoder's embeddings; in YAML, `when` alone stands for the whole section.

    Attributes:
        when: `before` training, which then goes through the projection and trains it along, or `after` it: then it is
            fitted anew for each dev score, and the run has scores with and without it.
    """

    when: Literal["before", "after"]

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        return {"when": value} if isinstance(value, str) else value

    @model_serializer(mode="wrap")
    def _changed(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Return all values that differ from the defaults, for the label of an arm."""
        defaults = {name: field.default for name, field in type(self).model_fields.items() if name != "when"}
        return {name: value for name, value in write(self).items() if defaults.get(name, ...) != getattr(self, name)}


class Recipe(FrozenConfig):
    """A learner and its hyper-parameters.

    Attributes:
        dropout: whether the encoder's dropout is on while training (off in the paper's experiments).
        options: the learner's own hyper-parameters; the learner knows their names and types.
        sources: where each value comes from, by dotted key.
        neutralise: whether, when and how a projection is added to the encoder.
        adapter: freeze the encoder, and train an adapter of its query vectors (`metasearch.encoders.adapter`).
        translate: train on the translations that the task declares; if False, on its own rows.
        labels: labelled questions of each language in meta-train, or scored rows of each language pair; None is all.
            With a number, no episode is drawn from meta-valid, since it would read the labels of dev. Dev scores still
            read them.
    """

    recipe: str
    description: str
    learner: str
    episodes: Episodes = Episodes()
    loss: Loss = Loss()
    outer: Outer
    budget: Budget = Budget()
    dropout: bool = False
    options: dict[str, Any] = Field(default_factory=dict)
    sources: dict[str, str] = Field(default_factory=dict)
    neutralise: RecipeProjection | None = None
    adapter: Literal["matrix"] | None = None
    translate: bool = True
    labels: Positive | None = None

    @staticmethod
    def renew(recipe: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings of a recipe, also of an earlier version, in the form of this one.

        An adapter had a form and a rank, and the options of learners that went had values that changed nothing.
        """
        found = dict(recipe)
        if isinstance(options := found.get("options"), Mapping):
            unused = {name for name, (unused, _) in _GONE.items() if options.get(name) in (None, unused)}
            found["options"] = {name: value for name, value in options.items() if name not in unused}
        if isinstance(adapter := found.get("adapter"), Mapping) and "form" in adapter:
            found["adapter"] = adapter["form"]
        return found

    @model_validator(mode="before")
    @classmethod
    def _of_this_version(cls, value: Any) -> Any:
        return cls.renew(value) if isinstance(value, Mapping) else value

    @model_validator(mode="after")
    def _options_are_there(self) -> "Recipe":
        for name in self.options if self.learner in _LEARNERS else ():
            if name in _GONE:
                raise Contradiction(f"this option gained nothing and went; {_GONE[name][1]}", "options", name)
        return self

    @field_validator("adapter", mode="before")
    @classmethod
    def _matrix_alone(cls, value: Any) -> Any:
        if value not in (None, "matrix"):
            raise ValueError("the one form of adapters is matrix; low-rank, rotation and scale gained nothing and went")
        return value

    @property
    def delivers(self) -> str:
        """What the run's encoder is called in its results: the learner, and the stages after training."""
        after = self.neutralise is not None and self.neutralise.when == "after"
        return f"{self.learner}+{NEUTRAL}" if after else self.learner
