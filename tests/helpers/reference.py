"""Meta-learning written out by hand: dictionaries of weights, `torch.func.functional_call` and plain gradients.

Nothing here comes from the learners, their losses or learn2learn, so that these can be compared with it. Each column
of a set is encoded on its own, a text that stands in it twice, twice.
"""

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn
from torch.func import functional_call

from helpers.padded import padded
from helpers.small import SmallEncoder
from metasearch.encoders.adapted import AdaptedEncoder
from metasearch.episodes.episode import LabelledSet, Triplet
from metasearch.training.outer_gradients import OuterGradients

Weights = dict[str, Tensor]


def weights_of(module: nn.Module) -> Weights:
    """Return the trainable weights, a shared one once."""
    return {name: weight for name, weight in module.named_parameters() if weight.requires_grad}


class Reference:
    """Descent on the loss of a set: the Euclidean triplet loss, or the squared error of the cosine."""

    def __init__(self, encoder: SmallEncoder, margin: float) -> None:
        self.encoder = encoder
        self.margin = margin

    def loss(self, weights: Weights, examples: LabelledSet) -> Tensor:
        """Return the mean over examples of their loss."""

        def embed(role: str, texts: Iterable[str]) -> Tensor:
            return functional_call(self.encoder.embedder, weights, (self.encoder.features(list(texts), role),))

        if isinstance(examples.examples[0], Triplet):
            query = embed("question", (t.question.text for t in examples.examples))
            positive = embed("candidate", (t.positive.text for t in examples.examples))
            negative = embed("candidate", (t.negative.text for t in examples.examples))
            near = (query - positive + 1e-6).square().sum(dim=1).sqrt()
            far = (query - negative + 1e-6).square().sum(dim=1).sqrt()
            return torch.clamp(near - far + self.margin, min=0).mean()
        first = embed("text", (pair.text1 for pair in examples.examples))
        second = embed("text", (pair.text2 for pair in examples.examples))
        gold = torch.tensor([pair.score for pair in examples.examples], dtype=first.dtype)
        return ((first * second).sum(dim=1) - gold).square().mean()

    def descend(
        self, weights: Weights, sets: Iterable[LabelledSet], rate: float | Mapping[str, Tensor], first_order: bool
    ) -> Weights:
        """Return the weights after one step of gradient descent on each set in turn: w ← w − rate · ∇L(w)."""
        for examples in sets:
            steps = gradients(self.loss(weights, examples), weights, create_graph=True)
            if first_order:
                steps = {name: step.detach() for name, step in steps.items()}
            rates = rate if isinstance(rate, Mapping) else dict.fromkeys(weights, rate)
            weights = {name: weight - rates[name] * steps[name] for name, weight in weights.items()}
        return weights


def gradients(loss: Tensor, weights: Weights, create_graph: bool = False) -> Weights:
    """Return the gradient of a scalar in each weight; zeros where it does not depend on it."""
    found = torch.autograd.grad(
        loss,
        list(weights.values()),
        retain_graph=True,
        create_graph=create_graph,
        allow_unused=True,
        materialize_grads=True,
    )
    return dict(zip(weights, found, strict=True))


def learned(learner: object, episodes: list) -> tuple[float, Weights]:
    """Return a learner's outer loss and outer gradient, zeros where it gives none.

    They are those on padded texts; of an adapted encoder those of a training.
    """
    adapts = isinstance(learner.encoder, AdaptedEncoder)
    parameters = dict(learner.named_parameters())
    for parameter in parameters.values():
        parameter.grad = None
    total = (OuterGradients(learner.encoder) if adapts else padded)(learner, episodes).total
    return total.item(), {
        n: torch.zeros_like(p) if p.grad is None else p.grad.to_dense() for n, p in parameters.items()
    }


def distance(found: Weights, expected: Weights) -> float:
    """Return ‖found − expected‖ / ‖expected‖ over all weights together."""
    off = torch.cat([(found[name] - value).flatten() for name, value in expected.items()])
    return (off.norm() / torch.cat([value.flatten() for value in expected.values()]).norm()).item()


def assert_same(found: Weights, expected: Weights, tolerance: float = 1e-10) -> None:
    """Assert that each weight's gradient is the expected one, to a relative error of its own norm."""
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        error, size = (found[name] - value).norm().item(), value.norm().item()
        assert error <= tolerance * size, f"{name}: off by {error} of {size}"
