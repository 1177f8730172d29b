"""The parameters of a query adapter beside its matrix, so that a form other than a matrix learns on as it was.

A saved model has the matrix of its adapter alone, in a `Router` that sentence-transformers reads. The steps of a
low-rank adapter or of a rotation depend on its parameters, which do not follow from the matrix.
"""

from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from metasearch.encoders.adapter import MatrixAdapter, PlanAdapter, QueryAdapter, build_adapter
from metasearch.errors import ConfigError, EncoderError, first_line

ADAPTER_FILE = "adapter.safetensors"
"""Name of the file in the folder of a model; a matrix has none."""
_FORM = "form"
_CLOSE = 1e-4
"""Largest difference of a number in both matrices: other machines round a rotation in another way."""


def save_parameters(adapter: QueryAdapter, folder: Path) -> None:
    """Write the parameters of an adapter and its form into the folder of a model.

    A matrix, and the maps of an index, have no file: their model has all of them.
    """
    file = folder / ADAPTER_FILE
    if isinstance(adapter, MatrixAdapter | PlanAdapter):
        file.unlink(missing_ok=True)
        return
    state = {name: each.detach().cpu().contiguous() for name, each in adapter.state_dict().items()}
    save_file(state, file, {_FORM: adapter.form})


def read_adapter(weight: Tensor, folder: Path | None) -> QueryAdapter:
    """Return the adapter with a matrix `(D, D)`, in the form of the folder's file, or as a matrix without one.

    `EncoderError` if the file is damaged, or of another adapter.
    """
    file = folder / ADAPTER_FILE if folder else None
    if file is None or not file.is_file():
        matrix = MatrixAdapter(len(weight)).to(weight)
        with torch.no_grad():
            matrix.delta.copy_(weight - torch.eye(len(weight)).to(weight))
        return matrix
    try:
        with safe_open(file, "pt") as stored:
            form = (stored.metadata() or {}).get(_FORM, "")
            state = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
        adapter = build_adapter(form, len(weight), len(state["down"]) if "down" in state else 1)
        adapter.load_state_dict(state)
    except (SafetensorError, OSError, ConfigError, RuntimeError) as error:
        raise EncoderError(f"{file}: damaged: {first_line(error)}") from None
    if not (adapter.matrix() - weight).abs().max() <= _CLOSE:
        raise EncoderError(f"{file}: not of the adapter in this folder; without the file that is a matrix")
    return adapter.to(weight)
