"""Objectives: functions from embeddings (and gold) to a scalar, in files here. They see tensors only.

`metasearch.losses` has the losses for retrieval and similarity tasks as classes, such as `Triplet(margin=0.2)`.
"""

from metasearch.algorithms.losses.base import Loss
from metasearch.algorithms.losses.infonce import InfoNCE
from metasearch.algorithms.losses.paper import CosineMSE, Triplet

__all__ = ["CosineMSE", "InfoNCE", "Loss", "Triplet"]
