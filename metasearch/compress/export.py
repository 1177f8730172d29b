"""A stock model that computes what a compressed encoder does, for use where metasearch is not installed.

The word table is multiplied out and each layer is written down as often as it runs, so what compression saved is lost.

A row of the table is computed by the encoder's own embedding module. Matrix libraries add up in another order for a
batch of very few tokens, so that its vectors may differ from the table's rows in the last bit of a float32, just as the
encoder's own vectors of a text may differ between batches of other sizes. Layers are the same to the bit.
"""

import copy

from torch import nn

from metasearch.compress.student import with_transformer
from metasearch.encoders._compressed import CompressedModel, layers_of
from metasearch.encoders._factorised import FactorisedEmbedding
from metasearch.encoders.base import Encoder


def is_compressed(encoder: Encoder) -> bool:
    """Return whether an encoder needs metasearch to be loaded."""
    return isinstance(encoder.model[0].auto_model, CompressedModel)


def plain(encoder: Encoder) -> Encoder:
    """Return a stock encoder that computes the same; one that is stock already is returned as it is.

    Pooling, further modules, prompts, tokenizer and lengths stay.
    """
    if not is_compressed(encoder):
        return encoder
    backbone = copy.deepcopy(encoder.model[0].auto_model.backbone)
    table = backbone.get_input_embeddings()
    if isinstance(table, FactorisedEmbedding):
        rows = table.multiplied_out()
        words, width = rows.shape
        backbone.set_input_embeddings(nn.Embedding(words, width, padding_idx=table.padding_idx, _weight=rows))
    owner = layers_of(backbone)
    owner.layer = nn.ModuleList([copy.deepcopy(layer) for layer in owner.layer])
    return Encoder(with_transformer(encoder.model, backbone), encoder.name, encoder.max_length)
