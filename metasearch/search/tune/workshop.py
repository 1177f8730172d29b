"""Makes and scores the encoders of the steps."""

import copy
import gc
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Self

import numpy as np

from metasearch.config.measure import Pool
from metasearch.config.projection import ProjectionSettings
from metasearch.data.benchmark import Benchmark
from metasearch.data.texts import tagged_of
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.load import load_encoder
from metasearch.encoders.maps import Projection, estimate
from metasearch.encoders.neutral import ProjectedEncoder, append
from metasearch.encoders.protocols import CachedEncoder, TextEncoder, report_progress
from metasearch.evaluation.scores import Evaluation
from metasearch.pipelines import factory
from metasearch.pipelines.neutral import train_projection, vectors_of
from metasearch.runs.callbacks import Callback
from metasearch.runs.signals import interrupted
from metasearch.search.index.local import LocalStore
from metasearch.search.query.estimate import estimate_plan
from metasearch.search.query.passages import ROLE
from metasearch.search.query.searcher import QUERY, Searcher
from metasearch.search.settings import TuneConfig
from metasearch.search.tune.adapt.searched import SearchedIndex, score_test
from metasearch.search.tune.labels import Labels
from metasearch.search.tune.steps import Step
from metasearch.search.tune.training import prepare

_TIMED = 64
"""Passages that are encoded to tell how long others take."""


@dataclass(frozen=True)
class Workshop:
    """Makes and scores the encoders of the steps from the base encoder, which never changes.

    Attributes:
        vectors: of all texts by the base encoder, which took `per_text` seconds each.
        searched: the index of the documents, if there are any, in which steps that train nothing are scored.
        languages: that have a part in the projection.
        aligned: folder of the encoder that was aligned on translations.
    """

    config: TuneConfig
    encoder: Encoder
    vectors: CachedEncoder
    searched: SearchedIndex | None = None
    per_text: float = 0.0
    languages: tuple[str, ...] = ()
    aligned: Path | None = None

    @classmethod
    def open(
        cls,
        config: TuneConfig,
        encoder: Encoder,
        labels: Labels,
        languages: tuple[str, ...],
        callback: Callback,
        store: LocalStore | None = None,
    ) -> Self:
        """Encode all texts that have no vector in the index, in one order whatever is scored later."""
        data, vectors = labels.everything, CachedEncoder(encoder)
        searched = SearchedIndex.of(Searcher(store, encoder), data) if store else None
        if searched:
            texts = [question.text for question in data.questions]
            vectors.add(texts, "question", np.stack([searched.queries[text] for text in texts]))
            stored = searched.store.stored.take(searched.rows)
            vectors.add([each.text for each in data.candidates], "candidate", stored)
            some = [each.text for each in data.candidates[:_TIMED]]
        else:
            encoder.encode([data.questions[0].text], "question")  # the first call makes what later ones use
            with report_progress(encoder, partial(callback.on_encode, "questions")):
                vectors.encode([question.text for question in data.questions], "question")
            some = [each.text for each in data.candidates]
        start = time.perf_counter()
        with report_progress(encoder, partial(callback.on_encode, "documents")):
            (encoder if searched else vectors).encode(some, "candidate")
        per_text = (time.perf_counter() - start) / len(some)
        return cls(config, encoder, vectors, searched, per_text, languages)

    def score(
        self, step: Step, benchmark: Benchmark, ranked: Sequence[Pool], callback: Callback
    ) -> dict[Pool, Evaluation]:
        """Return the scores and rankings of a step on the test split in each pool."""
        if self.searched and not step.trains:
            return self.searched.score(step, benchmark, ranked)
        sharpness = None
        if step.trains:
            trained = self.make(step, benchmark, callback)
            encoder: TextEncoder = CachedEncoder(trained.choose_precision(self.encoder.precision))
        else:
            encoder = self.vectors
            if step.projected:
                encoder = ProjectedEncoder(encoder, self._projection(benchmark, callback))
        if self.searched:
            plan = estimate_plan(encoder, self.searched.passages)
            encoder = ProjectedEncoder(ProjectedEncoder(encoder, plan.documents, (ROLE,)), plan.queries, (QUERY,))
            sharpness = plan.sharpness
        return score_test(encoder, step, benchmark, ranked, sharpness)

    def make(self, step: Step, benchmark: Benchmark, callback: Callback) -> Encoder:
        """Return an encoder, made from the training split of a benchmark, without an adapter.

        It shares the weights of the base encoder, unless they are trained.

        Raises:
            DataError: there are too few labels to train on.
            Interrupted: by Ctrl-C or SIGTERM.
        """
        # A SentenceTransformer and its model card hold each other: without a collection, the encoder of the last fold
        # stays in memory.
        gc.collect()
        config = self.config
        vectors: TextEncoder | None = None if step.aligned else self.vectors
        start = config.encoder.model_copy(update={"name": str(self.aligned)}) if step.aligned else config.encoder
        if step.trains or step.aligned:
            loaded = load_encoder(start, benchmark.task.max_length, device=config.device)
            encoder = _with_tokenizer_of(self.encoder, loaded)
            del loaded
            gc.collect()
        else:
            encoder = Encoder(self.encoder.model, self.encoder.name, self.encoder.max_length)
        if step.projected and not step.aligned:
            projection = self._projection(benchmark, callback)
            vectors = ProjectedEncoder(self.vectors, projection)
            append(encoder, projection)
        if step.trains:
            trained, recipe = prepare(step, benchmark, config.encoder.name)
            learner = factory.make_learner(recipe, encoder)
            second, on_cpu = learner.second_order, encoder.device.type == "cpu"
            outcome = factory.fit(
                learner, trained, recipe, seed=config.seed, precision="float32" if second else self.encoder.precision,
                # Activations grow with the labels: 1.2 GB for 26 questions with `e5`. Twice takes a quarter more time.
                checkpointing="gradcache" if on_cpu and not second else "auto", callback=callback, vectors=vectors,
            )  # fmt: skip
            if outcome.reason == "interrupted":
                raise interrupted(f"stopped after step {outcome.steps}")
        return encoder

    def _projection(self, benchmark: Benchmark, callback: Callback) -> Projection:
        settings = ProjectionSettings(languages=self.languages)
        return train_projection(self.encoder, benchmark, settings, callback, self.vectors)


def _with_tokenizer_of(base: Encoder, encoder: Encoder) -> Encoder:
    """Return an encoder with the equal tokenizer of another one, as each may take 250 MB; the weights are its own."""
    model = encoder.model
    memo = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    own, other = ([each.tokenizer, getattr(each[0], "processor", each.tokenizer)] for each in (model, base.model))
    memo |= {id(part): equal for part, equal in zip(own, other, strict=True)}
    return Encoder(copy.deepcopy(model, memo), encoder.name, encoder.max_length)


def project_alone(encoder: Encoder, labels: Labels, callback: Callback) -> str:
    """Remove language bias from an encoder, which takes no label, if it can be; return what was done, in words."""
    if encoder.neutral:
        return "The base encoder is kept: it has a projection."
    if not (languages := labels.projectable()):
        return "The base encoder is kept: the texts are too few for a projection."
    texts = tagged_of(labels.everything, ProjectionSettings().texts, languages)
    append(encoder, estimate(vectors_of(encoder, texts, callback)))
    return "Language bias was removed from the base encoder, which needs no labels."
