"""Put another tokenizer and another embedding matrix into a copy of an encoder."""

import copy
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from metasearch.encoders.compressed import native_config
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.inputs import transformer_of
from metasearch.errors import EncoderError


def word_table(model: Any) -> nn.Embedding:
    """Return a model's embedding matrix (its narrow factor if factorised); `EncoderError` if it has none."""
    embedding = model.get_input_embeddings()
    table = getattr(embedding, "table", embedding)
    if not isinstance(table, nn.Embedding):
        raise EncoderError(f"its embedding matrix is a {type(table).__name__}; expected an Embedding")
    return table


def find_padding(model: Any) -> int | None:
    """Return the padding id that a model was made for.

    The RoBERTa family counts positions past it. In most models it is that of the tokenizer, but not in all: the
    multilingual MiniLM, a BERT, has 0 where its tokenizer has 1. MPNet has it built in.
    """
    counted = (module.padding_idx for module in model.modules() if _counts_past_padding(module))
    number: int | None = native_config(model).pad_token_id
    return next(counted, number)


def replaced(encoder: Encoder, tokenizer: PreTrainedTokenizerBase, rows: Tensor, padding: int | None = None) -> Encoder:
    """Return a copy of an encoder with another tokenizer and embedding matrix `(V, K)`.

    The number of the padding token in the model, see `find_padding`, is by default the tokenizer's number.

    Raises:
        EncoderError: the tokenizer has no padding token, or the model cannot take its number.
    """
    pad = tokenizer.pad_token_id if padding is None else padding
    if tokenizer.pad_token_id is None:
        raise EncoderError("the tokenizer has no padding token; set its pad_token")
    old = encoder.model
    table = word_table(transformer_of(old))
    weight = nn.Parameter(rows.to(table.weight), requires_grad=table.weight.requires_grad)
    # The memo of deepcopy names the replacements, so the old table and tokenizer are never copied.
    memo = {id(table.weight): weight, id(old.tokenizer): tokenizer}
    model = copy.deepcopy(old, memo)
    transformer = model[0]
    if getattr(transformer, "do_lower_case", False):
        transformer.do_lower_case = False  # the tokenizer says itself what it does
    copied = word_table(transformer.auto_model)
    # The memo exchanged the weight; an Embedding keeps its size and its padding beside it.
    copied.num_embeddings = len(rows)
    if copied.padding_idx is not None:
        copied.padding_idx = pad
    for config in _configs(transformer.auto_model):
        _renumber(config, tokenizer, pad, len(rows))
    _move_positions(transformer.auto_model, pad)
    return Encoder(model, encoder.name, encoder.max_length)


def _configs(model: Any) -> Iterator[Any]:
    """Yield every configuration in a model; a compressed model holds its backbone's inside its own."""
    # By identity, as modules share their configuration.
    configs = [native_config(module) for module in model.modules() if hasattr(module, "config")]
    yield from {id(config): config for config in configs}.values()


def _renumber(config: Any, tokenizer: PreTrainedTokenizerBase, pad: int, words: int) -> None:
    config.vocab_size = words
    config.pad_token_id = pad
    # In the RoBERTa family one token is `bos` and `cls`, and one is `eos` and `sep`; BERT has the latter names alone.
    for name, other in (("bos", "cls"), ("eos", "sep")):
        number = getattr(tokenizer, f"{name}_token_id")
        if number is None and getattr(config, f"{name}_token_id", None) is not None:
            number = getattr(tokenizer, f"{other}_token_id")
        setattr(config, f"{name}_token_id", number)
        if hasattr(config, f"{other}_token_id"):  # ModernBERT has all four
            setattr(config, f"{other}_token_id", getattr(tokenizer, f"{other}_token_id"))


def _move_positions(model: Any, pad: int) -> None:
    """Move rows in the position table so that each position keeps its row.

    Models of the RoBERTa family count positions from `padding_idx + 1` on, so a new number of the padding token would
    give every position another row. `EncoderError` for MPNet, which has the number built in.
    """
    for module in filter(_counts_past_padding, model.modules()):
        before = module.padding_idx
        if before == pad:
            continue
        if native_config(model).model_type == "mpnet":
            raise EncoderError(f"MPNet needs a tokenizer with padding token {before}; here it is {pad}")
        old = module.position_embeddings
        weight = old.weight.detach()
        rows = weight.new_zeros(len(weight) + pad - before, weight.shape[1])
        rows[pad + 1 :] = weight[before + 1 :]
        moved = nn.Embedding(len(rows), weight.shape[1], padding_idx=pad, device=weight.device, dtype=weight.dtype)
        moved.weight = nn.Parameter(rows, requires_grad=old.weight.requires_grad)
        module.position_embeddings = moved
        module.padding_idx = pad
        # These buffers are as long as the table, and were made for its old length.
        numbers = torch.arange(len(rows), device=weight.device)[None]
        for name, value in (("position_ids", numbers), ("token_type_ids", torch.zeros_like(numbers))):
            if isinstance(getattr(module, name, None), Tensor):
                setattr(module, name, value)
        for config in _configs(model):
            config.max_position_embeddings = len(rows)


def _counts_past_padding(module: Any) -> bool:
    return isinstance(getattr(module, "padding_idx", None), int) and hasattr(module, "position_embeddings")
