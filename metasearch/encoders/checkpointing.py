"""Gradient checkpointing: layers store only their inputs and are recomputed in the backward pass.

Chen et al. (2016), "Training Deep Nets with Sublinear Memory Cost": of L layers, activations are kept of one at a time,
for one more forward pass. The operations are the same ones in the same order, and so are the bits of the gradient.
"""

from threading import Lock
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.utils.checkpoint import checkpoint


class Checkpointed(nn.Module):
    """A wrapper in place of a layer.

    transformers' own checkpointing is for training mode alone, and takes the weights that stand in the layer on the way
    back. Those of an inner step are there on the way forward only, so they are kept with the inputs.
    """

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer
        self.training = layer.training
        # A graph may go backward on another thread than the one that made it, while a second one does on a third.
        self._lock = Lock()

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the wrapped layer."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("layer"), name)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the layer returns."""
        if not torch.is_grad_enabled():
            return self.layer(*args, **kwargs)
        weights: dict[str, Tensor] = dict(self.layer.named_parameters())

        def run(*args: Any, **kwargs: Any) -> Any:
            with self._lock:
                return functional_call(self.layer, weights, args, kwargs)

        # Random numbers are drawn by dropout alone. Only the form that is not reentrant can be differentiated twice.
        return checkpoint(run, *args, use_reentrant=False, preserve_rng_state=self.training, **kwargs)


def checkpoint_layers(module: nn.Module) -> list[Checkpointed]:
    """Recompute a network's layers in the backward pass; return the layers.

    Layers are what stands in a list (`nn.ModuleList`) that is not part of a layer. Names of weights change.
    """
    found = []
    for name, child in list(module.named_children()):
        if isinstance(module, nn.ModuleList):
            wrapped = Checkpointed(child)
            setattr(module, name, wrapped)
            found.append(wrapped)
        else:
            found += checkpoint_layers(child)
    return found
