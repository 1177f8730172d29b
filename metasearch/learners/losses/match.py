"""Squared error of outputs against targets, the first term of multi-stage distillation (Ding et al. 2022)."""

from torch import Tensor
from torch.nn import functional as F


def match(outputs: Tensor, targets: Tensor) -> Tensor:
    """Return the mean over texts and dimensions of (output − target)², both of the same shape.

    The paper writes a squared norm, `D` times as much; its authors' code takes this mean. The difference is the weight
    against a contrastive term.
    """
    return F.mse_loss(outputs, targets)
