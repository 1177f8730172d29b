"""mteb: a retrieval task whose documents are in all languages, and an encoder of metasearch as a model of mteb.

mteb has no pool of mixed languages. The task made here has a subset for each query language, and all subsets search the
same documents. Its mAP@20 is that of `metasearch evaluate`. Needs the extra `mteb`.

Example:
    import mteb
    import metasearch as ms
    from metasearch.mteb import MetasearchModel, pool_task

    benchmark = ms.load_benchmark("demo", fold=0)
    model = MetasearchModel(ms.load_encoder("mini", benchmark.task.max_length))
    mteb.evaluate(model, [pool_task(benchmark)], cache=None)
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from langcodes import Language
from numpy.typing import NDArray

from metasearch.config.extras import import_extra
from metasearch.config.roles import Role
from metasearch.data.benchmark import Benchmark
from metasearch.data.records import RetrievalData
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.protocols import CachedEncoder
from metasearch.errors import ConfigError, DataError

K = 20
_ROLES: Mapping[str | None, Role] = {"query": "question", "document": "candidate", None: "text"}
"""mteb's type of a prompt → role."""


class MetasearchModel:
    """An encoder as mteb calls it (`mteb.models.EncoderProtocol`).

    Each role has its own prompt and length; a saved model in mteb's own wrapper has one length. A text is encoded once
    for all subsets of a task.

    Args:
        encoder: encoder to score.
        revision: revision in mteb's results, which mteb keeps by name and revision; by default the fingerprint of the
            encoder, its precision, and the lengths of queries, documents and texts in tokens.
        **options: accepted for mteb and not used.
    """

    def __init__(self, encoder: Encoder, revision: str | None = None, **options: Any) -> None:
        self.encoder = encoder
        self._revision = revision
        self._cached = CachedEncoder(encoder)

    @property
    def revision(self) -> str:
        """The revision in mteb's results."""
        lengths = [str(self.encoder.limit(role)) for role in _ROLES.values()]
        return self._revision or "-".join([self.encoder.fingerprint, self.encoder.precision, *lengths])

    def encode(
        self, inputs: Iterable[Mapping[str, list[str]]], *, prompt_type: Any = None, **options: Any
    ) -> NDArray[np.float32]:
        """Return the unit vectors of texts in the role of their prompt, `(N, D)`; mteb's other options are not used."""
        role = _ROLES[getattr(prompt_type, "value", prompt_type)]
        return self._cached.encode([text for batch in inputs for text in batch["text"]], role)

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Return the cosines of unit vectors `(N, D)` and `(M, D)`, `(N, M)`."""
        one, two = (torch.as_tensor(np.asarray(each), dtype=torch.float32) for each in (embeddings1, embeddings2))
        return one @ two.T

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Return the cosines of unit vectors in pairs, `(N,)`."""
        one, two = (torch.as_tensor(np.asarray(each), dtype=torch.float32) for each in (embeddings1, embeddings2))
        return (one * two).sum(-1)

    @property
    def mteb_model_meta(self) -> Any:
        """The facts that mteb keeps of a model; unknown ones are None."""
        meta = import_extra("mteb.models.model_meta", "mteb", "a model of mteb")
        facts = {
            "name": f"metasearch/{Path(self.encoder.name).name}",
            "revision": self.revision,
            "n_parameters": self.encoder.parameter_count,
            "memory_usage_mb": self.encoder.size / 2**20,
            "max_tokens": max(self.encoder.limit(role) for role in _ROLES.values()),
            "embed_dim": self.encoder.dimension(),
            "framework": ["Sentence Transformers", "PyTorch"],
            "similarity_fn_name": meta.ScoringFunction.COSINE,
            "use_instructions": any(self.encoder.prompt(role) for role in _ROLES.values()),
        }
        return meta.ModelMeta.create_empty(facts)


def pool_task(benchmark: Benchmark, split: str = "test") -> Any:
    """Return a part of a retrieval task as a task of mteb, with a subset for each query language.

    Args:
        benchmark: retrieval task with its data.
        split: part, such as `test` or `dev`.

    Raises:
        ConfigError: it is no retrieval task, or the extra `mteb` is missing.
        DataError: a question has more than 20 answers, so that mteb's mAP@20, which divides by their number, differs.
    """
    retrieval = import_extra("mteb.abstasks.retrieval", "mteb", "a task of mteb").AbsTaskRetrieval
    data = benchmark.part(split)
    if not isinstance(data, RetrievalData):
        raise ConfigError(f"task '{benchmark.task.name}' is a {data.kind} task; a pool needs a retrieval task")
    relevant = {q: [c.id for found in by.values() for c in found] for q, by in data.answers.items()}
    for query, document in data.missing:
        relevant.setdefault(query, []).append(document)
    if many := next((q for q, answers in relevant.items() if len(answers) > K), None):
        raise DataError(f"question '{many}' has {len(relevant[many])} answers; mteb's map_at_{K} allows {K} at most")
    dataset, ignored = _dataset(data, relevant, split), data.ignore_identical_ids
    subsets = {tag: [language_with_script(tag)] for tag in sorted(data.questions_by_language)}

    class PoolTask(retrieval):  # type: ignore[misc,valid-type]  # known only where mteb is installed
        """A part of a benchmark of metasearch."""

        metadata = _metadata(benchmark, split, subsets)
        k_values = (1, 5, 10, K)
        ignore_identical_ids = ignored

        def load_data(self, *args: Any, **keys: Any) -> None:
            """Give the data that is read already; nothing is downloaded."""
            self.dataset = dataset
            self.data_loaded = True

    return PoolTask()


def language_with_script(tag: str) -> str:
    """Return mteb's name of a language: ISO 639-3 and the script that it is mostly written in, such as `deu-Latn`."""
    language = Language.get(tag).maximize()
    script = "Hang" if language.script == "Kore" else language.script  # CLDR says Korean, mteb Hangul
    return f"{language.to_alpha3()}-{script}"


def _metadata(benchmark: Benchmark, split: str, subsets: Mapping[str, list[str]]) -> Any:
    task = benchmark.task
    name = "".join(word.capitalize() for word in task.name.split("-"))
    return import_extra("mteb.abstasks.task_metadata", "mteb", "a task of mteb").TaskMetadata(
        name=f"{name}Fold{benchmark.fold}",
        description=task.description,
        dataset={"path": f"metasearch/{task.name}", "revision": benchmark.data.fingerprint},
        type="Retrieval",
        category="t2t",
        eval_splits=[split],
        eval_langs=dict(subsets),
        main_score=f"map_at_{K}",
    )


def _dataset(data: RetrievalData, relevant: Mapping[str, list[str]], split: str) -> dict[str, dict[str, Any]]:
    """Return subset → split → all documents, and the questions in one language with their answers."""
    rows = import_extra("datasets", "mteb", "a task of mteb").Dataset.from_list
    corpus = rows([{"id": each.id, "text": each.text} for each in data.candidates])
    found = {}
    for tag, asked in data.questions_by_language.items():
        queries = rows([{"id": each.id, "text": each.text} for each in asked])
        judged = {each.id: dict.fromkeys(relevant[each.id], 1) for each in asked}
        found[tag] = {split: {"corpus": corpus, "queries": queries, "relevant_docs": judged, "top_ranked": None}}
    return found
