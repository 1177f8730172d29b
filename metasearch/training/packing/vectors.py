"""The training form of an adapted encoder, whose texts are vectors of the frozen encoder.

An adapter A = I + Δ acts on the questions of a meta-batch only through their span. With m orthonormal rows B of it,
every question is q = Bᵀ c, and A q = q + (Δ Bᵀ) c. So the slice Δ Bᵀ `(D, m)` takes the place of Δ `(D, D)`: gradient
descent on the slice is that on Δ, as its gradient is G Bᵀ for the gradient G of Δ, G = (G Bᵀ) B, and ‖G Bᵀ‖ = ‖G‖. It
is the slice that words have in `PackedBatch`. Rates of each weight of Δ, as in Meta-SGD, need all of it.

Notation used for tensor shapes: n texts, D dimensions, m dimensions of the span.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.func import functional_call
from torch.nn import functional as F

from metasearch.algorithms.sets import numbered
from metasearch.config.roles import Role
from metasearch.config.run import Checkpointing
from metasearch.encoders.adapted import AdaptedEncoder, require_vectors
from metasearch.encoders.adapter import MatrixAdapter
from metasearch.encoders.encoder import Output
from metasearch.training.packing.encoder import Job, Result
from metasearch.training.packing.layout import Group, PackingPlan


@dataclass(frozen=True)
class Tower:
    """Vectors `(n, D)` of texts of one role, and their coordinates `(n, m)` in the span, if weights are sliced.

    The adapter maps them if it `adapts` their role. No gradient goes through the others.
    """

    vectors: Tensor
    coordinates: Tensor | None
    adapts: bool


@dataclass(frozen=True)
class VectorTexts:
    """A group of texts as vectors of the frozen encoder.

    Attributes:
        by_role: a tower for the texts of each role.
        order: each text's row among all towers; None where that is its place.
        tokens: how much work it is: the number of texts.
    """

    by_role: Mapping[Role, Tower]
    order: Tensor | None
    tokens: int


class VectorNetwork:
    """The adapter of an encoder, run on other weights."""

    def __init__(self, encoder: AdaptedEncoder, names: Sequence[str]) -> None:
        self._adapter, self._names = encoder.adapter, names

    def run(
        self, weights: Sequence[Tensor], texts: VectorTexts | Tower, output: Output = "sentence", bf16: bool = False
    ) -> Tensor:
        """Return unit vectors `(n, D)` with other weights, whole or sliced; vectors are never in bfloat16."""
        require_vectors(output)
        if isinstance(texts, VectorTexts):
            rows = torch.cat([self.run(weights, tower) for tower in texts.by_role.values()])
            return rows if texts.order is None else rows[texts.order]
        if not texts.adapts:
            return texts.vectors
        if texts.coordinates is not None and weights[0].shape[1] == texts.coordinates.shape[1]:
            return F.normalize(texts.vectors + F.linear(texts.coordinates, weights[0]), dim=1)
        named = dict(zip(self._names, weights, strict=True))
        vectors: Tensor = functional_call(self._adapter, named, (texts.vectors,))
        return vectors


class VectorBatch:
    """Groups of texts, and B `(m, D)` if weights are sliced; see `PackedBatch`."""

    def __init__(self, packed: "PackedVectors", texts: Sequence[VectorTexts], basis: Tensor | None) -> None:
        self.packed, self.texts, self._basis = packed, texts, basis

    def cut(self, values: Sequence[Tensor]) -> list[Tensor]:
        """Return Δ Bᵀ for Δ, or with rates beside the weights everything whole."""
        if len(values) > len(self.packed.weights):
            self._basis = None
        return [value.detach() if self._basis is None else value.detach() @ self._basis.T for value in values]

    def spread(self, gradient: Sequence[Tensor | None]) -> list[Tensor | None]:
        """Return a gradient in `cut` values for the whole ones."""
        return [one if one is None or self._basis is None else one @ self._basis for one in gradient]


class PackedVectors:
    """What `PackedEncoder` is for other encoders."""

    def __init__(self, encoder: AdaptedEncoder) -> None:
        self.encoder, self.plan = encoder, PackingPlan(packs=True, table=None)
        trained = {name: weight for name, weight in encoder.adapter.named_parameters() if weight.requires_grad}
        self.names, self.weights = list(trained), list(trained.values())
        self.workers = self.most_workers = 1
        self.why_apart = "an adapter has a slice of its own in each meta-batch"
        self._network = VectorNetwork(encoder, self.names)
        self._slices = isinstance(encoder.adapter, MatrixAdapter)

    def checkpoint(self, what: Checkpointing) -> None:
        """Do nothing: there are no layers to recompute."""

    def lay_out(self, groups: Sequence[Group], sizes: Sequence[Sequence[int]] | None = None) -> VectorBatch:
        """Return text groups, with roles, as vectors; `sizes` is not read, as episodes are computed one by one."""
        texts = numbered(text for group in groups for text in group)
        roles = list(dict.fromkeys(role for role, _ in texts))
        by_role = {role: [text for own, text in texts if own == role] for role in roles}
        place = {role: numbered(own) for role, own in by_role.items()}
        vectors = {role: self.encoder.frozen(own, role) for role, own in by_role.items()}
        basis, coordinates = self._span({role: own for role, own in vectors.items() if role in self.encoder.roles})

        def lay_out(group: Group) -> VectorTexts:
            towers: dict[Role, Tower] = {}
            for role in dict.fromkeys(role for role, _ in group):
                rows = self._rows([place[role][text] for own, text in group if own == role])
                own = coordinates[role][rows] if role in coordinates else None
                towers[role] = Tower(vectors[role][rows], own, role in self.encoder.roles)
            row = numbered((role, text) for role in towers for own, text in group if own == role)
            order = [row[text] for text in group]
            return VectorTexts(towers, None if order == sorted(order) else self._rows(order), len(group))

        return VectorBatch(self, [lay_out(group) for group in groups], basis)

    def each(self, jobs: Sequence[Job], work: Callable[[VectorNetwork, Job], Result]) -> list[Result]:
        """Return each job's result, one after another."""
        return [work(self._network, job) for job in jobs]

    def _rows(self, numbers: Sequence[int]) -> Tensor:
        return torch.tensor(numbers, dtype=torch.long, device=self.encoder.device)

    def _span(self, adapted: Mapping[Role, Tensor]) -> tuple[Tensor | None, dict[Role, Tensor]]:
        """Return B `(m, D)` of vectors by role, and their coordinates; nothing where slicing would save nothing."""
        count = sum(own.shape[0] for own in adapted.values())
        if not self._slices or not 0 < count < self.encoder.dimension():
            return None, {}
        orthonormal, coordinates = torch.linalg.qr(torch.cat(list(adapted.values())).T)
        split = coordinates.T.split([own.shape[0] for own in adapted.values()])
        return orthonormal.T, dict(zip(adapted, split, strict=True))
