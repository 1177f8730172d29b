"""The training encoder: same embeddings and gradients as the padded one, with less work.

A training step spends most of its time on padding, on rows of the embedding matrix that no text holds, and on waiting.

- `layout`: all tokens of a set stand in one row without padding. Words are numbered within those of the meta-batch, so
  only their rows of the embedding matrix are copied, adapted and given gradients.
- `probe` decides which encoders allow that; texts of others are padded in groups of similar length.
- `attention` runs within each text of a row.
- `network`: the network as a module of its sliced weights, which learn2learn's MAML can wrap.
- `encoder` and `parts`: episodes, or parts of a batch of texts, are computed on threads. Results are in the order of
  the jobs, so sums have the same bits every time.

Nothing here knows a learner. `episode_gradients` and `outer_gradients` in `metasearch.training` put the two together.
"""
