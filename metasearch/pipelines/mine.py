"""`metasearch mine`: hard negatives in each language, as rows for the trainers of other libraries.

The columns follow sentence-transformers: `anchor`, `positive`, and `negative`, or `negative_1` to `negative_n`.
"""

import logging
from collections import Counter
from collections.abc import Iterator

from metasearch.config.languages import spelling_of
from metasearch.config.run import MineConfig
from metasearch.data.benchmark import Benchmark
from metasearch.data.records import RetrievalData
from metasearch.encoders.load import load_encoder
from metasearch.encoders.protocols import report_progress
from metasearch.episodes.episode import Embed
from metasearch.episodes.triplets import NearestCandidates
from metasearch.errors import ConfigError, DataError, require_known
from metasearch.runs.callbacks import SILENT, Callback

log = logging.getLogger(__name__)


def mine(config: MineConfig, benchmark: Benchmark, callback: Callback = SILENT) -> list[dict[str, str]]:
    """Return a row for each question and language with an answer and enough negatives; `DataError` for no row."""
    data = benchmark.part(config.split)
    if not isinstance(data, RetrievalData):
        raise ConfigError(
            f"task '{benchmark.task.name}' is a {data.kind} task; negatives are mined for retrieval tasks"
        )
    languages = [spelling_of(tag, data.languages) for tag in config.languages] or sorted(data.languages)
    for tag in languages:
        require_known("language", tag, data.languages)
    if config.split != "train":
        log.warning(
            "anchors are questions of the %s part: never test a model on them that was trained on these rows",
            config.split,
        )
    encoder = load_encoder(config.encoder, benchmark.task.max_length, device=config.compute.device)
    with report_progress(encoder, lambda done, total: callback.on_encode("mine", done, total)):
        rows = list(mine_rows(data, encoder.encode, languages, config))
    if not rows:
        raise DataError(f"the {config.split} part has no question with an answer and {config.negatives} negatives")
    return rows


def mine_rows(data: RetrievalData, embed: Embed, languages: list[str], config: MineConfig) -> Iterator[dict[str, str]]:
    """Yield all questions' rows, in data order, then by language."""
    nearest, few = NearestCandidates(data, data.languages, embed), Counter[str]()
    names = ["negative"] if config.negatives == 1 else [f"negative_{i + 1}" for i in range(config.negatives)]
    for question in data.questions:
        answers = data.answers.get(question.id, {})
        own = {answer.text for found in answers.values() for answer in found}
        if question.id in data.identical:
            own.add(data.candidates[data.identical[question.id]].text)
        for language in languages:
            for positive in answers.get(language, ()):
                found = nearest.near(question, positive, own, [language], config.relative_margin)
                chosen = found[: config.negatives]
                if len(chosen) < config.negatives:
                    few[language] += 1
                    continue
                texts = dict(zip(names, (each.text for each in chosen), strict=True))
                yield {"anchor": question.text, "positive": positive.text, **texts}
    if few:
        counts = ", ".join(f"{tag} {count:,}" for tag, count in sorted(few.items()))
        log.warning("skipped rows with fewer than %d negatives: %s", config.negatives, counts)
