"""The fast engine: what learners compute, with the same gradients, at a fraction of the cost."""

from metasearch.fast.batch import Batch, Fast, Sum
from metasearch.fast.parts import Parts
from metasearch.fast.transfer import Transfer, descend, transfer

__all__ = ["Batch", "Fast", "Parts", "Sum", "Transfer", "descend", "transfer"]
