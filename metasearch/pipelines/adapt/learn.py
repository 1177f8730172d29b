"""Trains a query adapter on vectors: InfoNCE with several right passages, over a sample of an index.

For a query q with right passages P, and the wrong ones N of the sample, the loss is the mean over p in P of

    −log exp(A q · p / τ) / (exp(A q · p / τ) + Σ_n exp(A q · n / τ))

(van den Oord et al. 2018, "Representation Learning with Contrastive Predictive Coding"), plus a decay of A to the
identity. Other passages of a right page are neither right nor wrong. The sample has the nearest passages of each query,
which the index's own search finds, and random ones: its size does not depend on that of the index.

Notation used for tensor shapes: n queries, C passages of the sample, D dimensions.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from metasearch.config.adapt import AdapterSettings
from metasearch.config.seeding import stream
from metasearch.encoders.adapter import build_adapter
from metasearch.retrieval.index.base import Rows
from metasearch.retrieval.index.local import LocalStore

_AT_ONCE = 256
"""Queries whose nearest passages are searched at a time."""


@dataclass(frozen=True, eq=False)
class Examples:
    """Queries `(n, D)`, passages `(C, D)`, and which are right and wrong for a query, `(n, C)` each."""

    queries: Tensor
    passages: Tensor
    right: Tensor
    wrong: Tensor


def draw_examples(
    store: LocalStore, queries: NDArray[np.float32], pages: Sequence[Sequence[Rows]], settings: AdapterSettings
) -> Examples:
    """Return the examples of queries `(n, D)`.

    Args:
        store: the index.
        queries: unit vectors.
        pages: of each query, the rows of each right page, the nearest passage first.
        settings: sizes of the sample, and the seed that draws it.
    """
    parts = range(0, len(queries), _AT_ONCE)
    near = [store.search(queries[start : start + _AT_ONCE], settings.hard)[0][0] for start in parts]
    count = min(settings.sample, len(store))
    some = stream(settings.seed, "sampled passages").choice(len(store), count, replace=False)
    labelled = [rows for own in pages for rows in own]
    sample = np.unique(np.concatenate([some, *labelled, *(rows.ravel() for rows in near)]))
    right = np.zeros((len(queries), len(sample)), np.bool_)
    wrong = np.ones_like(right)
    for i, own in enumerate(pages):
        for rows in own:
            wrong[i, np.searchsorted(sample, rows)] = False
            right[i, np.searchsorted(sample, rows[0])] = True
    return Examples(*map(torch.from_numpy, (queries, store.quantised.take(sample), right, wrong)))


def info_nce(adapted: Tensor, examples: Examples, chosen: Tensor, temperature: float) -> Tensor:
    """Return the mean loss of chosen queries, given their adapted unit vectors `(b, D)`."""
    logits = adapted @ examples.passages.T / temperature
    others = logits.masked_fill(~examples.wrong[chosen], -torch.inf).logsumexp(1, keepdim=True)
    right = examples.right[chosen]
    return ((F.softplus(others - logits) * right).sum(1) / right.sum(1)).mean()


def learn(examples: Examples, settings: AdapterSettings) -> NDArray[np.float32]:
    """Return the matrix of an adapter after the training, `(D, D)`; the same seed gives the same bits."""
    adapter = build_adapter(settings.form, examples.queries.shape[1], settings.rank)
    optimizer = torch.optim.Adam(adapter.parameters(), lr=settings.lr)
    rng = stream(settings.seed, "order of queries")
    order: Sequence[int] = []
    for _ in range(settings.steps):
        if len(order) < min(settings.batch, len(examples.queries)):
            order = [*order, *rng.permutation(len(examples.queries)).tolist()]
        chosen, order = torch.tensor(order[: settings.batch]), order[settings.batch :]
        optimizer.zero_grad()
        loss = info_nce(adapter(examples.queries[chosen]), examples, chosen, settings.temperature)
        (loss + settings.decay * adapter.penalty()).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return adapter.matrix().detach().numpy()
