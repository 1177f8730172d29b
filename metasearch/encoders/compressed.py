"""A compressed encoder as a model of transformers: any supported backbone with a small word table and few layers.

Multi-stage distillation paper, section 3.1.3: the word table is factorised through a bottleneck, and the first M layers
of L run L/M times. `config.json` nests the configuration of the backbone that computes the same at full size.
"""

import copy
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, PreTrainedConfig, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput

from metasearch.config.extras import DISTRIBUTION
from metasearch.errors import ConfigError, EncoderError

# A saved folder holds a file of a few lines that imports metasearch, and `config.json` names it as `auto_map`.
# `SentenceTransformer(folder, trust_remote_code=True)` then loads the model wherever metasearch is installed. After
# `import metasearch.encoders.open` no option is needed, since transformers prefers the classes that are registered.

_LOADER = "metasearch_model.py"
"""File in the folder of a compressed encoder that imports metasearch."""
_CODE = f'''"""Lets transformers load this model with trust_remote_code=True, where {DISTRIBUTION} is installed."""

try:  # transformers would name another package where this import fails
    from metasearch.encoders.{{module}} import {{name}}
except ModuleNotFoundError as error:
    raise ImportError("this model needs: pip install {DISTRIBUTION}") from error
'''


class LoadableConfig(PreTrainedConfig):  # type: ignore[misc]  # transformers is untyped here
    """A configuration saved together with the file that loads it."""

    def __init__(self, **kwargs: Any) -> None:
        # An attribute would be saved with the fields, and would count as a property of the model.
        kwargs.pop("auto_map", None)
        super().__init__(**kwargs)

    def save_pretrained(self, save_directory: str | os.PathLike[str], *args: Any, **kwargs: Any) -> None:
        """Write `config.json` and the file that loads it."""
        super().save_pretrained(save_directory, *args, **kwargs)
        kind = type(self)
        path = Path(save_directory, "config.json")
        settings = json.loads(path.read_text(encoding="utf-8"))
        settings["auto_map"] = {"AutoConfig": f"{Path(_LOADER).stem}.{kind.__name__}"}
        path.write_text(json.dumps(settings, indent=2, sort_keys=True) + "\n", encoding="utf-8")
        code = _CODE.format(module=kind.__module__.rpartition(".")[2], name=kind.__name__)
        path.with_name(_LOADER).write_text(code, encoding="utf-8")

    @classmethod
    def register_for_auto_class(cls, auto_class: str = "AutoConfig") -> None:
        """Do nothing: transformers would copy this class's source into every folder."""


# The two parts that make an encoder small: a factorised word table, and layers that run more than once.
#
# Multi-stage distillation paper, section 3.1.3. Notation used for tensor shapes: B texts in a batch, T tokens, V words,
# K columns of the bottleneck, H columns of the table that it replaces.

_ROWS = 8192
"""Rows that are taken to float64 or multiplied out at a time; bounds the memory beside the table itself."""


class FactorisedEmbedding(nn.Module):
    """An embedding matrix with rank K: `V·K + K·H` weights in place of `V·H`.

    The vector of a word is linear in both factors and has no bias.
    """

    def __init__(self, words: int, bottleneck: int, width: int, padding: int | None = None) -> None:
        super().__init__()
        self.table = nn.Embedding(words, bottleneck, padding_idx=padding)
        self.projection = nn.Linear(bottleneck, width, bias=False)

    @property
    def num_embeddings(self) -> int:
        """V."""
        return self.table.num_embeddings

    @property
    def padding_idx(self) -> int | None:
        """The word whose row gets no gradient."""
        return self.table.padding_idx

    def forward(self, ids: Tensor) -> Tensor:
        """Return vectors `(B, T, H)` for token ids `(B, T)`."""
        vectors: Tensor = self.projection(self.table(ids))
        return vectors

    @torch.no_grad()
    def multiplied_out(self) -> Tensor:
        """Return the equivalent full matrix `(V, H)`; each row is `forward` for its token."""
        ids = torch.arange(self.num_embeddings, device=self.table.weight.device)
        return torch.cat([self(part[None])[0] for part in _parts(ids)])

    @torch.no_grad()
    def approximate(self, table: Tensor, weights: Tensor | None = None) -> None:
        """Set both factors to the least-squares approximation of a matrix `(V, H)`.

        That is the truncated singular value decomposition `T ≈ U S Wᵀ` (Eckart and Young, 1936) with `U S = T W` as the
        table and `W` as the projection. With weights w `(V,)` of the words, none below 0, the sum of
        `w_i · |row i − its approximation|²` is smallest.
        """
        basis = principal_directions(table, self.table.embedding_dim, weights)
        self.projection.weight.copy_(basis)
        for part, target in zip(_parts(table), _parts(self.table.weight), strict=True):
            target.copy_(part.to(basis) @ basis)


def principal_directions(rows: Tensor, count: int, weights: Tensor | None = None) -> Tensor:
    """Return the directions that keep most of the squared lengths of rows `(N, D)`, orthonormal columns `(D, count)`.

    Uncentred principal components in float64, since a shift would change dot products: the first eigenvectors of `RᵀR`.
    Rows may have weights `(N,)`.
    """
    # float64 does not exist on Apple's devices.
    device = torch.device("cpu") if rows.device.type == "mps" else rows.device
    gram = torch.zeros(rows.shape[1], rows.shape[1], dtype=torch.float64, device=device)
    shares = torch.ones(len(rows)) if weights is None else weights
    for part, share in zip(_parts(rows.detach()), _parts(shares.detach()), strict=True):
        exact = part.to(device, torch.float64)
        gram += exact.T @ (share.to(device, torch.float64)[:, None] * exact)
    # Eigenvalues come in ascending order.
    directions: Tensor = torch.linalg.eigh(gram).eigenvectors.flip(1)[:, :count]
    return directions


class RecurrentLayers(nn.ModuleList):
    """M layers that run R times (`repeats`): a loop over them gives `1 2 … M 1 2 … M …`.

    Each layer is in it once, so its weights are counted, trained and saved once.
    """

    def __init__(self, layers: list[nn.Module], repeats: int) -> None:
        super().__init__(layers)
        self.repeats = repeats

    def __iter__(self) -> Iterator[nn.Module]:
        for _ in range(self.repeats):
            yield from super().__iter__()


def _parts(table: Tensor) -> Iterator[Tensor]:
    return (table[start : start + _ROWS] for start in range(0, len(table), _ROWS))


# The layers of a backbone, and their entries in its configuration.

_STACKS = {"distilbert": "transformer", "modernbert": ""}
"""Modules that hold the list of layers where that is not `encoder`; none where the backbone itself does."""

_BARE_FIRST = ("modernbert",)
"""Backbones whose first layer reads the embedding block directly, and whose other layers normalise what they read."""


def layers_of(backbone: Any) -> nn.ModuleList:
    """Return a backbone's list of layers."""
    owner, name = _place(backbone)
    layers: nn.ModuleList = getattr(owner, name)
    return layers


def put_layers(backbone: Any, layers: nn.ModuleList) -> None:
    """Replace a backbone's list of layers; `describe` changes the configuration."""
    owner, name = _place(backbone)
    setattr(owner, name, layers)


def describe(config: Any, numbers: Sequence[int]) -> None:
    """Change a configuration to keep only these layers, numbered from 1, each with its kind of attention."""
    types = getattr(config, "layer_types", None)
    config.num_hidden_layers = len(numbers)
    if types is None:
        return
    config.layer_types = [types[number - 1] for number in numbers]
    every = getattr(config, "global_attn_every_n_layers", None)
    # The older way to say it: a program that reads it alone shall not take another kind of attention for a layer's own.
    if every and config.layer_types != [_type(place, every) for place in range(len(numbers))]:
        del config.global_attn_every_n_layers


def first_stays_first(config: Any) -> bool:
    """Return whether the first layer of a backbone can stand below all others only, and no other layer there."""
    return config.model_type in _BARE_FIRST


def _place(backbone: Any) -> tuple[Any, str]:
    stack = _STACKS.get(backbone.config.model_type, "encoder")
    return (getattr(backbone, stack), "layer") if stack else (backbone, "layers")


def _type(place: int, every: int) -> str:
    return "sliding_attention" if place % every else "full_attention"


# Which numbers a compressed encoder can have: columns of its word table, and layers that run.

DEEPER = 4
"""Layers may run so many times as often as the encoder is deep; more is taken for a typing error."""


def check_fewer(name: str, value: int, present: int, size: str) -> None:
    """Raise `ConfigError` unless a value is from 1 to one less than the present number."""
    if not 1 <= value < present:
        fewer = f"choose a number from 1 to {present - 1}" if present > 1 else "there cannot be fewer"
        raise ConfigError(f"{name} {value}: {size}; {fewer}")


def check_repeats(depth: int, recurrent: int | None, repeats: int | None) -> int | None:
    """Return how often M layers run: the given number, or L/M so that the depth L stays; None where all layers stay.

    `ConfigError` if there are fewer than M layers, L is no multiple of M, or more than 4·L layers would run.
    """
    if recurrent is None:
        if repeats is not None:
            raise ConfigError(f"repeats {repeats}: needs the number of recurrent layers")
        return None
    fitting = " or ".join(str(m) for m in range(1, depth + 1) if depth % m == 0)
    if not 1 <= recurrent <= depth:
        raise ConfigError(f"recurrent {recurrent}: the encoder has {depth} layers; choose {fitting}")
    if repeats is None and depth % recurrent:
        raise ConfigError(
            f"recurrent {recurrent}: {depth} layers are no multiple of it; choose {fitting}, or set repeats"
        )
    most = DEEPER * depth // recurrent
    if repeats is not None and not 1 <= repeats <= most:
        raise ConfigError(
            f"repeats {repeats}: the encoder has {depth} layers, and at most {DEEPER} times as many may run; with "
            f"{recurrent} recurrent ones choose a number from 1 to {most}"
        )
    return depth // recurrent if repeats is None else repeats


MODEL_TYPE = "metasearch-compressed"
BACKBONES = ("bert", "camembert", "distilbert", "electra", "modernbert", "mpnet", "roberta", "xlm-roberta")


def _of_backbone(name: str) -> property:
    return property(lambda config: getattr(config.backbone, name), doc=f"`{name}` of the backbone.")


class CompressedConfig(LoadableConfig):
    """Configuration of a compressed encoder.

    Args:
        backbone: configuration of the stock model that computes the same at full size, as an object or a dictionary
            with its `model_type`. Its number of layers is set to the number that run, `recurrent` times `repeats`.
        bottleneck: columns K of the factorised word table; none leaves it whole.
        recurrent: layers M that exist, the first of the backbone's; none leaves all.
        repeats: number of times they run; by default so many that the depth of the backbone stays.

    Raises:
        EncoderError: the backbone is of a kind that cannot be compressed, or is compressed already.
        ConfigError: a number does not fit the backbone.
    """

    model_type = MODEL_TYPE
    sub_configs: ClassVar[dict[str, Any]] = {"backbone": AutoConfig}
    # Some releases of transformers compare with a configuration made without arguments, which is an error here.
    has_no_defaults_at_init = True

    def __init__(
        self,
        backbone: Any = None,
        bottleneck: int | None = None,
        recurrent: int | None = None,
        repeats: int | None = None,
        **kwargs: Any,
    ) -> None:
        self.backbone = backbone_config(backbone)
        # The path of the assistant is no property of the student; equal students have equal files.
        self.backbone._name_or_path = ""
        for name, value in (("bottleneck", bottleneck), ("recurrent", recurrent), ("repeats", repeats)):
            if value is not None and type(value) is not int:  # in Python, or in a file that was edited
                raise ConfigError(f"{name} {value!r}: expected a whole number")
        if bottleneck is not None:
            width = width_of(self.backbone)
            check_fewer("bottleneck", bottleneck, width, f"the word table has {width} columns")
        self.bottleneck = bottleneck
        self.recurrent = recurrent
        again = repeats != 1 and (repeats is not None or recurrent != self.backbone.num_hidden_layers)
        if recurrent is not None and again and first_stays_first(self.backbone):
            raise ConfigError(
                f"recurrent {recurrent}: layers of '{self.backbone.model_type}' cannot run again, because the first "
                "does not normalise its input; choose repeats 1, or select layers"
            )
        self.repeats = check_repeats(self.backbone.num_hidden_layers, recurrent, repeats)
        if recurrent is not None and self.repeats is not None:
            describe(self.backbone, [*range(1, recurrent + 1)] * self.repeats)
        super().__init__(**kwargs)

    # Other libraries read these from the outer configuration; as properties they cannot contradict the backbone's.
    hidden_size = _of_backbone("hidden_size")
    num_hidden_layers = _of_backbone("num_hidden_layers")
    max_position_embeddings = _of_backbone("max_position_embeddings")
    pad_token_id = _of_backbone("pad_token_id")
    vocab_size = _of_backbone("vocab_size").setter(lambda config, words: setattr(config.backbone, "vocab_size", words))


class CompressedModel(PreTrainedModel):  # type: ignore[misc]  # transformers is untyped here
    """A backbone with a factorised word table and recurrent layers, without a pooler.

    Takes and returns what the backbone does; `hidden_states` and `attentions` have an entry for each layer that runs.
    """

    config_class = CompressedConfig
    base_model_prefix = "backbone"
    supports_gradient_checkpointing = True
    # The backbone itself refuses what it does not support.
    _supports_sdpa = True
    _supports_flash_attn = True
    _supports_flex_attn = True
    _supports_attention_backend = True

    def __init__(self, config: CompressedConfig) -> None:
        super().__init__(config)
        self.backbone = _built(config)
        self.post_init()

    def forward(self, input_ids: Any = None, attention_mask: Any = None, **kwargs: Any) -> BaseModelOutput:
        """Return the backbone's output; token vectors `(B, T, H)` are its `last_hidden_state`."""
        for name in ("output_hidden_states", "output_attentions"):
            if getattr(self.config, name):
                # The backbone looks at its own configuration, not at this one.
                kwargs.setdefault(name, True)
        return self.backbone(input_ids=input_ids, attention_mask=attention_mask, **kwargs)

    def set_attn_implementation(self, *args: Any, **kwargs: Any) -> None:
        """Choose how attention is computed: `sdpa`, `eager`, ..."""
        self.backbone.set_attn_implementation(*args, **kwargs)
        # The outer one is set without its setter, which would write to the backbone's a second time.
        self.config._attn_implementation_internal = self.backbone.config._attn_implementation


def native_config(model: Any) -> Any:
    """Return a standard model's configuration, or the one equivalent to a compressed model."""
    return model.config.backbone if isinstance(model.config, CompressedConfig) else model.config


def backbone_config(backbone: Any) -> Any:
    """Return a copy of a backbone's configuration, to change; `EncoderError` for a kind that cannot be compressed."""
    kind = backbone.get("model_type") if isinstance(backbone, dict) else getattr(backbone, "model_type", None)
    if kind == MODEL_TYPE:
        raise EncoderError("this encoder is already compressed; compress the original")
    if kind not in BACKBONES:
        raise EncoderError(f"an encoder of kind '{kind}' cannot be compressed; supported are {', '.join(BACKBONES)}")
    if isinstance(backbone, PreTrainedConfig):
        return copy.deepcopy(backbone)
    return AutoConfig.for_model(**backbone)


def width_of(native: Any) -> int:
    """Return the width of an embedding matrix; ELECTRA's may be smaller than its layers."""
    return int(getattr(native, "embedding_size", native.hidden_size))


def _built(config: CompressedConfig) -> Any:
    native = config.backbone
    depth, words = native.num_hidden_layers, native.vocab_size
    # Only the layers that exist are built; `finally` puts back the number that run.
    native.num_hidden_layers = config.recurrent or depth
    if config.bottleneck is not None:
        # The whole table is thrown away, so it is made with the special tokens alone.
        native.vocab_size = (native.pad_token_id or 0) + 2
    try:
        backbone = AutoModel.from_config(native)
    finally:  # its modules share the configuration
        native.num_hidden_layers, native.vocab_size = depth, words
    if getattr(backbone, "pooler", None) is not None:
        # sentence-transformers pools token vectors. Set to None alone, it would stay among the modules as one.
        del backbone.pooler
        backbone.pooler = None
    if config.bottleneck is not None:
        padding = backbone.get_input_embeddings().padding_idx
        table = FactorisedEmbedding(config.vocab_size, config.bottleneck, width_of(native), padding)
        backbone.set_input_embeddings(table)
    if config.recurrent is not None and config.repeats is not None:
        put_layers(backbone, RecurrentLayers(list(layers_of(backbone)), config.repeats))
    return backbone


AutoConfig.register(MODEL_TYPE, CompressedConfig)
AutoModel.register(CompressedConfig, CompressedModel)
