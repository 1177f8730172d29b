"""A plain BERT in a model that is open: the facts about it, and its network without transformers.

That network shares the weights of the model.
"""

from collections.abc import Sequence
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling, Transformer
from torch import nn
from transformers.models.bert.modeling_bert import BertModel

from metasearch.encoders.compressed import CompressedModel, FactorisedEmbedding, layers_of
from metasearch.encoders.inputs import TransformerInput, input_of
from metasearch.encoders.low.network import CLS, MEAN, NORMALIZE, NetworkFacts, StoredNetwork


def plain_network(model: SentenceTransformer) -> StoredNetwork | None:
    """Return a network with the weights of a whole model, which it shares; None where that is no plain BERT."""
    read = input_of(model)
    after = modules_after(model, [str(i) for i in range(len(model))])
    network = network_facts(read) if isinstance(read, TransformerInput) and type(read.module) is Transformer else None
    if network is None or after is None:
        return None
    facts = NetworkFacts(**network, after=after)
    return StoredNetwork(facts, _LoadedWeights(read.module.auto_model), lambda i: _LoadedWeights(model[int(i)]))


def network_facts(read: TransformerInput) -> dict[str, Any] | None:
    """Return the facts of a BERT; None for another network."""
    outer, bert = read.module.auto_model, read.backbone
    config = bert.config
    if (
        type(bert) is not BertModel
        or type(outer) not in (BertModel, CompressedModel)
        or config.is_decoder
        or config.hidden_act != "gelu"
        or config._attn_implementation != "sdpa"
        or getattr(config, "position_embedding_type", "absolute") != "absolute"
    ):
        return None
    repeats = getattr(outer.config, "repeats", None) or 1
    return {
        "prefix": "" if outer is bert else "backbone.",
        "layers": len(layers_of(bert)),
        "repeats": repeats,
        "heads": config.num_attention_heads,
        "epsilon": config.layer_norm_eps,
        "factorised": isinstance(bert.get_input_embeddings(), FactorisedEmbedding),
    }


def modules_after(model: SentenceTransformer, places: Sequence[str]) -> tuple[str, ...] | None:
    """Return the modules after the transformer; None where one of them is not supported."""
    found = []
    for i, module in enumerate(list(model)[1:], 1):
        if i == 1 and type(module) is Pooling and module.pooling_mode in (MEAN, CLS) and module.include_prompt:
            found.append(str(module.pooling_mode))
        elif i > 1 and type(module) is Normalize:
            found.append(NORMALIZE)
        elif i > 1 and type(module) is Dense and i < len(places) and _is_linear(module):
            found.append(places[i])
        else:
            return None
    return tuple(found) or None


def _is_linear(module: Any) -> bool:
    plain = isinstance(module.activation_function, nn.Identity) and not module.use_residual
    return plain and module.linear.bias is not None


class _LoadedWeights:
    """The weights of a module by the names that they have in a file; they are shared."""

    def __init__(self, module: nn.Module) -> None:
        self._state: dict[str, torch.Tensor] = module.state_dict()

    def whole(self, name: str) -> torch.Tensor:
        """Return a weight."""
        return self._state[name]

    def table(self, name: str) -> nn.Embedding:
        """Return the matrix with a row for each word."""
        weight = self._state[name]
        return nn.Embedding(weight.shape[0], weight.shape[1], _weight=weight)
