"""What a step has to compute, and how fast this machine multiplies matrices of that shape."""

import statistics
from collections.abc import Iterator, Sequence

import torch

from benchmarks.common.clock import clock
from metasearch.config.recipe import Recipe
from metasearch.encoders.encoder import Encoder
from metasearch.episodes.episode import Episode, LabelledSet

FORWARD_AND_BACKWARD = 3
"""Units of a forward pass: the backward pass has two products for each one of the forward pass."""


def flops(encoder: Encoder, recipe: Recipe, batch: Sequence[Episode]) -> float:
    """Return the floating-point operations of the matrix products in one first-order step of MAML or MAML-Align.

    One forward pass over the distinct texts of a set, of l tokens each and N = Σ l in all, special tokens included and
    padding not, takes in a model of L layers of width H with I between the linears of a block

        2 N (4 H² + 2 H I) L    for queries, keys, values, output and the two linears of the block
        4 Σ l² H L              for the scores of attention and the sum that they weigh

    and a backward pass twice that. MAML has n of both on the support set and one on the query set. MAML-Align has n on
    X, on Y one at the teacher's weights and n′ (at least 1) at the student's, of which the first is its loss on Y, and
    one on Z. All other work (embedding, softmax, GELU, LayerNorm, optimiser, padding, repeated texts) counts as
    nothing.
    """
    config = encoder.model[0].auto_model.config
    width, layers, inner = config.hidden_size, config.num_hidden_layers, config.intermediate_size
    total = 0.0
    for examples, passes in _passes(recipe, batch):
        lengths = lengths_of(encoder, examples)
        linear = 2 * sum(lengths) * (4 * width**2 + 2 * width * inner) * layers
        attention = 4 * sum(length**2 for length in lengths) * width * layers
        total += FORWARD_AND_BACKWARD * passes * (linear + attention)
    return total


def lengths_of(encoder: Encoder, examples: LabelledSet) -> list[int]:
    """Return the tokens of each distinct text of a set of triplets."""
    questions = dict.fromkeys(t.question.text for t in examples.examples)
    candidates = dict.fromkeys(c.text for t in examples.examples for c in (t.positive, t.negative))
    lengths = [*encoder.lengths(list(questions), "question"), *encoder.lengths(list(candidates), "candidate")]
    return [int(length) for length in lengths]


def rate(
    encoder: Encoder, tokens: int, threads: int, repeats: int, device: str = "cpu", dtype: torch.dtype = torch.float32
) -> float:
    """Return the operations per second of the linears' products, forward and backward, for so many tokens.

    Products are `(N, K) (K, M)` for the output, `(N, M) (M, K)` for the gradient of the input and `(M, N) (N, K)` for
    that of the weight, with (K, M) of the four H×H linears of attention and of H×I and I×H; each counts with its
    operations.
    """
    config = encoder.model[0].auto_model.config
    width, inner = config.hidden_size, config.intermediate_size
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        seconds = operations = 0.0
        for given, made, count in ((width, width, 4), (width, inner, 1), (inner, width, 1)):
            seconds += count * _seconds(tokens, given, made, repeats, torch.device(device), dtype)
            operations += count * FORWARD_AND_BACKWARD * 2 * tokens * given * made
    finally:
        torch.set_num_threads(before)
    return operations / seconds


def _seconds(tokens: int, given: int, made: int, repeats: int, device: torch.device, dtype: torch.dtype) -> float:
    """Return the median time of the three products of a linear."""
    sizes = (tokens, given), (made, given), (tokens, made)
    x, weight, gradient = (torch.randn(size, device=device, dtype=dtype) for size in sizes)
    taken = []
    for _ in range(repeats + 1):
        began = clock(device)
        _, _, _ = x @ weight.T, gradient @ weight, gradient.T @ x
        taken.append((clock(device) - began)[0])
    return float(statistics.median(taken[1:]))


def _passes(recipe: Recipe, batch: Sequence[Episode]) -> Iterator[tuple[LabelledSet, int]]:
    """Yield each set with its number of forward and backward passes."""
    steps = recipe.options["inner_steps"]
    for episode in batch:
        if recipe.learner == "maml-align":
            x, y, z = episode.sets
            yield from ((x, steps), (y, 1 + max(1, recipe.options["student_inner_steps"])), (z, 1))
        else:
            for support, query in episode.transfers():
                yield from ((support, steps), (query, 1))
