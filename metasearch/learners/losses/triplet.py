"""The triplet loss of the MAML-Align paper (appendix B), after Schroff et al. (2015).

The paper calls d a dot product, which would push the answer away; its classes of negatives and its code use a
distance. So the default is the Euclidean distance, and the cosine similarity is offered with the sign it needs.
"""

from torch import Tensor
from torch.nn import functional as F

from metasearch.spec.recipe import Loss


def triplet_loss(query: Tensor, positive: Tensor, negative: Tensor, settings: Loss) -> Tensor:
    """Return the mean over triplets of how far each is from being satisfied by the margin m.

    - `euclidean`: max(‖q − p + ε‖₂ − ‖q − n + ε‖₂ + m, 0), ε = 1e-6, as `torch.nn.TripletMarginLoss`
    - `cosine`: max(cos(q, n) − cos(q, p) + m, 0)

    Args:
        query: unit vectors `(B, D)`.
        positive: unit vectors `(B, D)`.
        negative: unit vectors `(B, D)`.
        settings: margin and distance.

    Returns:
        A scalar.
    """
    if settings.distance == "euclidean":
        return F.triplet_margin_loss(query, positive, negative, margin=settings.margin)
    gap = F.cosine_similarity(query, negative) - F.cosine_similarity(query, positive)
    return F.relu(gap + settings.margin).mean()
