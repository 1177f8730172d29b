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
        products = moved.T @ moved[:, : self._width]
        if not self.tokens:
            self._sum, self._squares = torch.zeros(2, both.shape[1], dtype=torch.float64)
            self._products = torch.zeros(products.shape, dtype=torch.float64)
        self.tokens += len(both)
        # Not every device has float64. In place, as the products of many neurons are gigabytes.
        self._sum += moved.cpu().double().sum(0)
        self._products += products.cpu()
        self._squares += moved.square().sum(0).cpu().double()

    @property
    def means(self) -> tuple[Tensor, Tensor]:
        """Mean of the values `(F,)` and of what is wanted `(H,)`."""
        mean = self._origin.cpu().double() + self._sum / self.tokens
        return mean[: self._width], mean[self._width :]

    def covariances(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return three covariances; the sums are used up by this.

        Of the values `(F, F)`, of what is wanted with the values `(H, F)`, and the variance of what is wanted `(H,)`.
        """
        mean = self._sum / self.tokens
        products = self._products.div_(self.tokens).addr_(mean, mean[: self._width], alpha=-1)
        variance = self._squares / self.tokens - mean.square()
        return products[: self._width], products[self._width :], variance[self._width :]
