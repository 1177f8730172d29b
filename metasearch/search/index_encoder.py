"""The encoder of an index as its searches use it: with prompts, projection and query adapter."""

import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from metasearch.compress.standard import plain
from metasearch.config import yaml
from metasearch.encoders.adapted import AdaptedEncoder
from metasearch.encoders.adapter import MatrixAdapter, PlanAdapter
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.load import load_encoder
from metasearch.search.index.plan import SearchPlan
from metasearch.search.index.stores import open_store
from metasearch.search.settings import IndexSettings

log = logging.getLogger(__name__)


def load_index_encoder(index: str | Path, trust_remote_code: bool = False) -> tuple[Encoder, str, str]:
    """Return the encoder of an index as a standard model, and what it has of the index: in a sentence, and as a list.

    Texts of every role go through the projection of the index, and queries also through the map of its
    translations and the adapter in use.

    Raises:
        RunFolderError: there is no such index, or it is damaged.
        EncoderError: the encoder cannot be loaded, is another one, or has an adapter beside the projection or adapter
            of the index.
    """
    store = open_store(index)
    settings = yaml.check(store.kind.settings, IndexSettings, f"settings of {store.name}")
    encoder = load_encoder(
        store.kind.encoder, prompts=settings.prompts, device="cpu", trust_remote_code=trust_remote_code
    )
    store.kind.require_encoder(store.name, encoder.fingerprint, encoder.dimension(), encoder.name)
    if settings.precision != "float32":
        log.info("%s: its passages are in %s; the exported model computes in float32", store.name, settings.precision)
    parts, made = [], plain(encoder)
    plan = store.plan
    if plan.projection:
        what = "projection" if plan.languages else "centre"
        parts.append(f"its {what} of {_join(plan.projection.languages)}")
    if plan.translations is not None:
        parts.append("its map of translations")
    if plan.adapter:
        parts.append(f"its query adapter '{plan.adapter.name}'")
        if plan.adapter.labelled:
            log.warning("%s: the model has no labelled queries, which find pages of the index", store.name)
    made = _with_queries_through(made, plan)
    if not parts:
        log.info("%s: it has no projection, and no adapter in use: its encoder is exported alone", store.name)
    return made, f"It encodes as an index is searched, with {_join(['its prompts', *parts])}.", _join(parts)


def _join(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def _with_queries_through(encoder: Encoder, plan: SearchPlan) -> Encoder:
    """Return an encoder with the maps of a plan that an appended projection does not have."""
    if plan.projection and plan.query_centre is not None and plan.centre is not None:
        matrix = np.eye(encoder.dimension()) if plan.query_matrix is None else plan.query_matrix
        maps = plan.projection.weight, plan.projection.centre, plan.query_centre, matrix
        return AdaptedEncoder(encoder, PlanAdapter(*map(torch.tensor, maps)))
    if plan.query_matrix is None:
        return encoder
    return AdaptedEncoder(encoder, MatrixAdapter.of(torch.tensor(plan.query_matrix)))
