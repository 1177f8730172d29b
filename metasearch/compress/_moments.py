"""Means and covariances of what a layer's neurons give and of what is wanted of them, over the tokens of texts."""

import torch
from torch import Tensor


class Moments:
    """Moments of values `(tokens, F)` and of what goes with them, `(tokens, H)`, in float64.

    Both are counted from the mean of the first ones: where they vary less than they are high, the difference of two
    large sums would have nothing but rounding in it.
    """

    def __init__(self) -> None:
        self.tokens = 0
        self._origin = self._sum = self._products = self._squares = torch.zeros(())
        self._width = 0

    def add(self, values: Tensor, wanted: Tensor) -> None:
        """Count values `(tokens, F)` and what is wanted where they are, `(tokens, H)`."""
        both = torch.cat([values, wanted], dim=1)
        if not self.tokens:
            self._origin, self._width = both.mean(0), values.shape[1]
        moved = both - self._origin
        self.tokens += len(both)
        # Not every device has float64.
        self._sum = self._sum + moved.cpu().double().sum(0)
        self._products = self._products + (moved.T @ moved[:, : self._width]).cpu().double()
        self._squares = self._squares + moved[:, self._width :].square().sum(0).cpu().double()

    @property
    def means(self) -> tuple[Tensor, Tensor]:
        """Mean of the values `(F,)` and of what is wanted `(H,)`."""
        mean = self._origin.cpu().double() + self._sum / self.tokens
        return mean[: self._width], mean[self._width :]

    @property
    def covariance(self) -> Tensor:
        """Covariance of the values, `(F, F)`."""
        return self._centred()[: self._width]

    @property
    def cross(self) -> Tensor:
        """Covariance of what is wanted and the values, `(H, F)`."""
        return self._centred()[self._width :]

    @property
    def variance(self) -> Tensor:
        """Variance of what is wanted, `(H,)`."""
        mean = (self._sum / self.tokens)[self._width :]
        return self._squares / self.tokens - mean.square()

    def _centred(self) -> Tensor:
        mean = self._sum / self.tokens
        return self._products / self.tokens - torch.outer(mean, mean[: self._width])
