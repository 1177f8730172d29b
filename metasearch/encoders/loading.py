"""Compare a checkpoint's weights with its model: transformers initialises missing ones and ignores the rest."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any

from sentence_transformers import SentenceTransformer
from transformers import PreTrainedModel

from metasearch.errors import EncoderError

log = logging.getLogger(__name__)

_ONE_AT_A_TIME = Lock()
_POOLER = "pooler"
_BUFFERS = ("position_ids", "token_type_ids")
"""Counters that older releases of transformers wrote to files; models make them themselves now."""


@dataclass(frozen=True)
class LoadReport:
    """Load report for one transformer's weights.

    Attributes:
        model: the transformer.
        missing: names of its weights that the checkpoint lacks, which are random now.
        unexpected: names of the checkpoint's weights that the transformer does not know.
    """

    model: Any
    missing: tuple[str, ...]
    unexpected: tuple[str, ...]


@contextmanager
def recorded() -> Iterator[list[LoadReport]]:
    """Collect every transformer loaded inside the context.

    Libraries between here and transformers keep its report of a load to themselves, so its public `from_pretrained` is
    exchanged for one that asks for the report too.
    """
    found: list[LoadReport] = []
    with _ONE_AT_A_TIME:
        before = PreTrainedModel.__dict__["from_pretrained"]

        def reporting(cls: Any, /, *args: Any, output_loading_info: bool = False, **kwargs: Any) -> Any:
            model, info = before.__func__(cls, *args, output_loading_info=True, **kwargs)
            missing, unexpected = (tuple(sorted(info[key])) for key in ("missing_keys", "unexpected_keys"))
            found.append(LoadReport(model, missing, unexpected))
            return (model, info) if output_loading_info else model

        PreTrainedModel.from_pretrained = classmethod(reporting)
        try:
            yield found
        finally:
            PreTrainedModel.from_pretrained = before


def require_fit(what: str, loaded: Sequence[LoadReport], pooled: bool) -> None:
    """Raise `EncoderError` where weights of a transformer are missing, or weights of its own parts are left over.

    Weights beside the transformer, such as the head of a language model, are passed over, and a line says so.

    Args:
        what: was loaded, for messages, such as `encoder 'NAME'`.
        loaded: its transformers, as they were loaded.
        pooled: whether anything depends on their pooler; else it may be missing or left over.
    """
    for each in loaded:
        missing = [key for key in each.missing if pooled or not _is_pooler(key)]
        left = [key for key in each.unexpected if key.rpartition(".")[2] not in _BUFFERS and not _is_pooler(key)]
        own = {key.partition(".")[0] for key in each.model.state_dict()}
        # With every weight under another name, what is left over tells what is wrong.
        unexpected = left if missing else [key for key in left if key.partition(".")[0] in own]
        if missing or unexpected:
            said = [_join(keys, how) for keys, how in ((missing, "missing"), (unexpected, "unexpected")) if keys]
            why = ", and random numbers in their place would give meaningless scores" if missing else ""
            raise EncoderError(
                f"{what} cannot be loaded: its weights do not fit its config.json: {'; '.join(said)}{why}. Were its "
                "files changed, or written by another program?"
            )
        if left:
            log.warning("%s: %s, passed over", what, _join(left, "beside the encoder"))


def uses_pooler(model: SentenceTransformer) -> bool:
    """Return whether a model's embeddings use the transformer's pooler."""
    settings = getattr(model[0], "modality_config", None) or {}
    outputs = [params.get("method_output_name") for params in settings.values() if isinstance(params, dict)]
    return any("pooler_output" in ([name] if isinstance(name, str) else name or ()) for name in outputs)


def _join(keys: Sequence[str], what: str) -> str:
    """Return such as `2 weights missing, the first 'encoder.layer.0.output.dense.bias'`."""
    return f"{len(keys)} weight{'s' * (len(keys) > 1)} {what}, the first '{keys[0]}'"


def _is_pooler(key: str) -> bool:
    return _POOLER in key.split(".")
