"""How much room a training takes on the disk, at least: what is certain before its first step."""

from torch import nn

from metasearch.spec.recipe import Outer, Pace
from metasearch.training.optimizer import MOMENTS

_TABLES = (nn.Embedding, nn.EmbeddingBag)


def checkpoint_bytes(weights: int, dense: int, settings: Outer) -> int:
    """Return the bytes that a checkpoint has at least: the weights, the best ones, and moments of the optimiser.

    Args:
        weights: bytes of all that is trained.
        dense: bytes of those that have moments in any case, as `dense_bytes`.
        settings: of the outer optimiser.
    """
    return 2 * weights + MOMENTS[settings.optimizer] * dense


def checkpoints_kept(steps: int, pace: Pace) -> int:
    """Return how many checkpoints stand side by side before a training of so many steps is done, one or two."""
    # Even the least patience waits for a second dev score.
    return 2 if pace.eval_every and steps > pace.eval_every else 1


def dense_bytes(module: nn.Module) -> int:
    """Return the bytes of the trainable weights whose moments are as large as they are.

    Tables of words may have moments for the rows alone that were ever looked up, and a pooler that nothing reads has
    none.
    """
    tables = {id(each.weight) for each in module.modules() if isinstance(each, _TABLES)}
    return sum(
        weight.nbytes
        for name, weight in module.named_parameters()
        if weight.requires_grad and id(weight) not in tables and "pooler" not in name.split(".")
    )
