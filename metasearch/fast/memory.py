"""How much memory there is, and how much autograd keeps of what is computed, as the graph of a second-order step."""

from collections.abc import Callable, Iterable

import torch

from metasearch.errors import OutOfMemory, first_line
from metasearch.fast.transfer import Objective, Weights
from metasearch.learners.inner_loop import Rates
from metasearch.runs.host import memory


def graph_size(objective: Objective, start: Weights, rates: Rates = 0.0) -> int:
    """Return the bytes that the graph of an inner step takes until the way back, measured on one step.

    Inner gradients are those of the weights that have a rate, whatever it is.
    """

    def step() -> object:
        leaves = [weight.detach().requires_grad_() for weight in start]
        each = [rates] * len(leaves) if isinstance(rates, float) else rates
        moving = [leaf for leaf, rate in zip(leaves, each, strict=True) if rate is not None]
        return torch.autograd.grad(objective(leaves), moving, create_graph=True, allow_unused=True)

    return saved_size(step)


def saved_size(compute: Callable[[], object], beside: Iterable[torch.Tensor] = ()) -> int:
    """Return the bytes that autograd keeps while the result of a computation lives, without tensors `beside` it."""
    sizes: dict[int, int] = {}

    def note(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        # By address, as many saved tensors are views of one storage.
        sizes[storage.data_ptr()] = storage.nbytes()
        return tensor.detach()  # the tensor itself would hold on to its own graph

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        # The graph must live until all is counted, or memory that it frees would be counted under one address.
        alive = compute()
    del alive
    for tensor in beside:
        sizes.pop(tensor.untyped_storage().data_ptr(), None)
    return sum(sizes.values())


def capacity(device: torch.device) -> int:
    """Return the bytes of memory that a device has, or a container allows.

    Not what is free at the moment, or a run that is resumed might decide otherwise than it did before.
    """
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    return memory()


def most_tokens(device: torch.device) -> int:
    """Return about how many tokens are computed at a time where passes are computed again.

    Ours: fewer keep less and make more calls, which weigh more on a GPU.
    """
    return 1024 if device.type == "cpu" else 8192


def out_of_memory(error: RuntimeError) -> bool:
    """Return whether an error of torch says that memory did not suffice."""
    # On a CPU it has no type of its own.
    return isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error)


def not_enough(device: torch.device, error: RuntimeError, texts: bool = True) -> OutOfMemory:
    """Return the error that says what needs less memory; `texts` may be computed again a few at a time."""
    again = "--checkpointing texts, " if texts else ""
    return OutOfMemory(
        f"out of memory on {device} in an outer step ({first_line(error)}). Less is needed with smaller "
        "budget.meta_batch or budget.batch, episodes.k, episodes.q or n_neg, "
        f"shorter max_length, {again}or options.first_order=true"
    )
