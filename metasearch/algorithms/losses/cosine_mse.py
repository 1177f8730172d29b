"""The similarity loss in the MAML-Align paper (appendix B): squared error between cosine and gold score."""

from torch import Tensor
from torch.nn import functional as F

from metasearch.algorithms.losses.base import EmbeddedSet, Loss


class CosineMSE(Loss):
    """Mean over pairs: (cos(u, v) − gold)²."""

    columns = ("text1", "text2")

    def __call__(self, batch: EmbeddedSet) -> Tensor:
        """Return the loss of columns `text1` and `text2` `(B, D)` against gold `(B,)`."""
        assert batch.gold is not None
        return F.mse_loss(F.cosine_similarity(batch.vectors["text1"], batch.vectors["text2"]), batch.gold)


LOSS = CosineMSE
