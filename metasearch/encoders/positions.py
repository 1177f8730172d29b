"""How many tokens a transformer can read: as many as its table of positions has rows for them.

Configurations name this number in several ways, or not at all, and the first rows of a table may belong to no text. So
a table is recognised by what a network looks up: a text of T tokens reads the rows f, f + 1, ..., f + T - 1 of it.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

_TOKENS = 4
_CONFIGURED = ("max_position_embeddings", "max_seq_len")


@dataclass(frozen=True)
class Positions:
    """The module with a table of positions, the row of a text's first token, and for how many tokens it has rows."""

    table: Any
    first: int
    longest: int


_FOUND: WeakKeyDictionary[nn.Module, Positions | None] = WeakKeyDictionary()
"""What was found for each network."""


class _Lookups(TorchFunctionMode):
    """Records which rows are read of each embedding matrix."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[Tensor, Tensor]] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call a function of torch."""
        if func is F.embedding:
            rows, table = (*args, *(kwargs or {}).values())[:2]
            # Some networks pad a text further; tables of distances are read for all pairs of tokens.
            if rows.shape[-1] == rows.numel():
                self.found.append((rows.flatten()[:_TOKENS], table))
        return func(*args, **(kwargs or {}))


def positions_of(network: nn.Module, read: Callable[[Mapping[str, Tensor]], Any], padding: int) -> Positions | None:
    """Return the smallest table of positions of a network; None where it has none.

    Args:
        network: the network; what is found is remembered for it.
        read: runs the network on features of one text.
        padding: number of the padding token, for which some networks look up no position.
    """
    if network not in _FOUND:
        # One word several times, so that the rows of words do not ascend.
        device = next(network.parameters()).device
        ones, lookups = torch.ones((1, _TOKENS), dtype=torch.long, device=device), _Lookups()
        plain = torch.autocast(device.type, enabled=False)
        # A network that needs more than that is reported where it is first used.
        with torch.no_grad(), plain, torch.random.fork_rng(devices=[]), lookups, suppress(Exception):
            read({"input_ids": ones * (padding == 0), "attention_mask": ones})
        modules = {id(module.weight): module for module in network.modules() if hasattr(module, "weight")}
        tables = [
            Positions(modules.get(id(weight)), int(rows[0]), len(weight) - int(rows[0]))
            for rows, weight in lookups.found
            if len(rows) == _TOKENS and bool((rows.diff() == 1).all())
        ]
        _FOUND[network] = min(tables, key=lambda each: each.longest, default=None)
    return _FOUND[network]


def configured(config: Any) -> int | None:
    """Return the number of positions in a configuration; None for a model without a limit, such as T5 or XLNet (-1)."""
    found = (getattr(config, name, None) for name in _CONFIGURED)
    return next((int(positions) for positions in found if positions and positions > 0), None)
