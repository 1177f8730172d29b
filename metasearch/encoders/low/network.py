"""A BERT and what follows it, with the same operations in the same order as in transformers: the same bits.

Notation used for tensor shapes: B texts in a batch, T tokens, D dimensions, H heads.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from metasearch.encoders.features import Features, Output
from metasearch.errors import EncoderError

MEAN, CLS, NORMALIZE = "mean", "cls", "normalize"
"""Modules after a BERT; others are the folders of linear maps."""


@dataclass(frozen=True)
class NetworkFacts:
    """A BERT, maybe a compressed one, and the modules after it."""

    prefix: str
    """What stands before the names of its weights in the file."""
    layers: int
    repeats: int
    """How often the layers run."""
    heads: int
    epsilon: float
    """Of its layer norms."""
    factorised: bool
    """Whether its embedding matrix is a product of two factors."""
    after: tuple[str, ...]
    """Modules after it: `mean` or `cls`, `normalize`, and the folder of a linear map."""

    @property
    def table(self) -> str:
        """Name of the matrix with a row for each word."""
        return f"{self.prefix}embeddings.word_embeddings.{'table.' if self.factorised else ''}weight"


class Weights(Protocol):
    """Weights by the names that they have in a file."""

    def whole(self, name: str) -> Tensor:
        """Return a weight in float32."""

    def table(self, name: str) -> nn.Module:
        """Return the matrix with a row for each word."""


class StoredNetwork(nn.Module):
    """Features in, unit vectors out; only the embedding matrix stays in its file."""

    def __init__(self, facts: NetworkFacts, weights: Weights, maps: Callable[[str], Weights]) -> None:
        super().__init__()
        own = _Named(weights, f"{facts.prefix}embeddings.", facts.epsilon)
        self.words: nn.Module = weights.table(facts.table)
        if facts.factorised:
            self.words = nn.Sequential(self.words, own.linear("word_embeddings.projection", bias=False))
        self.positions = own.table("position_embeddings")
        self.types = own.table("token_type_embeddings")
        self.norm = own.norm("LayerNorm")
        named = (_Named(weights, f"{facts.prefix}encoder.layer.{i}.", facts.epsilon) for i in range(facts.layers))
        self.layers = nn.ModuleList([Layer(each, facts.heads) for each in named])
        self.after = facts.after
        self.maps = nn.ModuleList(
            [_Named(maps(name), "", 0).linear("linear") for name in facts.after if name not in (MEAN, CLS, NORMALIZE)]
        )
        self.heads, self.repeats = facts.heads, facts.repeats
        self.requires_grad_(False).eval()

    def forward(self, features: Features, output: Output = "sentence") -> Tensor:
        """Return unit vectors `(B, D)`, or the same before they are normalised."""
        mask = features["attention_mask"]
        return self.finished(_pooled(self._states(features), mask, self.after[0]), output, self.maps)

    def finished(self, pooled: Tensor, output: Output, maps: Iterable[nn.Module]) -> Tensor:
        """Return what the modules after the pooling make of vectors `(B, D)`; `maps` are its linear maps."""
        after, left = list(self.after[1:]), iter(maps)
        while output == "pooled" and after and after[-1] == NORMALIZE:
            after.pop()
        for name in after:
            pooled = F.normalize(pooled, p=2, dim=-1) if name == NORMALIZE else next(left)(pooled)
        return pooled

    def embedded(self, words: nn.Module, ids: Tensor, types: Tensor | None, places: Tensor) -> Tensor:
        """Return what the first layer reads, `(…, D)`, for token ids, their types and positions; `words` is a table."""
        longest = self.positions.num_embeddings
        if places.shape[-1] > longest and (length := int(places.max()) + 1) > longest:
            raise EncoderError(f"'bert' cannot read a text of {length} tokens: it has {longest} positions")
        found: Tensor = words(ids) + self.types(torch.zeros_like(ids) if types is None else types)
        return cast(Tensor, self.norm(found + self.positions(places)))

    def _states(self, features: Features) -> Tensor:
        """Return the vectors of tokens, `(B, T, D)`."""
        ids, mask = features["input_ids"], features["attention_mask"]
        places = torch.arange(ids.shape[1], device=ids.device)[None]
        found = self.embedded(self.words, ids, features.get("token_type_ids"), places)
        # Without padding another kernel computes attention, as in transformers.
        seen = None if mask.all() else mask.bool()[:, None, None, :].expand(-1, 1, ids.shape[1], -1)
        for _ in range(self.repeats):
            for layer in self.layers:
                found = layer(found, seen)
        return found


class _Named:
    """Makes modules out of weights whose names begin alike."""

    def __init__(self, weights: Weights, prefix: str, epsilon: float) -> None:
        self.weights, self.prefix, self._epsilon = weights, prefix, epsilon

    def _weight(self, name: str, which: str = "weight") -> nn.Parameter:
        return nn.Parameter(self.weights.whole(f"{self.prefix}{name}.{which}"), requires_grad=False)

    # Modules are made without weights of their own, which would be drawn.

    def linear(self, name: str, bias: bool = True) -> nn.Linear:
        weight = self._weight(name)
        made = nn.Linear(weight.shape[1], weight.shape[0], bias, device="meta")
        made.weight = weight
        if bias:
            made.bias = self._weight(name, "bias")
        return made

    def norm(self, name: str) -> nn.LayerNorm:
        weight = self._weight(name)
        made = nn.LayerNorm(len(weight), self._epsilon, device="meta")
        made.weight, made.bias = weight, self._weight(name, "bias")
        return made

    def table(self, name: str) -> nn.Embedding:
        weight = self._weight(name)
        rows, columns = weight.shape
        return nn.Embedding(rows, columns, _weight=weight)


class Layer(nn.Module):
    """A layer of a BERT."""

    def __init__(self, named: _Named, heads: int) -> None:
        super().__init__()
        self.query, self.key, self.value = (named.linear(f"attention.self.{n}") for n in ("query", "key", "value"))
        self.out, self.out_norm = named.linear("attention.output.dense"), named.norm("attention.output.LayerNorm")
        self.wide, self.narrow = named.linear("intermediate.dense"), named.linear("output.dense")
        self.norm = named.norm("output.LayerNorm")
        self.heads = heads

    def forward(self, states: Tensor, seen: Tensor | None) -> Tensor:
        """Return states `(B, T, D)`; `seen` `(B, 1, T, T)` says which tokens each token may attend to."""
        shape = (*states.shape[:-1], self.heads, -1)
        query, key, value = (each(states).view(shape).transpose(1, 2) for each in (self.query, self.key, self.value))
        attended = F.scaled_dot_product_attention(query, key, value, attn_mask=seen, scale=query.shape[-1] ** -0.5)
        states = self.out_norm(self.out(attended.transpose(1, 2).reshape(states.shape)) + states)
        found: Tensor = self.norm(self.narrow(F.gelu(self.wide(states))) + states)
        return found


def _pooled(states: Tensor, mask: Tensor, how: str) -> Tensor:
    """Return the mean over a text's tokens, or its first token, `(B, D)`."""
    if how == CLS:
        return states[:, 0]
    weight = mask.unsqueeze(-1).to(states.dtype)
    return (states * weight).sum(1) / weight.sum(1).clamp(min=1e-9)
