"""Shorter embeddings: the first dimensions, or the principal directions of texts.

A linear module without bias and a `Normalize` are added, so plain sentence-transformers makes the short unit vectors.
Notation used for tensor shapes: n texts, D dimensions, N that are kept.
"""

import copy

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers.sentence_transformer.modules import Dense, Normalize
from torch import Tensor, nn

from metasearch.encoders.encoder import Encoder
from metasearch.encoders.layers import check_fewer
from metasearch.encoders.saved_layout import set_trained_dimensions, trained_dimensions
from metasearch.errors import DataError


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
    if vectors is None:
        # Trained dimensions up to the cut stay trained dimensions.
        set_trained_dimensions(model, [d for d in trained_dimensions(encoder.model) if d <= dimensions])
    return Encoder(model, f"{encoder.name}-{dimensions}", encoder.max_length)


def leading(vectors: NDArray[np.float32], count: int) -> Tensor:
    """Return the main directions of vectors `(n, D)`, as orthonormal rows `(count, D)`.

    Uncentred principal components: a shift would change dot products. `DataError` for fewer vectors than directions.
    """
    if len(vectors) < count:
        raise DataError(f"{len(vectors)} texts are too few for {count} dimensions; give at least {count} texts")
    exact = vectors.astype(np.float64)
    # Eigenvalues come in ascending order.
    basis = np.linalg.eigh(exact.T @ exact).eigenvectors[:, ::-1][:, :count]
    return torch.from_numpy(np.ascontiguousarray(basis.T)).float()
