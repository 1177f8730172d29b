"""The outer gradients of learners at a fraction of the cost: the same numbers as their formulas, by other ways."""

from metasearch.fast.encoder import Batch, FastEncoder, Sum
from metasearch.fast.gradients import FastGradients
from metasearch.fast.parts import Parts
from metasearch.fast.transfer import GradientMode, Transfer, descend, transfer

__all__ = ["Batch", "FastEncoder", "FastGradients", "GradientMode", "Parts", "Sum", "Transfer", "descend", "transfer"]
