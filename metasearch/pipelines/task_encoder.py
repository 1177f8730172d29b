"""The encoder of a run: the one that its configuration names, with the lengths and the words of its task."""

import logging

from metasearch.compress.trimming import trim
from metasearch.config.languages import normalise_tag
from metasearch.config.run import WHOLE_TASK, RunConfig, ScoreConfig
from metasearch.config.study import StudyConfig
from metasearch.data.benchmark import Benchmark
from metasearch.data.records import texts_of
from metasearch.encoders.encoder import Encoder
from metasearch.errors import require_known
from metasearch.pipelines import factory

log = logging.getLogger(__name__)


def encoder_of(config: RunConfig | ScoreConfig | StudyConfig, benchmark: Benchmark) -> Encoder:
    """Return the encoder of a configuration with the lengths of its task, trimmed to the task's words where it says so.

    Raises:
        EncoderError: it cannot be found, loaded or trimmed.
        ConfigError: there is no such device, or the task has no such language.
    """
    # Train has what was translated, and the language it was translated from, which nothing else may have.
    parts = [benchmark.data] if benchmark.task.evaluation_only else [benchmark.data, benchmark.split.train]
    known = {language for part in parts for language in part.languages}
    asked = config.encoder.trim
    languages = frozenset(known if asked == (WHOLE_TASK,) else map(normalise_tag, asked))
    for language in sorted(languages):
        require_known("language to trim to", language, sorted(known))
    seed = config.seeds[0] if isinstance(config, StudyConfig) else config.seed
    encoder = factory.load_encoder(
        config.encoder, benchmark.task.max_length, identify=True, device=config.compute.device, seed=seed
    )
    if not languages:
        return encoder
    before, origin, seeded = encoder.parameter_count, encoder.origin, encoder.seeded
    # With the texts of all parts: words alone are taken from them, and vectors stay as they are.
    texts = (text for part in parts for _, text, language in texts_of(part) if language in languages)
    encoder = trim(encoder, dict.fromkeys(texts))
    encoder.origin, encoder.seeded = origin, seeded
    of = f"{encoder.parameter_count:,} parameters of {before:,}"
    log.info("trimmed to the words of %s in %s: %s", benchmark.task.task, ", ".join(sorted(languages)), of)
    return encoder
