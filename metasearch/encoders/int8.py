"""Encoders stored in eight bits: a quarter of the size on disk, float32 in memory.

Each matrix of the transformer is stored as integers `round(w / s)` between -127 and 127, with a step `s = max|w| / 127`
for each row or for each column, whichever has the smaller squared error. All else stays in float32. This is symmetric
quantisation by channel (Wu et al.: *Integer Quantization for Deep Learning Inference*, 2020, section 3), for storage
alone. What transformers loads is the transformer itself: saved again, it is an ordinary one.

Notation used for tensor shapes: R rows, C columns of a matrix.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import MODEL_FOR_TEXT_ENCODING_MAPPING, AutoConfig, AutoModel, AutoModelForTextEncoding
from transformers.initialization import no_init_weights
from transformers.utils.hub import cached_file

from metasearch.encoders.compressed import LoadableConfig
from metasearch.encoders.encoder import Encoder
from metasearch.errors import EncoderError, first_line

MODEL_TYPE = "metasearch-int8"
WEIGHTS = "model.safetensors"
SCALE = ".scale"
"""What the name of a matrix is followed by in the name of its steps."""
_WHERE = ("cache_dir", "force_download", "local_files_only", "token", "revision", "subfolder")
_HOW = ("dtype", "attn_implementation")
_IGNORED = ("trust_remote_code", "adapter_kwargs", "commit_hash", "_commit_hash", "_from_auto")
LEVELS = 127
"""Largest integer; -128 is not used, so that zero is in the middle."""


def quantise(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return a finite matrix `(R, C)` as int8 integers `(R, C)` and their steps in float32, `(R, 1)` or `(1, C)`.

    A row or column of zeros has step 0.
    """
    weight = weight.to(torch.float32)
    ways = [round_along(weight, axis) for axis in (1, 0)]
    return min(ways, key=lambda way: float((dequantise(*way) - weight).square().sum()))


def dequantise(integers: Tensor, steps: Tensor) -> Tensor:
    """Return the matrix `(R, C)` float32 of integers `(R, C)` and steps `(R, 1)` or `(1, C)`."""
    return integers.to(torch.float32).mul_(steps)


def packed(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors for an int8 file by name: matrices as integers and steps, the rest in float32.

    `EncoderError` where a weight is not finite.
    """
    tensors: dict[str, Tensor] = {}
    for name, weight in weights.items():
        if not weight.isfinite().all():
            raise EncoderError(f"weight '{name}' is not finite; such an encoder cannot be stored in int8")
        values = weight.detach().cpu()
        if values.ndim == 2 and values.is_floating_point() and values.numel():
            tensors[name], tensors[name + SCALE] = quantise(values)
        else:
            tensors[name] = (values.float() if values.is_floating_point() else values).clone()  # tied ones apart
    return tensors


def unpacked(path: Path) -> dict[str, Tensor]:
    """Return the weights in a stored file, by name, in float32; `EncoderError` where it is missing or damaged."""
    try:
        tensors: dict[str, Tensor] = load_file(path)
        for name, tensor in tensors.items():  # integers are; a look at every weight would take as long as all the rest
            if tensor.is_floating_point() and not tensor.isfinite().all():
                raise ValueError(f"'{name}' is not finite")
        for name in [name for name, tensor in tensors.items() if tensor.dtype == torch.int8 and tensor.ndim == 2]:
            tensors[name] = dequantise(tensors[name], tensors.pop(name + SCALE))
    except Exception as error:  # safetensors raises errors of its own for damaged files
        raise EncoderError(f"{path}: the file is damaged: {first_line(error)}") from error
    return tensors


def write_stored(encoder: Encoder, folder: Path) -> None:
    """Write an encoder in int8 to an empty folder, with tokenizer, pooling, prompts and lengths.

    `EncoderError` where a weight is not finite, or transformers cannot open the encoder again.
    """
    transformer = encoder.model[0].auto_model
    # Before anything is written: a weight that is not finite leaves no half-made folder.
    tensors = packed(transformer.state_dict())
    # Where it was opened from is no property of the encoder; equal encoders have equal files.
    config = {**transformer.config.to_dict(), "dtype": "float32", "_name_or_path": ""}
    encoder.write(folder)
    # The float32 weights that `save_pretrained` wrote, which may be several files.
    for path in folder.glob("model*.safetensors*"):
        path.unlink()
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})
    stored = StoredConfig(stored=config)
    stored.save_pretrained(str(folder))
    tokenizer = folder / "tokenizer.json"
    if tokenizer.is_file():  # without spaces, which are a third of it
        content = json.loads(tokenizer.read_text(encoding="utf-8"))
        tokenizer.write_text(json.dumps(content, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")
    try:
        StoredModel.from_pretrained(str(folder), config=stored)
    except Exception as error:  # whatever a network raises that transformers cannot make from its configuration
        raise EncoderError(f"{encoder.name} cannot be stored in int8: {first_line(error)}") from error


class StoredConfig(LoadableConfig):
    """Configuration of a stored encoder; `stored` is the transformer's, a dictionary with its `model_type`."""

    model_type = MODEL_TYPE
    # Some releases of transformers compare with a configuration made without arguments, which is an error here.
    has_no_defaults_at_init = True

    def __init__(self, stored: dict[str, Any] | None = None, **kwargs: Any) -> None:
        if not isinstance(stored, dict) or "model_type" not in stored:
            raise EncoderError(f"configuration '{MODEL_TYPE}' has no transformer configuration in 'stored'")
        self.stored = stored
        super().__init__(**kwargs)

    @property
    def transformer(self) -> Any:
        """A fresh transformer configuration."""
        return AutoConfig.for_model(**self.stored)


class StoredModel:
    """Model class for a stored encoder in transformers; it returns the transformer itself."""

    config_class = StoredConfig

    @classmethod
    def from_pretrained(cls, name: str, *, config: StoredConfig, **kwargs: Any) -> Any:
        """Return the transformer of a stored folder or hub name, in float32 unless another type is asked for.

        Raises:
            EncoderError: its file of weights is damaged or does not fit the configuration, or an argument is not
                supported.
        """
        where = {key: kwargs.pop(key) for key in _WHERE if kwargs.get(key) is not None}
        path = Path(str(cached_file(name, WEIGHTS, **where)))
        how = {key: kwargs[key] for key in _HOW if kwargs.get(key) is not None}
        others = sorted(key for key in kwargs.keys() - {*_HOW, *_WHERE, *_IGNORED} if kwargs[key] is not None)
        if others:
            raise EncoderError(f"{name}: an encoder stored in int8 cannot be loaded with {', '.join(others)}")
        dtype = how.pop("dtype", None)
        transformer = config.transformer
        # Of T5 the encoder alone is stored.
        kind = AutoModelForTextEncoding if type(transformer) in MODEL_FOR_TEXT_ENCODING_MAPPING else AutoModel
        # Its `from_pretrained` would do, but first compiles a thousand patterns of other models: half a second.
        with no_init_weights():
            model = kind.from_config(transformer, **how)
        try:
            model.load_state_dict(unpacked(path), assign=True)  # without a copy of every weight
        except RuntimeError as error:
            why = " ".join(str(error).split())
            raise EncoderError(f"{path}: weights do not fit the configuration: {why}") from error
        return model.to(dtype if isinstance(dtype, torch.dtype) else torch.float32).eval()


def round_along(weight: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """Return int8 integers of a tensor in float32, and steps that are shared along an axis."""
    steps = weight.abs().amax(axis, keepdim=True) / LEVELS
    # 0 / 0 would be NaN; a row of zeros is divided by 1.
    divisors = torch.where(steps > 0, steps, torch.ones_like(steps))
    # A step so small that it is subnormal is rounded coarsely: quotients may exceed 127.
    return (weight / divisors).round().clamp(-LEVELS, LEVELS).to(torch.int8), steps


AutoConfig.register(MODEL_TYPE, StoredConfig)
AutoModel.register(StoredConfig, StoredModel)
