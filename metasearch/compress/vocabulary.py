"""Give an encoder another vocabulary: its tokenizer, and the rows of its word table.

Notation used for tensor shapes: V' words of the new vocabulary, K columns of the word table.
"""

import copy
from typing import Any

from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from metasearch.encoders.compressed import native_config
from metasearch.encoders.encoder import Encoder
from metasearch.errors import EncoderError

BYTES = {f"<0x{byte:02X}>": byte for byte in range(256)}
"""Names of the pieces that are single bytes, with the byte of each; they spell characters without a piece."""


def word_table(model: Any) -> nn.Embedding:
    """Return a model's embedding matrix (its narrow factor if factorised); `EncoderError` if it has none."""
    embedding = model.get_input_embeddings()
    table = getattr(embedding, "table", embedding)
    if not isinstance(table, nn.Embedding):
        raise EncoderError(f"its embedding matrix is a {type(table).__name__}; expected an Embedding")
    return table


def find_padding(encoder: Encoder) -> int | None:
    """Return the padding id that an encoder's transformer was made for.

    The tokenizer may have another: the multilingual MiniLM, a BERT, has 0 where its tokenizer has 1.
    """
    if first := encoder.input.first_position:  # in the RoBERTa family, which counts positions from the padding id on
        return first - 1
    number: int | None = native_config(encoder.model[0].auto_model).pad_token_id
    return number


def replaced(encoder: Encoder, tokenizer: PreTrainedTokenizerBase, rows: Tensor, padding: int | None = None) -> Encoder:
    """Return a copy of an encoder with another tokenizer and word table `(V', K)`; `padding` as in `find_padding`.

    `EncoderError` if the tokenizer has no padding token, or the model counts positions from another one.
    """
    pad = tokenizer.pad_token_id if padding is None else padding
    if tokenizer.pad_token_id is None:
        raise EncoderError("the tokenizer has no padding token; set its pad_token")
    old = encoder.model
    first = encoder.input.first_position
    if first not in (0, pad + 1):
        raise EncoderError(f"'{encoder.input.kind}' needs a tokenizer with padding token {first - 1}; here it is {pad}")
    table = word_table(old[0].auto_model)
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
    # A compressed model holds its backbone's configuration inside its own. By identity, as modules share theirs.
    configs = [native_config(module) for module in transformer.auto_model.modules() if hasattr(module, "config")]
    for config in {id(config): config for config in configs}.values():
        _renumber(config, tokenizer, pad, len(rows))
    return Encoder(model, encoder.name, encoder.max_length)


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
