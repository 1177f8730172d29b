"""One outer step: norm and clipping of its gradient, and the file that a step without a finite gradient leaves."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from metasearch.algorithms.base import OuterLoss
from metasearch.episodes.episode import Episode, brief, whole
from metasearch.errors import NonFiniteError
from metasearch.io import atomic_write


@dataclass(frozen=True)
class StepGradient:
    """An outer step's loss; its gradient is in `.grad` of the learner's parameters.

    `number` counts from 1, `norm` is the Euclidean norm before clipping, and `rate` the learning rate as a term, where
    it changes over time.
    """

    number: int
    phase: str
    episodes: Sequence[Episode]
    loss: OuterLoss
    norm: Tensor
    rate: Mapping[str, float]

    @property
    def terms(self) -> dict[str, float]:
        """Loss, its terms, the norm and a rate that changes, as the log has them."""
        return {"loss": self.loss.total.item(), **self.loss.terms, "grad": self.norm.item(), **self.rate}

    def require_finite(self) -> None:
        """Raise `NonFiniteStep`, which names the episodes, unless loss and gradient are finite."""
        # A finite loss can have a gradient that is not.
        for value, what in ((self.loss.total, "loss"), (self.norm, "gradient norm")):
            if not torch.isfinite(value):
                raise NonFiniteStep(self, f"{what} at outer step {self.number} is {value.item()}")


class NonFiniteStep(NonFiniteError):
    """The loss or the gradient of an outer step is not finite; the weights were not updated."""

    def __init__(self, step: StepGradient, problem: str) -> None:
        terms = ", ".join(f"{name} {term:.4g}" for name, term in step.loss.terms.items())
        super().__init__(
            f"the {step.phase} {problem} ({terms}), of episodes {brief(step.episodes)}; the weights were not updated. "
            "Try a smaller rate: outer.lr, or options.inner_lr where there is one"
        )
        self.step = step


@contextmanager
def save_failed_batch(folder: Path) -> Iterator[None]:
    """Write the texts of a non-finite step to `nonfinite-step-N.txt` in a run folder; the error names it."""
    try:
        yield
    except NonFiniteStep as error:
        path = folder / f"nonfinite-step-{error.step.number}.txt"
        atomic_write(path, "\n".join(_lines(error.step)) + "\n")
        raise NonFiniteError(f"{error}. The texts of this step are in {path}") from error


def _lines(step: StepGradient) -> Iterator[str]:
    for number, episode in enumerate(step.episodes, 1):
        yield f"episode {number} of {len(step.episodes)}: {episode.arrangement}"
        yield from (f"  {line}" for line in whole(episode))


def rows_or_all(parameter: Tensor) -> Tensor:
    """Return a parameter's gradient, or the rows of a sparse one, in the same memory."""
    assert parameter.grad is not None
    if not parameter.grad.is_sparse:
        return parameter.grad
    parameter.grad = parameter.grad.coalesce()  # as it is already, unless two were added on a GPU
    return parameter.grad.values()


def norm_of(tensors: Sequence[Tensor]) -> Tensor:
    """Return the joint Euclidean norm of dense tensors."""
    norm: Tensor = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(tensor) for tensor in tensors]))
    return norm


def clip(tensors: list[Tensor], longest: float, norm: Tensor) -> None:
    """Scale tensors of this norm down to the longest one allowed (torch's `clip_grads_with_norm_` takes dense ones)."""
    # 1e-6 as in torch. Multiplied where the factor is 1, too: to ask for it first would wait for the GPU.
    torch._foreach_mul_(tensors, torch.clamp(longest / (norm + 1e-6), max=1.0))
