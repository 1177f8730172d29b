"""An encoder's network as a module of its sliced weights, which learn2learn's MAML can wrap."""

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from threading import Lock
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.utils.checkpoint import checkpoint

from metasearch.config.run import Checkpointing
from metasearch.encoders.encoder import Embedder, Encoder
from metasearch.encoders.features import Output
from metasearch.encoders.inputs import input_of
from metasearch.encoders.packed_attention import ATTENTION
from metasearch.training.packing.layout import PackedTexts, PackingPlan


class Checkpointed(nn.Module):
    """A wrapper around a layer.

    transformers' own checkpointing works in training mode only, and recomputes with the layer's present weights.
    Weights of an inner step are there in the forward pass only, so they are kept with the inputs.
    """

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer
        self.training = layer.training
        # A graph may go backward on another thread than the one that made it, while a second one does on a third.
        self._lock = Lock()

    def __getattr__(self, name: str) -> Any:
        """Return the wrapped layer's attribute."""
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


def checkpoint_layers(module: nn.Module) -> None:
    """Recompute a network's layers (children of an `nn.ModuleList`) in the backward pass; names change."""
    for name, child in list(module.named_children()):
        if isinstance(module, nn.ModuleList):
            setattr(module, name, Checkpointed(child))
        else:
            checkpoint_layers(child)


class Network:
    """A copy of an encoder's network with shared weights that can run on other weights; each thread needs its own.

    Checkpointing `layers` recomputes layers in the backward pass. `gradcache` recomputes whole passes of a few texts
    each and keeps only the vectors of all texts, which is gradient caching (Gao et al. 2021, "Scaling Deep Contrastive
    Learning Batch Size under Memory Limited Setup").
    """

    def __init__(self, encoder: Encoder, plan: PackingPlan, checkpointing: Checkpointing = "off") -> None:
        model = encoder.model
        shared = [model.tokenizer, getattr(model[0], "processor", model.tokenizer), model.model_card_data]
        # The copy shares what is in the memo: `run` replaces trained weights and only reads frozen ones.
        memo = {id(part): part for part in (*encoder.embedder.parameters(), *shared)}
        self._module: Embedder = copy.deepcopy(encoder.embedder, memo)
        if plan.packs:
            # The copy has a configuration of its own; the encoder keeps its attention.
            input_of(self._module.model).attend_with(ATTENTION)
        if checkpointing == "layers":
            checkpoint_layers(self._module)
        self._recomputes = checkpointing == "gradcache"
        # A backward pass may run on another thread than its forward pass, and that thread may run its next job then.
        self._lock = Lock()
        self._names = [name for name, weight in self._module.named_parameters() if weight.requires_grad]

    def train(self, mode: bool) -> None:
        """Turn dropout on or off."""
        self._module.train(mode)

    def run(
        self, weights: Sequence[Tensor], texts: PackedTexts, output: Output = "sentence", bf16: bool = False
    ) -> Tensor:
        """Return an output with other trainable weights, a row for each text or token, in order.

        Of the embedding matrix, `weights` has the rows of the slice. `bf16` runs in bfloat16 where that is safe.
        """
        # A tied weight has one name; `functional_call` puts it into all its places.
        named = dict(zip(self._names, weights, strict=True))
        options = {} if output == "sentence" else {"output": output}

        def once(part: Mapping[str, Any]) -> Tensor:
            with self._lock:
                vectors: Tensor = functional_call(self._module, named, (part,), options)
            return vectors

        run: Callable[[Mapping[str, Any]], Tensor] = once
        if self._recomputes and torch.is_grad_enabled():
            # Not reentrant, as in `Checkpointed`.
            run = partial(checkpoint, once, use_reentrant=False, preserve_rng_state=self._module.training)
        # Without autocast's cache of weights: parts would share a weight in bfloat16 and add its gradients there.
        with torch.autocast(texts.order.device.type, torch.bfloat16, enabled=bf16, cache_enabled=False):
            parts = [run(part) for part in texts.parts]
        # Losses are taken in the precision of the weights; the network alone runs in bfloat16.
        rows = (parts[0] if len(parts) == 1 else torch.cat(parts)).to(weights[0].dtype)
        return texts.in_order(rows, by_token=output == "states")


class PackedModule(nn.Module):
    """A network as a module with sliced weights, for learn2learn's MAML.

    Its parameters share the memory of the weights, and have gradients of their own.
    """

    def __init__(self, network: Network, weights: Sequence[Tensor], bf16: bool = False) -> None:
        super().__init__()
        for number, weight in enumerate(weights):
            self.register_parameter(str(number), nn.Parameter(weight.detach()))
        # No submodule: its own weights are not among the parameters.
        self.__dict__["network"] = network
        self._bf16 = bf16

    def forward(self, texts: PackedTexts) -> Tensor:
        """Return unit vectors `(texts, D)`."""
        vectors: Tensor = self.__dict__["network"].run(list(self._parameters.values()), texts, bf16=self._bf16)
        return vectors
