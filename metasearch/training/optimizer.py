"""The outer optimiser, AdamW or LARS, and its state by parameter name."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from metasearch.spec.recipe import Outer
from metasearch.training.lars import LARS
from metasearch.training.row_adamw import RowAdamW

MOMENTS = {"adamw": 2, "lars": 1}
"""Name of an optimiser → numbers that it keeps for each weight."""


def build(parameters: Mapping[str, nn.Parameter], settings: Outer) -> torch.optim.Optimizer:
    """Return the optimiser over named parameters; AdamW in one fused kernel where the device has one.

    It takes a gradient that is dense or a coalesced sparse tensor of rows, and leaves it with its parameter.
    """
    groups = _groups(parameters, settings)
    if settings.optimizer == "lars":
        return LARS(groups, settings.lr, settings.momentum, settings.weight_decay, settings.trust)
    devices = {parameter.device.type for parameter in parameters.values()}
    return RowAdamW(groups, settings.lr, settings.eps, settings.weight_decay, fused=devices <= {"cpu", "cuda"})


def state(optimizer: torch.optim.Optimizer, parameters: Mapping[str, nn.Parameter]) -> dict[str, Tensor]:
    """Return the state as tensors named `<parameter>/<entry>`; parameters without a gradient so far have none."""
    return {
        f"{name}/{entry}": value
        for name, parameter in parameters.items()
        for entry, value in optimizer.state.get(parameter, {}).items()
    }


def restore(
    optimizer: torch.optim.Optimizer, parameters: Mapping[str, nn.Parameter], tensors: Mapping[str, Tensor]
) -> None:
    """Put back what `state` returned, in place of what the optimiser has; KeyError where a parameter is unknown."""
    optimizer.state.clear()
    for key, value in tensors.items():
        name, entry = key.rsplit("/", 1)
        parameter = parameters[name]
        # AdamW counts steps on the CPU unless it is fused on a GPU.
        on_cpu = entry == "step" and not parameter.is_cuda
        optimizer.state[parameter][entry] = value.to("cpu" if on_cpu else parameter.device)


def _groups(parameters: Mapping[str, nn.Parameter], settings: Outer) -> list[dict[str, Any]]:
    """Return the parameters in one group, or with biases and norms in a group of their own."""
    if not settings.exempt_bias_and_norm:
        return [{"params": list(parameters.values())}]
    matrices = [parameter for parameter in parameters.values() if parameter.ndim > 1]
    vectors = [parameter for parameter in parameters.values() if parameter.ndim <= 1]
    exempt: dict[str, Any] = {"params": vectors, "weight_decay": 0.0}
    if settings.optimizer == "lars":
        exempt["adaptive"] = False
    return [group for group in ({"params": matrices}, exempt) if group["params"]]
