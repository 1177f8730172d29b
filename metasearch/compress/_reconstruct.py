"""Chooses channels of a layer, and the weights with which they stand for all of them."""

import torch
from torch import Tensor

RIDGE = 1e-4
"""Added to the variances, as a share of their mean: keeps the equations solvable where neurons never fire."""


def ridge_of(covariance: Tensor) -> Tensor:
    """Return the ridge of a covariance `(F, F)`, one number."""
    # Above 0 also where no neuron of the layer ever varies, so that nothing is divided by 0.
    return (RIDGE * covariance.diagonal().mean()).clamp(min=torch.finfo(covariance.dtype).tiny)


def with_ridge(covariance: Tensor) -> Tensor:
    """Return a covariance `(F, F)` with the ridge on its diagonal."""
    return covariance + ridge_of(covariance) * torch.eye(len(covariance)).to(covariance)


def reconstruct(covariance: Tensor, weight: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Choose channels, and the weights with which they give what all of them gave.

    Args:
        covariance: C of the channels, `(F, F)`, float64.
        weight: W, which reads the channels, `(H, F)`, float64.
        count: number M of channels to keep.

    Returns:
        Numbers of the channels `(M,)`, ascending, and W' `(H, M)`, which minimises tr((W − W'P)·C·(W − W'P)ᵀ) for the
        matrix P that picks them, C having the ridge on its diagonal.
    """
    whole = with_ridge(covariance)
    if count == len(whole):
        return torch.arange(count), weight
    ridge = ridge_of(covariance)
    # What the chosen channels do not explain, of C and of W·C. Choosing one is a step of a pivoted Cholesky
    # decomposition, so each costs a rank-one update where solving anew for every candidate would cost M systems.
    left, read = whole.clone(), weight @ whole
    chosen: list[int] = []
    for _ in range(count):
        alone = left.diagonal().clamp(min=ridge)  # below it by rounding only
        # How much smaller the squared error of the outputs gets with this channel.
        gain = read.square().sum(0) / alone
        # A gain is never negative, so none is chosen twice.
        gain[chosen] = -1
        best = int(gain.argmax())
        chosen.append(best)
        root = alone[best].sqrt()
        column, share = left[:, best] / root, read[:, best] / root
        left.addr_(column, column, alpha=-1)
        read.addr_(share, column, alpha=-1)
    # The greedy search only chooses: weights are solved from the whole matrix, free of the updates' rounding.
    numbers = torch.tensor(sorted(chosen))
    rows = whole[numbers]
    return numbers, torch.linalg.solve(rows[:, numbers], rows @ weight.T).T
