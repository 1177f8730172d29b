"""An encoder's network as a function of its weights, and as a module with sliced weights."""

import copy
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.utils.checkpoint import checkpoint

from metasearch.config.run import Checkpointing
from metasearch.encoders.checkpointing import checkpoint_layers
from metasearch.encoders.encoder import Embedder, Encoder, Output
from metasearch.encoders.input_module import BY_TOKEN
from metasearch.encoders.inputs import input_of
from metasearch.training.packing.attention import ATTENTION
from metasearch.training.packing.layout import PackedTexts
from metasearch.training.packing.plan import PackingPlan


class Network:
    """A copy of an encoder's network with shared weights that can run on other weights.

    Each thread needs its own, as weights are put into it while it runs. The encoder itself is not touched.
    Checkpointing `on` recomputes layers in the backward pass. `texts` recomputes whole passes of a few texts each and
    keeps only the vectors of all texts, which is gradient caching (Gao et al. 2021, "Scaling Deep Contrastive Learning
    Batch Size under Memory Limited Setup").
    """

    def __init__(self, encoder: Encoder, plan: PackingPlan, checkpointing: Checkpointing = "off") -> None:
        shared: list[object] = list(encoder.embedder.parameters())
        if model := getattr(encoder.embedder, "model", None):
            shared += [model.tokenizer, getattr(model[0], "processor", model.tokenizer), model.model_card_data]
        # The copy shares what is in the memo: `run` replaces trained weights and only reads frozen ones.
        self._module: nn.Module = copy.deepcopy(encoder.embedder, {id(part): part for part in shared})
        if plan.packs and isinstance(self._module, Embedder):
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
        """Return an output of the encoder on other weights, a row for each text or each token, in their order.

        Args:
            weights: values of the trainable weights, in their order; of the embedding matrix, the rows of the slice.
            texts: the texts, laid out.
            output: name of the output.
            bf16: run in bfloat16 where that is safe (torch autocast).
        """
        # A tied weight has one name; `functional_call` puts it into all its places.
        named = dict(zip(self._names, weights, strict=True))
        options = {} if output == "sentence" else {"output": output}

        def once(part: Mapping[str, Any]) -> Tensor:
            with self._lock:
                vectors: Tensor = functional_call(self._module, named, (part,), options)
            return vectors

        def recomputed(part: Mapping[str, Any]) -> Tensor:
            # Not reentrant, as in `Checkpointed`.
            vectors: Tensor = checkpoint(once, part, use_reentrant=False, preserve_rng_state=self._module.training)
            return vectors

        # Without autocast's cache of weights: parts would share a weight in bfloat16 and add its gradients there.
        with torch.autocast(texts.order.device.type, torch.bfloat16, enabled=bf16, cache_enabled=False):
            run = recomputed if self._recomputes and torch.is_grad_enabled() else once
            parts = [run(part) for part in texts.parts]
        # Losses are taken in the precision of the weights; the network alone runs in bfloat16.
        rows = (parts[0] if len(parts) == 1 else torch.cat(parts)).to(weights[0].dtype)
        return texts.in_order(rows, output in BY_TOKEN)


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
