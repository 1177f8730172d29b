"""Merges PEFT adapters into their base models, so that an encoder always holds whole weights.

An adapter (Hu et al. 2022, LoRA, and its relatives in the package `peft`) is a few weights beside a frozen base model
that lies elsewhere. Training, compression and export work on whole weights. `peft` is no dependency: an adapter
cannot be loaded without it, and everything else can.
"""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import torch
import transformers.modeling_utils as modeling
from huggingface_hub import try_to_load_from_cache
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from metasearch.errors import EncoderError, first_line

log = logging.getLogger(__name__)

_TOLERANCE = 1e-3
"""Largest change of a hidden state by merging, as a share of the largest hidden state: far above float32 rounding."""


@contextmanager
def separated() -> Iterator[list[str]]:
    """Let transformers load base models without their adapters; give a list that fills with the adapters' paths.

    transformers would load an adapter into its base and drop the report on the base, with what is missing there.
    """
    found: list[str] = []
    before = modeling.maybe_load_adapters

    def base_alone(*args: Any, **kwargs: Any) -> tuple[None, Any, Any]:
        adapter, base, rest = before(*args, **kwargs)
        if adapter is not None:
            found.append(str(adapter))
        return None, base, rest

    modeling.maybe_load_adapters = base_alone
    try:
        yield found
    finally:
        modeling.maybe_load_adapters = before


def merge_adapter(model: nn.Module, adapter: str) -> nn.Module:
    """Return a base model with an adapter merged into its weights, which can all be trained as before.

    Args:
        model: a transformer without adapters; it is changed.
        adapter: folder or hub name of the adapter.

    Raises:
        EncoderError: the adapter does not fit the model, cannot be merged, or computes something that whole weights
            cannot.
    """
    from peft import PeftConfig, PeftModel

    config = PeftConfig.from_pretrained(adapter)
    kind = getattr(config.peft_type, "value", config.peft_type)
    what = f"its PEFT adapter ({kind})"
    if config.is_prompt_learning:
        raise EncoderError(f"{what} cannot be merged: it adds inputs instead of changing weights; {_ADVICE}")
    trainable = {name: weight.requires_grad for name, weight in model.named_parameters()}
    try:
        adapted = PeftModel(model, config)
        loaded = adapted.load_adapter(adapter, "default")
        if wrong := [*loaded.missing_keys, *loaded.unexpected_keys]:
            raise EncoderError(f"{what} does not fit its base: {len(wrong)} weights, the first '{wrong[0]}'")
        adapted.eval()
        before = _states(adapted, cast(Any, model).config.vocab_size)
        merged: nn.Module = adapted.merge_and_unload(safe_merge=True)
        after = _states(merged, cast(Any, model).config.vocab_size)
    except EncoderError:
        raise
    except Exception as error:  # each kind of adapter raises an error of its own where it cannot be merged
        raise EncoderError(f"{what} cannot be merged: {first_line(error)}; {_ADVICE}") from error
    if not torch.allclose(before, after, rtol=0, atol=_TOLERANCE * float(before.abs().max())):
        raise EncoderError(f"{what} cannot be merged: its base would compute different embeddings; {_ADVICE}")
    for name, weight in merged.named_parameters():
        weight.requires_grad_(trainable[name])
    log.info("%s: %s is merged into '%s'", adapter, what.removeprefix("its "), config.base_model_name_or_path)
    return merged


def require_merged(model: SentenceTransformer) -> None:
    """Raise `EncoderError` where a model that was made in Python carries an adapter beside its weights."""
    if getattr(getattr(model[0], "auto_model", None), "peft_config", None):
        raise EncoderError(
            "its transformer has an unmerged PEFT adapter; save the model and open the folder with load_encoder, which "
            "merges it"
        )


def missing_base(folder: Path) -> str | None:
    """Return an adapter's base model if it is missing on this machine, or None."""
    for path in folder.rglob("adapter_config.json"):
        base = json.loads(path.read_text(encoding="utf-8")).get("base_model_name_or_path") or ""
        embedded = (path.parent / "config.json").is_file()
        if not embedded and not Path(base).is_dir() and not isinstance(_cached(base), str):
            return str(base)
    return None


def _cached(base: str) -> object:
    """Return the cached path of a model's configuration, or a non-string if missing."""
    try:
        return try_to_load_from_cache(base, "config.json")
    except ValueError:  # no name of a hub
        return None


_ADVICE = "metasearch needs whole weights: name the base model, or train an adapter that can be merged, such as LoRA"


def _states(model: nn.Module, words: Any) -> Tensor:
    """Return the hidden states `(1, T, D)` for an artificial text."""
    tokens = (torch.arange(3, 19) % words).unsqueeze(0)
    with torch.no_grad():
        states: Tensor = model(input_ids=tokens, attention_mask=torch.ones_like(tokens))[0]
    return states
