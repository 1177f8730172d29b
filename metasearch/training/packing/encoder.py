"""An encoder that is packed, sliced and run by several threads."""

import copy
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from threading import Lock, local
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.utils.checkpoint import checkpoint

from metasearch.algorithms.inner_loop import Gradient
from metasearch.config.run import Checkpointing
from metasearch.encoders.encoder import Embedder, Encoder, Output
from metasearch.encoders.inputs import input_of
from metasearch.training.distributed import GradientSum, of_rows
from metasearch.training.packing.layout import (
    ATTENTION,
    Group,
    PackedTexts,
    PackingPlan,
    lay_out,
    packing_plan,
    token_rows,
)


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
        model = encoder.embedder.model
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


Job = TypeVar("Job")
Result = TypeVar("Result")


class Workers:
    """Threads, each with its own network from `make`."""

    def __init__(self, make: Callable[[], Network]) -> None:
        self._make = make
        self._networks: list[Network] = [make()]

    def each(self, jobs: Sequence[Job], work: Callable[[Network, Job], Result], most: int) -> Iterator[Result]:
        """Yield what `work` returns for each job, in their order, by `most` threads; by the caller's own if it is 1."""
        count = min(len(jobs), most)
        if count <= 1:
            yield from (work(self._networks[0], job) for job in jobs)
            return
        while len(self._networks) < count:
            self._networks.append(self._make())
        # Together they have as many threads of operations as the caller alone, whose own number is a setting of it.
        before = torch.get_num_threads()
        threads, own, networks = max(1, before // count), local(), iter(self._networks)

        def begin() -> None:
            torch.set_num_threads(threads)
            own.network = next(networks)

        waiting: deque[Future[Result]] = deque()
        # At its end the pool waits: a network that still runs must not be given to the next jobs.
        with ThreadPoolExecutor(count, "metasearch-worker", begin) as pool:
            try:
                for job in jobs:
                    # One more than there are threads: none is idle, and few results wait for their turn.
                    if len(waiting) > count:
                        yield waiting.popleft().result()
                    waiting.append(pool.submit(lambda job: work(own.network, job), job))
                while waiting:
                    yield waiting.popleft().result()
            finally:
                # Also when a job failed, or the caller stopped half-way.
                pool.shutdown(cancel_futures=True)
                # What a worker sets is also the number of each thread that anyone starts later.
                torch.set_num_threads(before)

    def train(self, mode: bool) -> None:
        """Turn dropout on or off."""
        for network in self._networks:
            network.train(mode)


_DEFAULT_WORKERS = 4
"""Most jobs at the same time by default; more would cost memory, and idle threads share each operation's work."""


class PackedEncoder:
    """State kept between meta-batches for an encoder.

    Args:
        encoder: the encoder to train.
        workers: most jobs at the same time; by default as many as torch has threads, up to four, and one on a GPU.
    """

    def __init__(self, encoder: Encoder, workers: int | None = None) -> None:
        self.encoder = encoder
        self.plan = packing_plan(encoder)
        trainable = {name: weight for name, weight in encoder.embedder.named_parameters() if weight.requires_grad}
        self.names, self.weights = list(trainable), list(trainable.values())
        self.most_workers = workers
        self._checkpointing: Checkpointing = "off"
        self._workers = Workers(partial(Network, encoder, self.plan))

    def checkpoint(self, what: Checkpointing) -> None:
        """Recompute `layers`, or with `gradcache` a few texts at a time, in the next batches' backward passes."""
        what = "off" if what == "auto" else what
        if what != self._checkpointing:
            self._checkpointing = what
            self._workers = Workers(partial(Network, self.encoder, self.plan, what))

    def lay_out(self, groups: Sequence[Group]) -> "PackedBatch":
        """Lay out text groups, with roles, on one slice of the embedding matrix."""
        most = most_tokens(self.encoder.device) if self._checkpointing == "gradcache" else None
        return PackedBatch(self, *lay_out(self.encoder, self.plan, groups, most))

    def each(self, jobs: Sequence[Job], work: Callable[[Network, Job], Result]) -> Iterator[Result]:
        """Yield each job's result, in their order; several run at the same time."""
        # Networks of threads are copies, so a change of the encoder's mode does not reach them by itself.
        self._workers.train(self.encoder.embedder.training)
        return self._workers.each(jobs, work, self.workers)

    @property
    def workers(self) -> int:
        """Most jobs at the same time; one with dropout, whose random numbers are drawn in order."""
        if self.encoder.embedder.training or self.encoder.device.type != "cpu":
            return 1
        return self.most_workers or min(_DEFAULT_WORKERS, torch.get_num_threads())


class PackedBatch:
    """Text groups to encode together, on a slice of the embedding matrix with these rows; None for all rows."""

    def __init__(self, packed: PackedEncoder, texts: Sequence[PackedTexts], rows: Tensor | None) -> None:
        self.packed, self.texts, self.rows = packed, texts, rows

    def cut(self, values: Sequence[Tensor]) -> list[Tensor]:
        """Cut the embedding matrix to the slice, in one or several lists of all weights or their values."""
        return [value.detach()[self.rows] if self._is_sliced(i) else value.detach() for i, value in enumerate(values)]

    def spread(self, gradient: Sequence[Tensor | None]) -> list[Tensor | None]:
        """Return a gradient in `cut` values for the whole tensors; the slice's is a sparse tensor with these rows."""
        return [self._whole(one) if self._is_sliced(i) else one for i, one in enumerate(gradient)]

    def _is_sliced(self, place: int) -> bool:
        return self.rows is not None and place % len(self.packed.weights) == self.packed.plan.table

    def _whole(self, gradient: Tensor | None) -> Tensor | None:
        """Return the slice's gradient for the whole matrix; sparse where devices support it."""
        if gradient is None:
            return None
        assert self.rows is not None
        assert self.packed.plan.table is not None
        table = self.packed.weights[self.packed.plan.table]
        if table.device.type not in ("cpu", "cuda"):
            return torch.zeros_like(table).index_copy_(0, self.rows, gradient)
        # Rows are ascending and distinct.
        return of_rows(gradient, self.rows, table.shape)


def most_tokens(device: torch.device) -> int:
    """Return about how many tokens are computed at a time where passes are recomputed; calls cost more on a GPU."""
    return 1024 if device.type == "cpu" else 8192


_LEAST = 256
"""Least tokens of a part: fewer are not worth a thread."""


class Parts:
    """Texts in as many parts as there are workers, with about as many tokens each.

    A loss L may compare any text with any other, so it needs the outputs v_1, …, v_P of all P parts at once. Its
    gradient is Σ_p (∂v_p/∂θ)ᵀ ∂L/∂v_p: each part keeps its graph until ∂L/∂v_p is known, and goes backward on its own
    thread (gradient caching, Gao et al. 2021).
    """

    def __init__(self, packed: PackedEncoder, texts: Sequence[str], output: Output, bf16: bool = False) -> None:
        parts = cut(packed.encoder, texts, packed.workers)
        self.batch = packed.lay_out([[("text", texts[i]) for i in part] for part in parts])
        self._output, self._bf16 = output, bf16
        order = [i for part in parts for i in part]
        # The argsort of a permutation is its inverse.
        rows = torch.from_numpy(place := np.argsort(order))
        if output == "states":
            rows = token_rows(place, packed.encoder.lengths([texts[i] for i in order], "text"))
        self._rows = rows.to(packed.encoder.device)

    def outputs(self, weights: Sequence[Tensor]) -> Tensor:
        """Return the outputs for weights from `PackedBatch.cut`, without gradients and dropout."""

        def run(network: Network, texts: PackedTexts) -> Tensor:
            # `each` has set the learner's mode, and sets it again before the next pass.
            network.train(False)
            with torch.no_grad():  # a setting of each thread
                return network.run(weights, texts, self._output, self._bf16)

        return self._joined(list(self.batch.packed.each(self.batch.texts, run)))

    def begin(self, weights: Sequence[Tensor]) -> tuple[Tensor, Callable[[Tensor], Gradient]]:
        """Return the outputs, a row for each text or token, and the backward pass.

        The backward pass turns ∂L/∂outputs into the gradient in the weights, summed in the order of the parts.
        """

        def forward(network: Network, texts: PackedTexts) -> tuple[Sequence[Tensor], Tensor]:
            # `detach` shares the memory: leaves for each part cost nothing.
            leaves = [weight.detach().requires_grad_() for weight in weights]
            return leaves, network.run(leaves, texts, self._output, self._bf16)

        def backward(network: Network, part: tuple[Sequence[Tensor], Tensor, Tensor]) -> Gradient:
            leaves, rows, pulled = part
            return list(torch.autograd.grad(rows, leaves, pulled, allow_unused=True))

        each = self.batch.packed.each
        done = list(each(self.batch.texts, forward))

        def back(pulled: Tensor) -> Gradient:
            shares = self._apart(pulled, [len(outputs) for _, outputs in done])
            total = GradientSum(len(weights))
            for gradient in each([(*part, share) for part, share in zip(done, shares, strict=True)], backward):
                total.add(gradient)
            return total.gradient

        return self._joined([outputs.detach() for _, outputs in done]), back

    def _apart(self, outputs: Tensor, sizes: list[int]) -> Sequence[Tensor]:
        """Return each part's rows, as the inverse to `_joined`."""
        return torch.split(outputs[self._rows.argsort()], sizes)

    def _joined(self, rows: Sequence[Tensor]) -> Tensor:
        return torch.cat(list(rows))[self._rows]


def cut(encoder: Encoder, texts: Sequence[str], count: int, least: int = _LEAST) -> list[list[int]]:
    """Return text numbers for up to `count` parts with about `least` tokens or more, in ascending length."""
    if count < 2 or len(texts) < 2:
        return [list(range(len(texts)))]
    lengths = encoder.lengths(texts, "text")
    # numpy's default sort may put equal lengths in any order, and so texts into other parts.
    order = np.argsort(lengths, kind="stable")
    ends = np.cumsum(lengths[order])
    count = max(1, min(count, int(ends[-1]) // least))
    # A text across a border belongs to the part in which its middle lies.
    number = ((ends - lengths[order] / 2) * count // ends[-1]).astype(int)
    parts = [order[number == i].tolist() for i in range(count)]
    # A text longer than the share of a part can leave the next one empty.
    return [part for part in parts if part]
