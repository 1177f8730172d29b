"""The outer gradients of learners at a fraction of the cost: the same numbers as their formulas, by other ways."""

from metasearch.fast.encoder import FastEncoder
from metasearch.fast.gradients import FastGradients
from metasearch.fast.parts import Parts
from metasearch.fast.transfer import descend, transfer

__all__ = ["FastEncoder", "FastGradients", "Parts", "descend", "transfer"]
