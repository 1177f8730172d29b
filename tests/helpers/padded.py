"""The reference of all gradients: a learner's formula on the encoder itself, with padded texts, and one `backward`."""

from contextlib import nullcontext

from torch.nn.attention import SDPBackend, sdpa_kernel

from metasearch.algorithms.base import OuterLoss


def padded(learner, episodes):
    """Add the gradient of the outer loss to `.grad`, and return the loss without its graph."""
    # Fused kernels of attention have no second derivative.
    with sdpa_kernel(SDPBackend.MATH) if learner.second_order else nullcontext():
        loss = learner.outer_loss(episodes)
        loss.total.backward()
    return OuterLoss(loss.total.detach(), loss.terms)


class PaddedGradients:
    """These gradients as a trainer asks for them."""

    def __call__(self, learner, episodes, shards=1, processes=None):
        return padded(learner, episodes)
