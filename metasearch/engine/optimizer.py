"""The outer optimiser, AdamW, and its state by parameter name."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from metasearch.config import Outer


def build(parameters: Mapping[str, nn.Parameter], settings: Outer) -> torch.optim.AdamW:
    """Return AdamW over named parameters, in one fused kernel where the device has one."""
    devices = {parameter.device.type for parameter in parameters.values()}
    return torch.optim.AdamW(
        parameters.values(),
        lr=settings.lr,
        eps=settings.eps,
        weight_decay=settings.weight_decay,
        fused=devices <= {"cpu", "cuda"},
    )


def state(optimizer: torch.optim.AdamW, parameters: Mapping[str, nn.Parameter]) -> dict[str, Tensor]:
    """Return the state as tensors named `<parameter>/<entry>`; parameters without a gradient so far have none."""
    return {
        f"{name}/{entry}": value
        for name, parameter in parameters.items()
        for entry, value in optimizer.state.get(parameter, {}).items()
    }


def restore(
    optimizer: torch.optim.AdamW, parameters: Mapping[str, nn.Parameter], tensors: Mapping[str, Tensor]
) -> None:
    """Put back what `state` returned."""
    for key, value in tensors.items():
        name, entry = key.rsplit("/", 1)
        parameter = parameters[name]
        # AdamW counts steps on the CPU unless it is fused on a GPU.
        device = optimizer_device(parameter, entry)
        optimizer.state[parameter][entry] = value.to(device)


def optimizer_device(parameter: nn.Parameter, entry: str) -> torch.device:
    """Return where an entry of a parameter's state lives."""
    if entry == "step" and parameter.device.type != "cuda":
        return torch.device("cpu")
    return parameter.device
