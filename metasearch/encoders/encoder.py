"""The one wrapper around a sentence encoder that everything above works with.

Notation used for tensor shapes: B texts in a batch, T tokens, D dimensions of an embedding.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from metasearch.config.precision import Chosen, EncodingPrecision
from metasearch.config.roles import MaxLength, Role, public_name
from metasearch.data.formats.given import list_texts
from metasearch.encoders.device import fast_in_bfloat16
from metasearch.encoders.features import Features, Output, TextReader
from metasearch.encoders.lengths import BATCH_TOKENS, complete, encode_in_batches
from metasearch.encoders.prompts import Prompted, prompt_of, unused_prompts, written_out
from metasearch.errors import EncoderError, require_known

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from metasearch.encoders.adapter import MatrixAdapter, PlanAdapter
    from metasearch.encoders.inputs import TransformerInput
    from metasearch.encoders.low.base import LowNetwork

# What needs sentence-transformers is imported where it is used: a search has an encoder that does without.

log = logging.getLogger(__name__)

_LOW_BATCH_TOKENS = 2048
"""Tokens of a batch in bfloat16 on a CPU, where products are so fast that calls count more."""
_GPU_BATCH_TEXTS = 1024
"""Texts of a batch on a GPU, at most."""
_GPU_BATCH_TOKENS = 16_384
"""Tokens of a batch on a GPU, where a batch costs as much time to launch as to compute if it is smaller."""
_TOKENISED_AT_ONCE = 4096
_REMEMBERED = 2**19
"""Texts whose tokens are remembered; half a kilobyte each."""
_WORTH_IT = 8_000_000
"""Weights of linear layers below which an encoder is fast anyway, and `auto` leaves it in float32."""


class Embedder(nn.Module):
    """The trainable part of an encoder as one differentiable module: features in, unit vectors out."""

    def __init__(self, model: "SentenceTransformer") -> None:
        from metasearch.encoders.checks import require_independence

        super().__init__()
        self.model = model
        self.eval()
        require_independence(model, lambda features: self(features, "pooled"))

    def forward(self, features: Features, output: Output = "sentence") -> Tensor:
        """Return unit vectors `(B, D)`, or another output."""
        from sentence_transformers.sentence_transformer.modules import Normalize

        from metasearch.encoders.inputs import input_of

        read = input_of(self.model)
        if output not in ("sentence", "pooled"):
            return read.hidden(features, output)
        state = read.forward(features)
        modules = list(self.model)[1:]
        # One may stand before a linear map, too; the pooled vector is what the last one is given.
        while output == "pooled" and modules and isinstance(modules[-1], Normalize):
            modules.pop()
        for module in modules:
            state = module(state)
        if "sentence_embedding" not in state:
            raise EncoderError("its modules return only token embeddings; a Pooling module is missing")
        embeddings: Tensor = state["sentence_embedding"]
        return embeddings


class Encoder:
    """A sentence-transformers model with task lengths, prepared for training.

    Vectors are L2-normalised: a `Normalize` module is added if the model does not end in one. The model's own prompts
    are put before texts (`metasearch.encoders.prompts`).

    Args:
        model: the model; its first module must be a transformer with a tokenizer. The encoder shares its modules, and
            trains their weights; the model itself keeps its modules and settings.
        name: name of the encoder in results.
        max_length: longest inputs in tokens, at most the model's maximum. By default the saved lengths.

    Raises:
        EncoderError: the model's first module is another, it has an unmerged PEFT adapter, its modules do not fit
            each other, sentence-transformers would give other vectors, or padding or other texts change a vector.
    """

    model: "SentenceTransformer"
    embedder: Embedder
    adapter: "MatrixAdapter | PlanAdapter | None" = None
    """What maps its query vectors, if anything (`metasearch.encoders.adapted`)."""

    def __init__(self, model: "SentenceTransformer", name: str = "model", max_length: MaxLength | None = None) -> None:
        from metasearch.encoders.checks import normalised, require_alike
        from metasearch.encoders.inputs import input_of

        try:
            own = input_of(model).lengths
            require_alike(model)
            model = normalised(model, name)
            self.embedder = Embedder(model)
        except EncoderError as error:
            raise EncoderError(f"{name}: {error}") from error
        if unused := unused_prompts(model):
            log.warning(
                "%s: no text is read with its prompts %s; choose them with --prompt query=... or --prompt document=...",
                name, ", ".join(map(repr, unused)),
            )  # fmt: skip
        self.model = model
        self._begin(name, complete(max_length, own), input_of(model), self.embedder, model)
        self._pools_prompts = all(getattr(module, "include_prompt", True) for module in model)

    def _begin(
        self, name: str, max_length: MaxLength, reader: TextReader, network: nn.Module, prompted: Prompted
    ) -> None:
        self.name = name
        self.max_length = max_length
        self.reader = reader
        self.network = network
        """What encodes: features and an output in, as `Embedder`."""
        self._prompted, self._pools_prompts = prompted, True
        # One array `(columns, T)` for each text: lists of numbers would take ten times the memory.
        self._tokens: dict[tuple[Role, str], NDArray[np.int32]] = {}
        self._reported: set[Role] = set()
        """Roles whose truncation was reported."""
        self.columns: tuple[str, ...] = ()
        """What the tokenizer gives for each token, such as `input_ids`; known once a text was tokenised."""
        self.on_progress: Callable[[int, int], None] | None = None
        """Hears after each batch of `encode` how many of its texts are done, and how many there are."""
        self.origin = ""
        """Fingerprint of the checkpoint that it was opened from; empty where nobody took it."""
        self.seeded = False
        """Whether its weights are drawn from a seed."""
        self.precision: Chosen = "float32"
        """What `encode` computes in; `choose_precision` changes it. Training always uses the weights in float32."""
        self._low: LowNetwork | None = None

    @property
    def input(self) -> "TransformerInput":
        """The model's input module."""
        from metasearch.encoders.inputs import input_of

        return input_of(self.model)

    @property
    def neutral(self) -> bool:
        """Whether it ends in a language-neutral projection: unit vectors, a square linear map, unit vectors."""
        from sentence_transformers.sentence_transformer.modules import Dense, Normalize

        last = list(self.model)[-3:]
        return (
            [type(module) for module in last] == [Normalize, Dense, Normalize]
            and isinstance(last[1].activation_function, nn.Identity)
            and last[1].in_features == last[1].out_features
            and not last[1].use_residual
        )

    @property
    def centred(self) -> bool:
        """Whether queries and documents go through the centres of an index."""
        return False

    @property
    def maps_queries(self) -> bool:
        """Whether queries go through a map of their own."""
        return False

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.network.parameters()).device

    @property
    def parameter_count(self) -> int:
        """Number of weights; shared ones count once."""
        return sum(parameter.numel() for parameter in self.embedder.parameters())

    @property
    def size(self) -> int:
        """Bytes of its weights; shared ones count once."""
        return sum(parameter.nbytes for parameter in self.embedder.parameters())

    @property
    def fingerprint(self) -> str:
        """Hash of everything that affects its embeddings: weights, architecture, tokenizer, prompts."""
        from metasearch.encoders.fingerprint import fingerprint

        return fingerprint(self.whole)

    @property
    def whole(self) -> "SentenceTransformer":
        """The model, for saving."""
        return self.model

    def dimension(self, output: Output = "sentence") -> int:
        """Return an output's width; `EncoderError` if the encoder does not have it, `ConfigError` if none has."""
        require_known("output", output, get_args(Output))
        if output in ("sentence", "pooled"):
            return int(self.model.get_embedding_dimension())
        return self.input.width

    def to(self, device: str | torch.device) -> "Encoder":
        """Move the weights; returns itself."""
        self.network.to(device)
        return self

    def choose_precision(self, asked: EncodingPrecision, tried: bool = False) -> "Encoder":
        """Let `encode` compute in another precision; returns itself.

        `auto` takes bfloat16 on a CPU that is faster in it, for an encoder that is not fast anyway. An encoder that
        cannot be converted stays in float32, which a line says unless `auto` was asked. On a GPU, bfloat16 is torch's
        autocast. One that was `tried`, such as that of an index, is converted when the first text is encoded.

        Raises:
            ConfigError: there is no precision of that name.
        """
        from metasearch.encoders.low.base import tried as convert

        require_known("precision", asked, get_args(EncodingPrecision))
        self.precision, self._low = "float32", None
        if asked == "auto":
            worth_it = self.device.type == "cpu" and _layer_weights(self.network) >= _WORTH_IT
            wanted = "bfloat16" if worth_it and fast_in_bfloat16() else "float32"
        else:
            wanted = asked
        if wanted == "float32":
            return self
        if self.device.type != "cpu":
            self.precision = "bfloat16"
            return self
        if not fast_in_bfloat16():
            log.warning("--precision %s may be slower than float32 on this CPU", wanted)
        if tried:
            self.precision = "bfloat16"
            return self
        found = convert(self.reader, self.network, self._converted)
        if isinstance(found, str):
            if asked != "auto":
                log.warning("%s: encodes in float32, not %s: %s", self.name, asked, found)
            return self
        self.precision, self._low = "bfloat16", found
        return self

    def _converted(self) -> "LowNetwork":
        """Return a converted network of present weights."""
        from metasearch.encoders.low.any_network import converted

        return converted(self.embedder)

    def limit(self, role: Role) -> int:
        """Return the longest input in tokens for a role: the task's, or the model's where that is shorter."""
        return min(int(getattr(self.max_length, role)), self.reader.longest)

    def prompt(self, role: Role) -> str:
        """Return the prompt for a role; `EncoderError` if pooling would skip its tokens."""
        prompt = prompt_of(self._prompted, role)
        if prompt and not self._pools_prompts:
            name = public_name(role)
            raise EncoderError(
                f"{self.name}: its pooling leaves out the tokens of prompts (include_prompt: false), which is not "
                f"supported, and '{prompt}' stands before each {name}; take its prompts away with --prompt {name}="
            )
        return prompt

    def features(self, texts: Iterable[str], role: Role) -> dict[str, Tensor]:
        """Return texts as padded tensors `(B, T)` on the weights' device, T the longest of them."""
        return self.padded(self.tokens(texts, role))

    def padded(self, rows: Sequence[NDArray[np.int32]]) -> dict[str, Tensor]:
        """Return padded token tensors `(B, T)` on the weights' device."""
        return {key: value.to(self.device) for key, value in self.reader.padded(self.columns, rows).items()}

    def tokens(self, texts: Iterable[str], role: Role) -> list[NDArray[np.int32]]:
        """Return each text's tokens `(columns, length)`, with special tokens, truncated at the role's limit.

        The tokens of half a million texts are cached. Errors as `list_texts`.
        """
        texts = list_texts(texts)
        distinct = dict.fromkeys(texts)
        if len(self._tokens) + len(distinct) > _REMEMBERED:
            self.forget()
        # Another thread may clear the cache meanwhile.
        found = {text: row for text in distinct if (row := self._tokens.get((role, text))) is not None}
        new = [text for text in distinct if text not in found]
        prompt = self.prompt(role)
        limit = self.limit(role) if new else 0
        # A tokenizer holds far more of each text than its ids until all of its texts are done.
        for start in range(0, len(new), _TOKENISED_AT_ONCE):
            chunk = new[start : start + _TOKENISED_AT_ONCE]
            encoded = self.reader.tokenise([prompt + text for text in chunk], limit)
            self.columns = tuple(encoded)
            for i, text in enumerate(chunk):
                row = np.array([values[i] for values in encoded.values()], np.int32)
                found[text] = self._tokens[role, text] = row
        if role not in self._reported:
            self._log_truncation({text: found[text] for text in new}, role)
        return [found[text] for text in texts]

    def is_truncated(self, texts: Iterable[str], role: Role) -> NDArray[np.bool_]:
        """Return which texts are truncated at the role's limit, `(N,)`; the caller reports it instead of the log."""
        self._reported.add(role)
        limit, texts = self.limit(role), list_texts(texts)
        truncated = self.lengths(texts, role) >= limit
        # A text of exactly as many tokens as the limit is read to its end.
        if full := np.flatnonzero(truncated).tolist():
            prompt = self.prompt(role)
            more = self.reader.tokenise([prompt + texts[i] for i in full], limit + 1)["input_ids"]
            truncated[full] = [len(tokens) > limit for tokens in more]
        return truncated

    def _log_truncation(self, texts: Mapping[str, NDArray[np.int32]], role: Role) -> None:
        """Log the number of truncated texts, given their tokens, once per role."""
        limit = self.limit(role)
        full = [text for text, row in texts.items() if row.shape[1] == limit]
        if full and (count := int(self.is_truncated(full, role).sum())):
            log.info("%s: %d of %d %ss are truncated at %d tokens", self.name, count, len(texts), role, limit)
        else:
            self._reported.discard(role)

    def lengths(self, texts: Iterable[str], role: Role) -> NDArray[np.int64]:
        """Return each text's number of tokens, with special tokens, truncated at the role's limit."""
        texts = list_texts(texts)
        # In parts: the tokens of a large corpus would fill the memory.
        starts = range(0, max(len(texts), 1), _REMEMBERED // 2)
        parts = (self.tokens(texts[start : start + _REMEMBERED // 2], role) for start in starts)
        return np.array([row.shape[1] for part in parts for row in part], dtype=np.int64)

    def forget(self) -> None:
        """Clear the cache of tokens: millions of texts would fill the memory."""
        self._tokens.clear()

    def encode(
        self, texts: Iterable[str], role: Role, output: Output = "sentence", batch_size: int = 64
    ) -> NDArray[np.float32]:
        """Return vectors `(len(texts), D)` with the current weights, without gradients and dropout.

        Each distinct text is encoded once, in batches of texts of similar length: at most `batch_size` texts and about
        1,024 tokens on a CPU, more in low precision or on a GPU. The output `states`, which has a row for each token,
        is a `ValueError`; other errors as `metasearch.data.formats.given.list_texts`.
        """
        dimension = self.dimension(output)
        if output == "states":
            raise ValueError("output states has a row for each token, not for each text")
        texts = list_texts(texts)
        distinct = list(dict.fromkeys(texts))
        if not distinct:
            return np.zeros((0, dimension), np.float32)
        lengths, network = self.lengths(distinct, role), self.network

        def embed(numbers: list[int]) -> NDArray[np.float32]:
            chosen = [distinct[i] for i in numbers]
            if self.precision != "float32" and output != "embedding":
                return self._in_low_precision(chosen, role, output)
            features = self.features(chosen, role)
            return self._repeatable(lambda: network(features, output).float().cpu().numpy())

        training = network.training
        network.eval()
        on_cpu = self.device.type == "cpu"
        tokens = BATCH_TOKENS if self.precision == "float32" else _LOW_BATCH_TOKENS
        most = (batch_size, tokens) if on_cpu else (max(batch_size, _GPU_BATCH_TEXTS), _GPU_BATCH_TOKENS)
        with torch.no_grad():
            vectors = encode_in_batches(lengths, embed, *most, self.on_progress)
        # A dev score may be taken in the middle of training, which keeps its mode.
        network.train(training)
        place = {text: i for i, text in enumerate(distinct)}
        return vectors[[place[text] for text in texts]]

    def _in_low_precision(self, texts: Sequence[str], role: Role, output: Output) -> NDArray[np.float32]:
        """Return vectors of one batch; on a CPU of the converted network, of present weights."""
        if self.device.type != "cpu":
            with torch.autocast(self.device.type, torch.bfloat16):
                found: Tensor = self.network(self.features(texts, role), output)
            return found.float().cpu().numpy()
        low = self._low
        if low is None or not low.is_current:
            try:
                self._low = low = self._converted()
            except EncoderError as error:
                stale = f"an index with vectors in {self.precision} has to be made again, in another folder"
                raise EncoderError(f"{self.name}: {error}; {stale}") from None
        rows = self.tokens(texts, role)
        return low.vectors(self.columns, rows, output).numpy()

    def _repeatable(self, compute: Callable[[], NDArray[np.float32]]) -> NDArray[np.float32]:
        """Compute vectors; `EncoderError` if random numbers change them, as in Reformer."""
        state = torch.get_rng_state()
        found = compute()
        # Another thread may have drawn them, so the result decides.
        if not torch.equal(state, torch.get_rng_state()) and not np.array_equal(found, compute(), equal_nan=True):
            raise EncoderError(f"{self.name}: its embeddings change from one call to the next, with random numbers")
        return found

    def encode_query(self, texts: Iterable[str], batch_size: int = 64) -> NDArray[np.float32]:
        """Return query vectors, `(len(texts), D)`, as `encode` does."""
        return self.encode(texts, "question", batch_size=batch_size)

    def encode_document(self, texts: Iterable[str], batch_size: int = 64) -> NDArray[np.float32]:
        """Return document vectors, `(len(texts), D)`, as `encode` does."""
        return self.encode(texts, "candidate", batch_size=batch_size)

    def save(self, folder: Path) -> None:
        """Write the model so that plain `SentenceTransformer(folder)` loads it and encodes as this encoder does.

        Plain sentence-transformers does not remove invisible characters, and truncates all texts at the longest length
        of any role; a line says so if the roles differ. `open_checkpoint` restores the length of each role.
        """
        limits: dict[Role, int] = {role: self.limit(role) for role in get_args(Role)}
        if not self.input.cut_at(limits):
            each = ", ".join(f"{role} {limit}" for role, limit in limits.items())
            log.warning(
                "%s: %s: sentence-transformers will cut all texts at %d tokens, and not each role at its own: %s",
                folder, self.name, max(limits.values()), each,
            )  # fmt: skip
        self.write(folder)

    def write(self, folder: Path) -> None:
        """Write the model with its own lengths, for sentence-transformers 3 to 6 and model servers."""
        from metasearch.encoders.saved_layout import write_older_layout

        folder = Path(folder)  # callers of the Python interface pass texts, too
        model = self.whole
        model.prompts = written_out(model)
        model.save_pretrained(str(folder), create_model_card=False)
        write_older_layout(model, folder)


def require_plain(encoder: Encoder, what: str) -> None:
    """Raise `EncoderError` where an encoder has an adapter, which `what` would lose."""
    if encoder.adapter is not None:
        raise EncoderError(f"encoder '{encoder.name}' has a query adapter, which {what} does not support")


def _layer_weights(network: nn.Module) -> int:
    """Return how many weights the linear layers have; a layer that runs several times counts once."""
    return sum(each.weight.numel() for each in network.modules() if type(each) is nn.Linear)
