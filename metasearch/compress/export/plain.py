"""A standard model equivalent to a compressed encoder, for use without metasearch.

The word table is multiplied out and each layer is written down as often as it runs, so what compression saved is lost.

A row of the table is computed by the encoder's own embedding module. Matrix libraries add up in another order for a
batch of very few tokens, so that its vectors may differ from the table's rows in the last bit of a float32, just as the
encoder's own vectors of a text may differ between batches of other sizes. Layers are the same to the bit.
"""

import copy
from inspect import signature
from typing import Any

import torch
from torch import nn

from metasearch.compress.student import with_transformer
from metasearch.encoders.compressed import CompressedModel, FactorisedEmbedding
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.inputs import is_static, transformer_of
from metasearch.encoders.layers import layers_of, put_layers


def is_compressed(encoder: Encoder) -> bool:
    """Return whether an encoder needs metasearch to be loaded."""
    return not is_static(encoder.model) and isinstance(transformer_of(encoder.model), CompressedModel)


def plain(encoder: Encoder) -> Encoder:
    """Return an equivalent standard encoder; a standard encoder is returned unchanged.

    Pooling, further modules, prompts, tokenizer and lengths stay. Where a model of its kind has a pooler and this one
    has none, it gets one of zeros. Nothing here uses it; but one that is missing would be drawn, with a warning, by
    each program that loads the model.
    """
    if is_static(encoder.model):
        return encoder
    source = transformer_of(encoder.model)
    if not is_compressed(encoder) and _missing_pooler(source) is None:
        return encoder
    stock = _written_out(source.backbone) if is_compressed(encoder) else copy.deepcopy(source)
    pooler = _missing_pooler(stock)
    if pooler is not None:
        stock.pooler = pooler
    return Encoder(with_transformer(encoder.model, stock), encoder.name, encoder.max_length)


def _written_out(backbone: Any) -> Any:
    """Return a copy of a backbone with its table multiplied out and each layer as often as it runs."""
    stock = copy.deepcopy(backbone)
    table = stock.get_input_embeddings()
    if isinstance(table, FactorisedEmbedding):
        rows = table.multiplied_out()
        words, width = rows.shape
        stock.set_input_embeddings(nn.Embedding(words, width, padding_idx=table.padding_idx, _weight=rows))
    # Copies: a layer that runs twice would be one module twice, and its weights be saved once.
    put_layers(stock, nn.ModuleList([copy.deepcopy(layer) for layer in layers_of(stock)]))
    return stock


def _missing_pooler(model: Any) -> nn.Module | None:
    """Return a pooler of zeros if the model has none but its architecture has one."""
    if getattr(model, "pooler", None) is not None or "add_pooling_layer" not in signature(type(model)).parameters:
        return None
    # Without memory for the whole model, of which one part is wanted.
    with torch.device("meta"):
        pooler: nn.Module = type(model)(model.config, add_pooling_layer=True).pooler
    pooler.to_empty(device=model.device)
    for parameter in pooler.parameters():
        nn.init.zeros_(parameter)
    return pooler.to(model.dtype)
