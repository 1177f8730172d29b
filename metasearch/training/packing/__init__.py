"""The training encoder: same embeddings and gradients as the padded one, with less work.

A training step spends most of its time on padding, on rows of the embedding matrix that no text holds, and on waiting.

- `layout`: all tokens of a set stand in one row without padding, and attention runs within each text. A probe decides
  which encoders allow that; texts of others are padded in groups of similar length. Words are numbered within those of
  the meta-batch, so only their rows of the embedding matrix are copied, adapted and given gradients.
- `encoder`: the network as a module of its sliced weights, which learn2learn's MAML can wrap. Episodes, or parts of a
  batch of texts, are computed on threads; results come in the order of the jobs, so sums have the same bits every time.

Nothing here knows a learner. `metasearch.training.outer_gradients` puts the two together.
"""

from metasearch.training.packing.encoder import Network, PackedBatch, PackedEncoder, PackedModule, Parts

__all__ = ["Network", "PackedBatch", "PackedEncoder", "PackedModule", "Parts"]
