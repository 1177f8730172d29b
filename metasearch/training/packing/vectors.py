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
from metasearch.encoders.adapted import ADAPTED, KEPT, AdaptedEncoder, require_vectors
from metasearch.encoders.adapter import MatrixAdapter
from metasearch.encoders.encoder import Output
from metasearch.training.packing.encoder import Job, Result
from metasearch.training.packing.layout import Group, PackingPlan


@dataclass(frozen=True)
class VectorTexts:
    """A group of texts as vectors of the frozen encoder.

    Attributes:
        adapted: those that the adapter maps, `(n, D)`, and `coordinates` `(n, m)` in the span, if it is sliced.
        kept: the other ones.
        order: each text's row among the adapted and then the kept ones; None where that is its place.
        tokens: how much work it is: the number of texts.
        by_role: the texts of each role alone. No gradient goes through those that stay.
    """

    adapted: Tensor
    coordinates: Tensor | None
    kept: Tensor
    order: Tensor | None
    tokens: int
    by_role: Mapping[Role, "VectorTexts"]


class VectorNetwork:
    """The adapter of an encoder, run on other weights."""

    def __init__(self, encoder: AdaptedEncoder, names: Sequence[str]) -> None:
        self._adapter, self._names = encoder.adapter, names

    def run(
        self, weights: Sequence[Tensor], texts: VectorTexts, output: Output = "sentence", bf16: bool = False
    ) -> Tensor:
        """Return unit vectors `(n, D)` with other weights, whole or sliced; vectors are never in bfloat16."""
        require_vectors(output)
        if not len(texts.adapted):
            return texts.kept
        if texts.coordinates is not None and weights[0].shape[1] == texts.coordinates.shape[1]:
            adapted = F.normalize(texts.adapted + F.linear(texts.coordinates, weights[0]), dim=1)
        else:
            adapted = functional_call(self._adapter, dict(zip(self._names, weights, strict=True)), (texts.adapted,))
        vectors = torch.cat([adapted, texts.kept]) if len(texts.kept) else adapted
        return vectors if texts.order is None else vectors[texts.order]


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
        roles = self.encoder.roles
        texts = numbered(text for group in groups for text in group)
        # Those that the adapter maps first.
        ranked = sorted({role for role, _ in texts}, key=lambda role: (role not in roles, role))
        whole = [(role, [text for own, text in texts if own == role]) for role in ranked]
        found = [self.encoder.features(own, role) for role, own in whole]
        adapted, kept = (torch.cat([each[name] for each in found]) for name in (ADAPTED, KEPT))
        place = numbered((role, text) for role, own in whole for text in own)
        basis, coordinates = self._span(adapted)

        def vectors(group: Group, alone: bool = False) -> VectorTexts:
            first = self._rows([place[text] for text in group if text[0] in roles])
            rest = self._rows([place[text] - len(adapted) for text in group if text[0] not in roles])
            row = numbered(sorted(group, key=lambda text: text[0] not in roles))
            rows = [row[text] for text in group]
            order = None if rows == sorted(rows) else self._rows(rows)
            own = None if coordinates is None else coordinates[first]
            apart: dict[Role, Group] = {} if alone else {r: [t for t in group if t[0] == r] for r in ranked}
            by_role = {role: vectors(of_role, alone=True) for role, of_role in apart.items() if of_role}
            return VectorTexts(adapted[first], own, kept[rest], order, len(group), by_role)

        return VectorBatch(self, [vectors(group) for group in groups], basis)

    def each(self, jobs: Sequence[Job], work: Callable[[VectorNetwork, Job], Result]) -> list[Result]:
        """Return each job's result, one after another."""
        return [work(self._network, job) for job in jobs]

    def _rows(self, numbers: Sequence[int]) -> Tensor:
        return torch.tensor(numbers, dtype=torch.long, device=self.encoder.device)

    def _span(self, adapted: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """Return B `(m, D)` and coordinates `(n, m)` of vectors `(n, D)`; None where slicing would save nothing."""
        if not self._slices or not 0 < len(adapted) < adapted.shape[1]:
            return None, None
        orthonormal, coordinates = torch.linalg.qr(adapted.T)
        return orthonormal.T, coordinates.T
