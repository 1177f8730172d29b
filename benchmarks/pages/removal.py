"""Other ways to remove the language from vectors, as rivals published them until 2026.

- SHIFT (arXiv 2606.18801): subtract from the documents of a language its offset from English, factor 1. Here the offset
  is the mean difference of its pages from their English translations.
- Centring: subtract the mean of each text's own language (Libovický et al. 2020, "On the Language Neutrality of
  Pre-trained Multilingual Representations"). The language of a query is detected.
- LEACE (Belrose et al. 2023, "LEACE: Perfect linear concept erasure in closed form", theorem 4.3): no linear classifier
  finds the language afterwards, and vectors change as little as possible.
- A sparse autoencoder, after LangSAE (arXiv 2601.04768): latents that fire for one language alone are set to zero. Here
  the rest of a vector stays, also what the autoencoder does not reconstruct.

Notation used for array shapes: N passages, Q queries, D dimensions, L languages, H latents.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
Exact = NDArray[np.float64]
Tags = NDArray[np.str_]

LATENTS, ACTIVE, STEPS, BATCH, RATE = 1024, 32, 400, 256, 1e-3
"""Latents of the autoencoder, of which 32 are active for a text, and its training by Adam."""
ALONE, LEAST = 0.9, 0.01
"""A latent belongs to a language that has 90 % of its rates, and in which 1 % of the texts have it."""
_NOTHING = 1e-10


def unit(vectors: NDArray[np.floating]) -> Vectors:
    """Return vectors of length 1; a vector of zeros stays one."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)


def language_means(vectors: NDArray[np.floating], tags: Tags) -> dict[str, Exact]:
    """Return the mean vector of each language."""
    return {tag: vectors[tags == tag].mean(0, dtype=np.float64) for tag in np.unique(tags).tolist()}


def subtract(vectors: NDArray[np.floating], tags: Sequence[str], offsets: Mapping[str, Exact]) -> Exact:
    """Return vectors `(N, D)` without the offset of their language; a language without an offset keeps its vectors."""
    nothing = np.zeros(vectors.shape[1])
    rest: Exact = vectors - np.stack([offsets.get(tag, nothing) for tag in tags])
    return rest


def parallel_offsets(pages: NDArray[np.floating], tags: Tags, groups: NDArray[np.int64], base: str) -> dict[str, Exact]:
    """Return for each language the mean difference of its pages from their translations in the base language.

    Args:
        pages: mean vector of each page, `(P, D)`.
        tags: its language, `(P,)`.
        groups: number of its group of translations, `(P,)`.
        base: language to which others are shifted.
    """
    at = {group: page for page, group in enumerate(groups.tolist()) if tags[page] == base}
    found = {}
    for tag in np.unique(tags).tolist():
        own = [page for page in np.flatnonzero(tags == tag).tolist() if groups[page] in at]
        if own:
            others = [at[groups[page]] for page in own]
            found[tag] = (pages[own].astype(np.float64) - pages[others]).mean(0)
    return found


@dataclass(frozen=True, eq=False)
class Eraser:
    """The map x ↦ x − M (x − μ), with the mean μ `(D,)` and M `(D, D)`."""

    mean: Exact
    matrix: Exact

    def __call__(self, vectors: NDArray[np.floating]) -> Exact:
        """Return vectors `(N, D)` through the map."""
        erased: Exact = vectors - (vectors - self.mean) @ self.matrix.T
        return erased


def erase(vectors: NDArray[np.floating], tags: Tags) -> Eraser:
    """Return the map by LEACE for the labels of vectors `(N, D)`.

    M = W⁺ P W with the whitening W = Σ_xx^(−½) and the projection P onto the columns of W Σ_xz; z is one-hot.
    """
    exact = vectors.astype(np.float64)
    centred = exact - exact.mean(0)
    labels = (tags[:, None] == np.unique(tags)[None, :]).astype(np.float64)
    values, basis = np.linalg.eigh(centred.T @ centred / len(exact))
    kept = values > _NOTHING * values.max()
    roots, basis = np.sqrt(values[kept]), basis[:, kept]
    whiten, colour = (basis / roots) @ basis.T, (basis * roots) @ basis.T
    columns, sizes, _ = np.linalg.svd(whiten @ centred.T @ (labels - labels.mean(0)) / len(exact), full_matrices=False)
    span = columns[:, sizes > _NOTHING]  # correlations, so 1 is large
    return Eraser(exact.mean(0), colour @ span @ span.T @ whiten)


@dataclass(frozen=True, eq=False)
class Autoencoder:
    """A sparse autoencoder: encoder `(D, H)` with bias `(H,)`, and decoder `(H, D)` with bias `(D,)`."""

    encoder: Vectors
    bias: Vectors
    decoder: Vectors
    centre: Vectors
    active: int

    def codes(self, vectors: NDArray[np.floating]) -> Vectors:
        """Return the latents of vectors, `(N, H)`; all but the largest `active` are 0."""
        encoder, bias, found = map(torch.from_numpy, (self.encoder, self.bias, (vectors - self.centre)))
        found = _codes(encoder, bias, found.float(), self.active)
        codes: Vectors = found.numpy()
        return codes

    def without(self, vectors: NDArray[np.floating], latents: NDArray[np.int64]) -> Exact:
        """Return vectors `(N, D)` less what some latents add to their reconstruction."""
        rest: Exact = vectors.astype(np.float64) - self.codes(vectors)[:, latents] @ self.decoder[latents]
        return rest


def train_autoencoder(
    vectors: Vectors, latents: int = LATENTS, active: int = ACTIVE, steps: int = STEPS, seed: int = 0
) -> Autoencoder:
    """Return an autoencoder that reconstructs vectors `(N, D)`; it is trained on their squared error."""
    draw = torch.Generator().manual_seed(seed)
    data = torch.from_numpy(vectors)
    centre = data.mean(0)
    decoder = torch.nn.functional.normalize(torch.randn(latents, vectors.shape[1], generator=draw), dim=1)
    parts = [decoder.T.contiguous(), torch.zeros(latents), decoder.clone(), centre.clone()]
    for each in parts:
        each.requires_grad_()
    encoder, bias, decoder, centre = parts
    optimizer = torch.optim.Adam(parts, lr=RATE)
    for _ in range(steps):
        batch = data[torch.randint(len(data), (min(BATCH, len(data)),), generator=draw)]
        error = _codes(encoder, bias, batch - centre, active) @ decoder + centre - batch
        optimizer.zero_grad()
        error.square().sum(1).mean().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        with torch.no_grad():
            decoder.copy_(torch.nn.functional.normalize(decoder, dim=1))
    found = [each.detach().numpy() for each in parts]
    return Autoencoder(found[0], found[1], found[2], found[3], active)


def own_latents(codes: Vectors, tags: Tags) -> NDArray[np.int64]:
    """Return the latents that fire for one language alone.

    Args:
        codes: latents of texts, `(N, H)`.
        tags: languages of the texts, `(N,)`.
    """
    rates = np.stack([(codes[tags == tag] > 0).mean(0) for tag in np.unique(tags)])
    highest = rates.max(0)
    return np.flatnonzero((highest >= LEAST) & (highest >= ALONE * rates.sum(0)))


def _codes(encoder: torch.Tensor, bias: torch.Tensor, vectors: torch.Tensor, active: int) -> torch.Tensor:
    """Return the largest latents after ReLU, `(N, H)`."""
    found = torch.relu(vectors @ encoder + bias)
    values, places = found.topk(min(active, found.shape[1]), dim=1)
    return torch.zeros_like(found).scatter(1, places, values)
