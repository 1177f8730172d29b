"""The training encoder: same embeddings and gradients as the padded one, with less work.

A training step spends most of its time on padding, on rows of the embedding matrix that no text holds, and on waiting.
Four things avoid that, a file each:

- `attention`: texts without padding. All tokens of a set stand in one row. Everything but attention treats tokens one
  by one, and attention runs within each text.
- `plan`, `layout`: which encoders allow that, and how texts are laid out where they do not: padded in groups of similar
  length. Words are numbered within those that the meta-batch holds, so that of the embedding matrix just these rows are
  copied, adapted and given gradients.
- `network`: the encoder's network as a module of its sliced weights, which learn2learn's MAML can wrap.
- `workers`: episodes, or parts of a batch of texts (`parts`), are computed on threads at the same time; results come in
  the order of the jobs, so that sums have the same bits every time.

Nothing here knows a learner. `metasearch.training.outer_gradients` puts the two together.
"""

from metasearch.training.packing.encoder import PackedBatch, PackedEncoder
from metasearch.training.packing.network import Network, PackedModule
from metasearch.training.packing.parts import Parts

__all__ = ["Network", "PackedBatch", "PackedEncoder", "PackedModule", "Parts"]
