"""Remembers the best dev score and says when to stop."""

from dataclasses import dataclass


@dataclass
class EarlyStopping:
    """Stops after `patience` outer steps without a better dev score (MAML-Align paper, appendix C.3).

    Only scores of trained weights take part: the score before the first step is a baseline to compare with, so that
    a learner which does harm is reported as doing so.

    Patience is in outer steps; 0 never stops. `best_score` is None until the first update.
    """

    patience: int
    best_score: float | None = None
    best_step: int = 0
    last_step: int = 0

    def update(self, step: int, score: float) -> bool:
        """Take note of a score; return whether it is the best so far (of equal scores the first)."""
        self.last_step = step
        better = self.best_score is None or score > self.best_score
        if better:
            self.best_score, self.best_step = score, step
        return better

    @property
    def exhausted(self) -> bool:
        """Whether patience had run out when the last score was taken."""
        return 0 < self.patience <= self.last_step - self.best_step
