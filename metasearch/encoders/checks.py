"""Checks of a model at opening: unsupported settings are refused, and a probe tests how it computes embeddings.

Two texts of different lengths go through the network. The shorter one must get the same vector alone and beside the
longer one, which pads it. Otherwise padding is part of the vector, as with a convolution that reads padding.

Notation used for tensor shapes: B texts in a batch, T tokens, D dimensions.
"""

import copy
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Normalize
from sentence_transformers.util import fullname
from torch import Tensor

from metasearch.encoders.inputs import input_of
from metasearch.encoders.probe import probe_rows
from metasearch.errors import EncoderError, first_line

log = logging.getLogger(__name__)

_ALIKE = ("max_length", "padding", "return_tensors", "truncation")
"""Options of a tokenizer that change no vector: an encoder truncates and pads by itself."""


def require_alike(model: SentenceTransformer) -> None:
    """Raise `EncoderError` if sentence-transformers computes a model's embeddings in an unsupported way."""
    first = model[0]
    if getattr(getattr(first, "auto_model", None), "peft_config", None):
        raise EncoderError("its transformer has an unmerged PEFT adapter; merge it with peft's merge_and_unload")
    with model.truncate_embeddings(None):
        whole = model.get_embedding_dimension()
    if model.truncate_dim is not None and model.truncate_dim < whole:
        raise EncoderError(
            f"truncate_dim (first {model.truncate_dim} of {whole} dimensions) is not supported; remove it from "
            "config_sentence_transformers.json"
        )
    if "task" in model.get_model_kwargs():
        raise EncoderError("task-specific modules of sentence-transformers are not supported")
    if getattr(first, "query_expansion", None):
        raise EncoderError("query_expansion is not supported")
    if "message" in (getattr(first, "modality_config", None) or {}):
        raise EncoderError("chat templates are not supported")
    options = getattr(first, "processing_kwargs", None) or {}
    for name, value in {**options.get("text", {}), **options.get("common", {})}.items():
        if name not in _ALIKE or (name == "truncation" and not value):
            raise EncoderError(
                f"its tokenizer is called with {name}={value!r} (processing_kwargs), which is not supported"
            )


def normalised(model: SentenceTransformer, name: str) -> SentenceTransformer:
    """Return a model with the same modules that ends in unit vectors; the model itself does not change.

    `EncoderError` for an activation that cannot be saved.
    """
    for module in model:
        if isinstance(module, Dense):
            _require_saveable(module.activation_function)
    unit = isinstance(model[-1], Normalize)
    model = copy.copy(model)
    model._modules = dict(model._modules)  # which a shallow copy shares
    # Of unit vectors the dot product is the cosine.
    if model.similarity_fn_name not in (("cosine", "dot") if unit else ("cosine",)):
        why = "" if unit else "vectors are normalised: "
        log.warning(
            "%s: %sits similarity '%s' becomes cosine, here and where it is saved", name, why, model.similarity_fn_name
        )
        model.similarity_fn_name = "cosine"
    if not unit:
        model.append(Normalize())
    return model


def _require_saveable(activation: Any) -> None:
    """Raise `EncoderError` unless an activation is torch's and what its class makes without arguments.

    sentence-transformers saves the class alone, and opens others than torch's as Tanh.
    """
    inputs, plain = torch.linspace(-9, 9, 181)[None], False
    try:
        found, own = type(activation)(), copy.deepcopy(activation).cpu().eval()
        found.load_state_dict(own.state_dict())
        with torch.no_grad():
            plain = fullname(activation).startswith("torch.") and torch.equal(found.eval()(inputs), own(inputs))
    except Exception:  # the class needs arguments, or takes other weights or inputs
        plain = False
    if not plain:
        says = " ".join(str(activation).split())
        raise EncoderError(
            f"its Dense module has the activation {says}, of which sentence-transformers saves the class without the "
            "settings; use an activation of torch without settings"
        )


TOLERANCE = 1e-5
"""Largest relative distance of two vectors of the same text: ten times the rounding of deep networks in float32."""

_DEPENDS = 1e-3
"""Relative distance from which a vector depends on the other texts of a batch; less is rounding."""

_TOKENS = 5
"""Tokens of the longer text: few, as an encoder should open as fast as without a probe."""


def distance(found: Tensor, expected: Tensor) -> float:
    """Return the largest `|found - expected| / |expected|` of rows; infinite for other shapes and for NaN."""
    if found.shape != expected.shape:
        return float("inf")
    lengths = expected.norm(dim=-1).clamp(min=torch.finfo(expected.dtype).tiny)
    largest = float(((found - expected).norm(dim=-1) / lengths).max())
    return float("inf") if np.isnan(largest) else largest


def require_independence(model: SentenceTransformer, vectors: Callable[[Mapping[str, Tensor]], Tensor]) -> None:
    """Raise `EncoderError` if padding or the other texts of a batch change a vector, or modules do not fit each other.

    `vectors` returns `(B, D)` for padded texts `(B, T)`, before normalisation.
    """
    read = input_of(model)
    device = next(model.parameters()).device
    columns, (short, long) = probe_rows(read, _TOKENS)

    def compute(*rows: NDArray[np.int32]) -> Tensor:
        padded = read.padded(columns, rows)
        with torch.no_grad():
            return vectors({name: value.to(device) for name, value in padded.items()})[:1]

    alone = _first_vector(model, lambda: compute(short))
    # Of an encoder with damaged weights there is nothing to compare.
    if not alone.isfinite().all() or (padded := distance(compute(short, long), alone)) <= TOLERANCE:
        return
    # Beside a text of its own length a text has no padding: what differs there is rounding, amplified by large weights.
    rounding = distance(compute(short, long[:, : short.shape[1]]), alone)
    if rounding > _DEPENDS:
        raise EncoderError("its embeddings depend on the other texts in a batch")
    if padded > 10 * rounding:
        raise EncoderError("padding changes its embeddings, as with FNet, convolutions or GPT-2 padded on the left")


def _first_vector(model: SentenceTransformer, compute: Callable[[], Tensor]) -> Tensor:
    """Return the first embedding; an error names the failing module."""
    entered: list[str] = []

    def enter(module: Any, _: Sequence[Any]) -> None:
        entered.append(type(module).__name__)

    hooks = [module.register_forward_pre_hook(enter) for module in model]
    try:
        return compute()
    except EncoderError:
        raise
    except Exception as error:  # modules that do not fit each other raise anything
        name = entered[-1] if entered else type(model[0]).__name__
        if isinstance(error, KeyError) and len(entered) > 1:
            why = f"module {name} asks for {error}, which the modules before it do not give"
        else:
            why = f"module {name} fails: {first_line(error)}"
        raise EncoderError(f"cannot be used: {why}") from error
    finally:
        for hook in hooks:
            hook.remove()
