"""How many tokens a transformer can read: as many as its table of positions has rows for them.

Configurations name this number in several ways, or not at all, and the first rows of a table may belong to no text. So
a table is recognised by what a network looks up: a text of T tokens reads the rows f, f + 1, ..., f + T - 1 of it.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

_TOKENS = 4
_READABLE: WeakKeyDictionary[nn.Module, float] = WeakKeyDictionary()
"""What was found for each network; infinite without a table."""
_CONFIGURED = ("max_position_embeddings", "max_seq_len")


class _Lookups(TorchFunctionMode):
    """Records which rows are read of each embedding matrix, and how many it has."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[Tensor, int]] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call a function of torch."""
        if func is F.embedding:
            rows, table = (*args, *(kwargs or {}).values())[:2]
            self.found.append((rows.flatten(), len(table)))
        return func(*args, **(kwargs or {}))


def readable(network: nn.Module, read: Callable[[Mapping[str, Tensor]], Any], padding: int) -> float:
    """Return how many tokens the tables of positions of a network take; infinite where it has none.

    Args:
        network: the network; what is found is remembered for it.
        read: runs the network on features of one text.
        padding: number of the padding token, for which some networks look up no position.
    """
    if network not in _READABLE:
        # One word several times, so that the rows of words do not ascend.
        device = next(network.parameters()).device
        ones, lookups = torch.ones((1, _TOKENS), dtype=torch.long, device=device), _Lookups()
        plain = torch.autocast(device.type, enabled=False)
        # A network that needs more than that is reported where it is first used.
        with torch.no_grad(), plain, torch.random.fork_rng(devices=[]), lookups, suppress(Exception):
            read({"input_ids": ones * (padding == 0), "attention_mask": ones})
        tables = [(rows, count) for rows, count in lookups.found if len(rows) == _TOKENS]
        ascending = (count - int(rows[0]) for rows, count in tables if bool((rows.diff() == 1).all()))
        _READABLE[network] = min(ascending, default=float("inf"))
    return _READABLE[network]


def configured(config: Any) -> int | None:
    """Return the number of positions in a configuration; None for a model without a limit, such as T5 or XLNet (-1)."""
    found = (getattr(config, name, None) for name in _CONFIGURED)
    return next((int(positions) for positions in found if positions and positions > 0), None)
