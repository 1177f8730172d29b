"""The losses in the MAML-Align paper (appendix B): triplets for retrieval, scored pairs for similarity.

The paper calls the d of the triplet loss (Schroff et al. 2015) a dot product, which would push the answer away; its
classes of negatives and its code use a distance. So the default is the Euclidean distance, and the cosine similarity is
offered with the sign it needs.
"""

from typing import Literal

from torch import Tensor
from torch.nn import functional as F

from metasearch.algorithms.losses.base import EmbeddedSet, Loss
from metasearch.config.base import FrozenConfig, NonNegative


class Triplet(Loss):
    """The mean over triplets of how far each is from being satisfied by the margin m.

    - `euclidean`: max(‖q − p + ε‖₂ − ‖q − n + ε‖₂ + m, 0), ε = 1e-6, as `torch.nn.TripletMarginLoss`
    - `cosine`: max(cos(q, n) − cos(q, p) + m, 0)
    """

    class Options(FrozenConfig):
        """Margin m, and the quantity it applies to."""

        margin: NonNegative = 1.0
        distance: Literal["euclidean", "cosine"] = "euclidean"

    columns = ("question", "positive", "negative")

    def __call__(self, batch: EmbeddedSet) -> Tensor:
        """Return the loss from columns `question`, `positive` and `negative`, unit vectors `(B, D)`."""
        question, positive, negative = (batch.vectors[name] for name in self.columns)
        if self.options.distance == "euclidean":
            return F.triplet_margin_loss(question, positive, negative, margin=self.options.margin)
        gap = F.cosine_similarity(question, negative) - F.cosine_similarity(question, positive)
        return F.relu(gap + self.options.margin).mean()


LOSS_TRIPLET = Triplet
"""The triplet loss in the MAML-Align paper (appendix B), after Schroff et al. (2015)."""


class CosineMSE(Loss):
    """Mean over pairs: (cos(u, v) − gold)²."""

    columns = ("text1", "text2")

    def __call__(self, batch: EmbeddedSet) -> Tensor:
        """Return the loss from columns `text1` and `text2` `(B, D)` against gold `(B,)`."""
        assert batch.gold is not None
        return F.mse_loss(F.cosine_similarity(batch.vectors["text1"], batch.vectors["text2"]), batch.gold)


LOSS_COSINE_MSE = CosineMSE
"""The similarity loss in the MAML-Align paper (appendix B): squared error between cosine and gold score."""
