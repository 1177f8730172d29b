"""Makes and scores the encoders of the steps."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Self, cast

from metasearch.config.measure import Pool
from metasearch.config.projection import ProjectionSettings
from metasearch.config.run import TuneConfig
from metasearch.data.benchmark import Benchmark
from metasearch.data.records import Candidate, RetrievalData
from metasearch.encoders.adapter import MappedEncoder
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.load import load_encoder
from metasearch.encoders.maps import translation_map
from metasearch.encoders.neutral import ProjectedEncoder, append, is_neutral
from metasearch.encoders.protocols import CachedEncoder, TextEncoder, report_progress
from metasearch.evaluation.evaluate import evaluate
from metasearch.evaluation.scores import Evaluation
from metasearch.pipelines import factory
from metasearch.pipelines.adapt.differences import Differences
from metasearch.pipelines.neutral import train_projection
from metasearch.pipelines.tune.labels import Labels
from metasearch.pipelines.tune.steps import Step
from metasearch.pipelines.tune.training import prepare, shuffled
from metasearch.runs.callbacks import Callback
from metasearch.runs.signals import interrupted


@dataclass(frozen=True)
class Workshop:
    """Makes and scores the encoders of the steps from the base encoder, which never changes.

    `vectors` has its vectors of all texts, which took `per_text` seconds each. `passages` are all that may be searched,
    and `translated` their texts by page and its translations, from which an index has a map of queries. `languages`
    have a part in the projection. `aligned` is the folder of the encoder that was aligned on translations.
    """

    config: TuneConfig
    encoder: Encoder
    vectors: CachedEncoder
    passages: tuple[Candidate, ...] = ()
    translated: tuple[tuple[tuple[str, ...], ...], ...] = ()
    per_text: float = 0.0
    languages: tuple[str, ...] = ()
    aligned: Path | None = None

    @classmethod
    def open(
        cls, config: TuneConfig, encoder: Encoder, labels: Labels, languages: tuple[str, ...], callback: Callback
    ) -> Self:
        """Encode all texts, in one order whatever is scored later, and return the workshop."""
        data, vectors = labels.everything, CachedEncoder(encoder)
        encoder.encode([data.questions[0].text], "question")  # the first call makes what later ones use
        start = time.perf_counter()
        with report_progress(encoder, partial(callback.on_encode, "questions")):
            vectors.encode([question.text for question in data.questions], "question")
        with report_progress(encoder, partial(callback.on_encode, "documents")):
            vectors.encode([candidate.text for candidate in data.candidates], "candidate")
        per_text = (time.perf_counter() - start) / (len(data.questions) + len(data.candidates))
        return cls(config, encoder, vectors, data.candidates, labels.translated, per_text, languages)

    def score(
        self, step: Step, benchmark: Benchmark, ranked: Sequence[Pool], callback: Callback
    ) -> dict[Pool, Evaluation]:
        """Return the scores and rankings of a step on the test split in each pool."""
        train, test = cast(RetrievalData, benchmark.split.train), cast(RetrievalData, benchmark.split.test)
        if step.trains:
            encoder: TextEncoder = CachedEncoder(self.make(step, benchmark, callback))
        else:
            encoder = self._projected(benchmark, callback) if step.projected else self.vectors
        if self.translated and (step.projected or is_neutral(self.encoder)):
            groups = [[encoder.encode(texts, "candidate") for texts in group] for group in self.translated]
            encoder = MappedEncoder(encoder, translation_map(groups))
        if step.adapts:
            known = Differences(encoder, self.passages)
            right = shuffled(train, benchmark.fold) if step.shuffled else train
            encoder = MappedEncoder(encoder, known.adapter(step.learner, right))
        if step.shuffled and not step.learns:
            test = shuffled(test, benchmark.fold)
        return {pool: evaluate(encoder, test, benchmark.measures, [pool]) for pool in ranked}

    def make(self, step: Step, benchmark: Benchmark, callback: Callback) -> Encoder:
        """Return a new encoder, made from the training split of a benchmark, without an adapter.

        Raises:
            DataError: there are too few labels to train on.
            Interrupted: by Ctrl-C or SIGTERM.
        """
        config = self.config
        vectors: TextEncoder | None = None if step.aligned else self.vectors
        start = config.encoder.model_copy(update={"name": str(self.aligned)}) if step.aligned else config.encoder
        encoder = load_encoder(start, benchmark.task.max_length, device=config.device)
        if step.projected and not step.aligned:
            vectors = projected = self._projected(benchmark, callback)
            append(encoder, projected.neutral)
        if step.trains:
            trained, recipe = prepare(step, benchmark, config.encoder.name)
            learner = factory.make_learner(recipe, encoder)
            outcome = factory.fit(learner, trained, recipe, seed=config.seed, callback=callback, vectors=vectors)
            if outcome.reason == "interrupted":
                raise interrupted(f"stopped after step {outcome.steps}")
        return encoder

    def _projected(self, benchmark: Benchmark, callback: Callback) -> ProjectedEncoder:
        settings = ProjectionSettings(languages=self.languages)
        return ProjectedEncoder(
            self.vectors, train_projection(self.encoder, benchmark, settings, callback, self.vectors)
        )
