"""What happens where memory does not suffice: which errors say so, and how a step is begun again."""

from collections.abc import Sequence

import torch

from metasearch.errors import OutOfMemory, first_line


def out_of_memory(error: RuntimeError) -> bool:
    """Return whether an error of torch says that memory did not suffice."""
    # On a CPU it has no type of its own.
    return isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error)


def not_enough(device: torch.device, error: RuntimeError, texts: bool = True) -> OutOfMemory:
    """Return the error that says what needs less memory; `texts` may be recomputed a few at a time."""
    again = "--checkpointing gradcache, " if texts else ""
    return OutOfMemory(
        f"out of memory on {device} in an outer step ({first_line(error)}). Less is needed with smaller "
        "budget.meta_batch or budget.batch, episodes.k, episodes.q or n_neg, "
        f"shorter max_length, {again}or options.first_order=true"
    )


def random_state(device: torch.device) -> list[torch.Tensor]:
    """Return the states of the generators that dropout draws from: the CPU's, and that of a GPU."""
    states = [torch.get_rng_state()]
    if device.type == "cuda":
        states.append(torch.cuda.get_rng_state(device))
    elif device.type == "mps":
        states.append(torch.mps.get_rng_state())
    return states


def set_random_state(device: torch.device, states: Sequence[torch.Tensor]) -> None:
    """Set what `random_state` returned."""
    torch.set_rng_state(states[0])
    if device.type == "cuda":
        torch.cuda.set_rng_state(states[1], device)
    elif device.type == "mps":
        torch.mps.set_rng_state(states[1])
