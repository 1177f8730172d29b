"""What autograd keeps of the forward passes of a meta-batch until the way back, before they are made.

It grows with the number of tokens, so it is measured on the longest text, alone and twice, and multiplied out:
f(n) = a + b n bytes of n tokens. In second order attention keeps the products of all pairs of tokens of a text, so that
b, of the longest, is more than what shorter ones need.
"""

from collections.abc import Sequence
from contextlib import nullcontext

import numpy as np
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from metasearch.encoders.checkpointing import checkpointed
from metasearch.encoders.encoder import Encoder
from metasearch.episodes.episode import Episode
from metasearch.fast.memory import saved_size
from metasearch.learners.base import Learner
from metasearch.learners.sets import numbered, texts_of
from metasearch.learners.texts import TextLearner
from metasearch.spec.recipe import Role

Group = Sequence[tuple[Role, str]]
"""Texts that are encoded together, each with its role."""


class Activations:
    """Bytes that autograd keeps of forward passes, by a measurement that changes nothing.

    Args:
        learner: whose encoder it is, with dropout as it will be.
        groups: texts that are encoded together.
        bf16: whether forward passes run in bfloat16.
        checkpointing: whether layers are computed again on the way back.
        most: tokens of a group that are there at a time, where passes are computed again; None are all.

    Attributes:
        second_order: whether inner gradients are differentiated.
    """

    def __init__(
        self, learner: Learner, groups: Sequence[Group], bf16: bool, checkpointing: bool, most: int | None = None
    ) -> None:
        self.second_order = learner.second_order
        self._encoder, self._output = learner.encoder, getattr(learner.options, "output", "sentence")
        self._groups, self._bf16, self._checkpointing, self._most = groups, bf16, checkpointing, most

    def of(self, count: int | None, padded: bool) -> int:
        """Return the bytes of the largest `count` groups, of all with None; `padded` to the longest of their roles."""
        sizes = [tokens_of(self._encoder, group, padded) for group in self._groups]
        length, role, text = max(
            (length, role, text)
            for group in self._groups
            for (role, text), length in zip(group, _lengths(self._encoder, group), strict=True)
        )
        if self._most is not None:
            sizes = [min(size, max(self._most, length)) for size in sizes]
        total = sum(sorted(sizes, reverse=True)[:count])
        one, two = (self._measured([text] * copies, role) for copies in (1, 2))
        # What does not grow with the texts, such as weights in bfloat16, is in both.
        return max(0, 2 * one - two) + (two - one) * total // length

    def _measured(self, texts: list[str], role: Role) -> int:
        """Return the bytes of texts of equal length, the layer that is computed again among them."""
        plain, _ = self._saved(texts, role, False)
        if not self._checkpointing:
            return plain
        kept, layers = self._saved(texts, role, True)
        return kept + max(0, plain - kept) // max(1, layers)

    def _saved(self, texts: list[str], role: Role, checkpointing: bool) -> tuple[int, int]:
        """Return the bytes, and how many layers were computed again."""
        embedder, device = self._encoder.embedder, self._encoder.device
        runs: list[object] = []

        def forward() -> object:
            with torch.autocast(device.type, torch.bfloat16, enabled=self._bf16):
                vectors = embedder(features, self._output)
            if not self.second_order:
                return vectors
            # But for the table, whose gradient has the size of the table here, unless there is nothing else.
            words = getattr(self._encoder.input.words, "weight", None)
            trained = [weight for weight in embedder.parameters() if weight.requires_grad]
            weights = [weight for weight in trained if weight is not words] or trained
            return torch.autograd.grad(vectors.square().sum(), weights, create_graph=True, allow_unused=True)

        features = self._encoder.features(texts, role)
        # Attention as `ReferenceGradients` has it, and no random number taken from what comes after.
        kernel = sdpa_kernel(SDPBackend.MATH) if self.second_order else nullcontext()
        unchanged = torch.random.fork_rng([device] if device.type == "cuda" else [])
        with unchanged, kernel, checkpointed(embedder, checkpointing) as layers:
            for layer in layers:
                layer.register_forward_hook(lambda *_: runs.append(None))
            return saved_size(forward, embedder.parameters()), len(runs)


def groups_of(learner: Learner, episodes: Sequence[Episode]) -> list[Group]:
    """Return the texts of a meta-batch that are encoded together: all of them, or those of a set."""
    if isinstance(learner, TextLearner):
        return [[("text", text) for text in numbered(learner.texts(learner.pairs(episodes)))]]
    return [texts_of(examples) for episode in episodes for examples in episode.sets]


def words_of(encoder: Encoder, groups: Sequence[Group]) -> int:
    """Return how many different words the texts have."""
    rows = [row for group in groups for role, text in group for row in encoder.tokens([text], role)]
    return len(np.unique(np.concatenate([row[encoder.columns.index("input_ids")] for row in rows])))


def tokens_of(encoder: Encoder, group: Group, padded: bool) -> int:
    """Return the tokens of texts in one row, or `padded` to the longest of their role."""
    lengths = np.array(_lengths(encoder, group))
    if not padded:
        return int(lengths.sum())
    roles = np.array([role for role, _ in group])
    return sum(int(lengths[roles == role].max() * (roles == role).sum()) for role in set(roles))


def _lengths(encoder: Encoder, group: Group) -> list[int]:
    # Each with its role, whose limit and prompt they have.
    return [int(encoder.lengths([text], role)[0]) for role, text in group]
