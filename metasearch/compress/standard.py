"""Standard models of encoders: compressed ones at full size, and shorter embeddings.

A compressed encoder becomes a stock model: the word table is multiplied out and each layer is written as often as it
runs, so nothing is saved in size. Matrix libraries add up in another order for very few tokens, so vectors may differ
in the last bit of a float32. Shorter embeddings are a linear module without bias and a `Normalize`.

Notation used for tensor shapes: n texts, D dimensions, N that are kept.
"""

import copy
from inspect import signature
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers.sentence_transformer.modules import Dense, Normalize
from torch import Tensor, nn

from metasearch.compress.student import with_transformer
from metasearch.encoders.adapted import AdaptedEncoder
from metasearch.encoders.compressed import (
    CompressedModel,
    FactorisedEmbedding,
    check_fewer,
    layers_of,
    principal_directions,
    put_layers,
)
from metasearch.encoders.encoder import Encoder
from metasearch.errors import DataError


def is_compressed(encoder: Encoder) -> bool:
    """Return whether an encoder needs metasearch to be loaded."""
    return isinstance(encoder.model[0].auto_model, CompressedModel)


def plain(encoder: Encoder) -> Encoder:
    """Return an equivalent standard encoder; a standard encoder is returned unchanged.

    A missing pooler becomes one of zeros: each program that loads the model would draw a random one, with a warning.
    """
    if isinstance(encoder, AdaptedEncoder):
        base = plain(encoder.base)
        return encoder if base is encoder.base else AdaptedEncoder(base, encoder.adapter, "text" in encoder.roles)
    source = encoder.model[0].auto_model
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


def narrowed(encoder: Encoder, dimensions: int, vectors: NDArray[np.float32] | None = None) -> Encoder:
    """Return an encoder with N dimensions; the input encoder is unchanged.

    With vectors `(n, D)` of texts, their N principal directions stay; by default the first N dimensions, as Matryoshka
    training expects (Kusupati et al. 2022). `ConfigError` unless 1 ≤ N < D, `DataError` for too few texts.
    """
    width = encoder.dimension()
    check_fewer("dimensions", dimensions, width, f"vectors have {width} numbers")
    weight = torch.eye(dimensions, width) if vectors is None else leading(vectors, dimensions)
    # The encoder's weights do not change: only modules are added.
    memo = {id(part): part for part in (*encoder.embedder.parameters(), *encoder.embedder.buffers())}
    memo[id(encoder.model.tokenizer)] = encoder.model.tokenizer
    model = copy.deepcopy(encoder.model, memo)
    dense = Dense(width, dimensions, bias=False, activation_function=nn.Identity(), init_weight=weight)
    for module in (dense, Normalize()):
        model.append(module.to(encoder.device))
    return Encoder(model, f"{encoder.name}-{dimensions}", encoder.max_length)


def leading(vectors: NDArray[np.float32], count: int) -> Tensor:
    """Return the principal directions of vectors `(n, D)`, as orthonormal rows `(count, D)`.

    `DataError` for fewer vectors than directions.
    """
    if len(vectors) < count:
        raise DataError(f"{len(vectors)} texts are too few for {count} dimensions; give at least {count} texts")
    return principal_directions(torch.from_numpy(vectors), count).T.float().contiguous()
