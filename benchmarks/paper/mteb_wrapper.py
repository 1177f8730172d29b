"""An encoder of metasearch in mteb, and mteb's mAP@20 on our data beside ours.

mteb (2.26) is no dependency. Install it apart, and let Python find it (a folder called site-packages: dill, by which it
hashes data, goes by that name):

    pip install --target mteb/site-packages mteb==2.26.24
    PYTHONPATH=mteb/site-packages python -m benchmarks.paper.mteb_wrapper --task lareqa-sentences --data ~/data

mteb has no pool of mixed languages: the task made here has a subset for each language of the questions, all of which
search the same candidates of all languages. Each encoder reads questions and candidates with the prompts and at the
lengths of their roles; a saved model in mteb's own wrapper has one length for both.
"""

import json
import socket
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from benchmarks.common.command import Command
from metasearch.config.measure import Measure
from metasearch.config.recipe import Role
from metasearch.data.benchmark import Benchmark, load_benchmark
from metasearch.data.records import RetrievalData
from metasearch.encoders.encoder import Encoder
from metasearch.errors import ConfigError, DataError
from metasearch.evaluation.evaluate import evaluate
from metasearch.evaluation.scores import Evaluation
from metasearch.pipelines.factory import load_encoder

K = 20
TOLERANCE = 1e-5
SCRIPTS = {
    "ar": "ara-Arab", "de": "deu-Latn", "el": "ell-Grek", "en": "eng-Latn", "es": "spa-Latn", "hi": "hin-Deva",
    "ro": "ron-Latn", "ru": "rus-Cyrl", "th": "tha-Thai", "tr": "tur-Latn", "vi": "vie-Latn", "zh": "zho-Hans",
}  # fmt: skip
"""Our code of a language → mteb's, which names the script."""
ROLES: Mapping[str | None, Role] = {"query": "question", "document": "candidate", None: "text"}
"""mteb's type of a prompt → our role."""


class MetasearchModel:
    """What mteb asks of an encoder (`mteb.models.EncoderProtocol`), answered by one of metasearch."""

    def __init__(self, encoder: Encoder, revision: str | None = None, **options: Any) -> None:
        self.encoder = encoder
        self.revision = revision or encoder.fingerprint
        self._vectors: dict[tuple[Role, str], NDArray[np.float32]] = {}

    def encode(
        self,
        inputs: Iterable[Mapping[str, list[str]]],
        *,
        task_metadata: Any,
        hf_split: str,
        hf_subset: str,
        prompt_type: Any = None,
        **options: Any,
    ) -> NDArray[np.float32]:
        """Return the vectors of texts `(N, D)`, as their role is read; each text is encoded once for all subsets."""
        role = ROLES[None if prompt_type is None else str(getattr(prompt_type, "value", prompt_type))]
        texts = [text for batch in inputs for text in batch["text"]]
        new = list(dict.fromkeys(text for text in texts if (role, text) not in self._vectors))
        self._vectors.update(zip(((role, text) for text in new), self.encoder.encode(new, role), strict=True))
        return np.stack([self._vectors[role, text] for text in texts])

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Return the products of unit vectors `(N, D)` and `(M, D)`, `(N, M)`: their cosines."""
        import torch

        one, two = (torch.as_tensor(np.asarray(each), dtype=torch.float32) for each in (embeddings1, embeddings2))
        return one @ two.T

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Return the products of unit vectors in pairs, `(N,)`."""
        import torch

        one, two = (torch.as_tensor(np.asarray(each), dtype=torch.float32) for each in (embeddings1, embeddings2))
        return (one * two).sum(-1)

    @property
    def mteb_model_meta(self) -> Any:
        """What mteb keeps of a model; what is not known says so."""
        from mteb.models.model_meta import ModelMeta, ScoringFunction

        return ModelMeta(
            loader=None,
            name=f"metasearch/{Path(self.encoder.name).name}",
            revision=self.revision,
            release_date=None,
            languages=None,
            n_parameters=self.encoder.parameter_count,
            memory_usage_mb=self.encoder.size / 2**20,
            max_tokens=max(self.encoder.limit(role) for role in ROLES.values()),
            embed_dim=self.encoder.dimension(),
            license=None,
            open_weights=None,
            public_training_code=None,
            public_training_data=None,
            framework=["Sentence Transformers", "PyTorch"],
            similarity_fn_name=ScoringFunction.COSINE,
            use_instructions=any(self.encoder.prompt(role) for role in ROLES.values()),
            training_datasets=None,
        )


def retrieval_task(benchmark: Benchmark, part: str) -> Any:
    """Return a part of a retrieval task as one of mteb, with a subset for each language of the questions.

    Raises:
        ConfigError: the task ranks nothing, or mteb's name of a language is not known here.
        DataError: a question has more answers than `K`, where mteb's mAP@K is another than ours.
    """
    from mteb.abstasks.retrieval import AbsTaskRetrieval
    from mteb.abstasks.task_metadata import TaskMetadata

    data = benchmark.part(part)
    if not isinstance(data, RetrievalData):
        raise ConfigError(f"task '{benchmark.task.task}' ranks nothing: mAP is for retrieval")
    if unknown := sorted(data.languages - SCRIPTS.keys()):
        raise ConfigError(f"mteb's names of the languages {', '.join(unknown)} are not listed in SCRIPTS")
    relevant = {q: [c.id for found in by.values() for c in found] for q, by in data.answers.items()}
    if many := next((q for q, answers in relevant.items() if len(answers) > K), None):
        raise DataError(f"question '{many}' has {len(relevant[many])} answers: mteb's map_at_{K} divides by them all")
    subsets = {language: [SCRIPTS[language]] for language in sorted(data.questions_by_language)}

    class Task(AbsTaskRetrieval):  # type: ignore[misc]  # mteb is not there for the type checker
        """A part of a benchmark of metasearch."""

        metadata = _metadata(TaskMetadata, benchmark, part, subsets)
        k_values = (1, 5, 10, K)

        def load_data(self, *args: Any, **keys: Any) -> None:
            """Give the data that is read already; nothing is fetched."""
            self.dataset = _dataset(data, relevant, part)
            self.data_loaded = True

    return Task()


def _metadata(kind: Any, benchmark: Benchmark, part: str, subsets: Mapping[str, list[str]]) -> Any:
    task = benchmark.task
    name = "".join(word.capitalize() for word in task.task.split("-"))
    return kind(
        name=f"{name}Fold{benchmark.fold}",
        description=task.description,
        reference=None,
        dataset={"path": f"metasearch/{task.task}", "revision": benchmark.data.fingerprint},
        type="Retrieval",
        category="t2t",
        modalities=["text"],
        eval_splits=[part],
        eval_langs=dict(subsets),
        main_score=f"map_at_{K}",
        date=None,
        domains=None,
        task_subtypes=None,
        license=None,
        annotations_creators=None,
        dialect=None,
        sample_creation=None,
        bibtex_citation="",
    )


def _dataset(data: RetrievalData, relevant: Mapping[str, list[str]], part: str) -> dict[str, dict[str, Any]]:
    """Return subset → split → what mteb reads: all candidates, and the questions of one language."""
    from datasets import Dataset

    corpus = Dataset.from_list([{"id": each.id, "text": each.text} for each in data.candidates])
    found = {}
    for language, asked in data.questions_by_language.items():
        queries = Dataset.from_list([{"id": each.id, "text": each.text} for each in asked])
        judged = {each.id: dict.fromkeys(relevant[each.id], 1) for each in asked}
        found[language] = {part: {"corpus": corpus, "queries": queries, "relevant_docs": judged, "top_ranked": None}}
    return found


def mteb_scores(encoder: Encoder, benchmark: Benchmark, part: str) -> dict[str, float]:
    """Return language of the questions → mAP@20 as mteb has it, which it rounds to five digits."""
    import datasets
    import mteb

    datasets.disable_progress_bars()
    result = mteb.evaluate(
        MetasearchModel(encoder), [retrieval_task(benchmark, part)], cache=None, co2_tracker=False,
        show_progress_bar=False,
    )  # fmt: skip
    (task,) = result.task_results
    return {row["hf_subset"]: row[f"map_at_{K}"] for row in task.scores[part]}


def our_scores(encoder: Encoder, benchmark: Benchmark, part: str) -> dict[str, float]:
    """Return language of the questions → mAP@20 as `metasearch evaluate` has it."""
    found: Evaluation = evaluate(encoder, benchmark.part(part), [Measure("map", K)])
    return {score.language: score.value for score in found.scores}


def block_network() -> None:
    """Refuse every connection from now on: what is shown here needs none."""

    def refused(*args: Any, **keys: Any) -> Any:
        raise OSError("the network is blocked")

    socket.socket.connect = socket.socket.connect_ex = refused  # type: ignore[assignment,method-assign]
    socket.getaddrinfo = refused


@click.command(cls=Command)
@click.option("--task", default="demo", show_default=True)
@click.option("--encoder", "name", default="mini", show_default=True)
@click.option("--fold", default=0, show_default=True)
@click.option("--data", metavar="DIR")
@click.option("--split", "part", default="test", show_default=True)
def main(task: str, name: str, fold: int, data: str | None, part: str) -> None:
    """Score an encoder by mteb and by metasearch, without a network, and print both with their difference as JSON."""
    block_network()
    benchmark = load_benchmark(task, fold=fold, data=data)
    encoder = load_encoder(name, benchmark.task.max_length, device="cpu")
    began = time.perf_counter()
    theirs, ours = mteb_scores(encoder, benchmark, part), our_scores(encoder, benchmark, part)
    apart = max(abs(theirs[language] - ours[language]) for language in ours)
    mean = {"mteb": float(np.mean(list(theirs.values()))), "ours": float(np.mean(list(ours.values())))}
    shown = {"task": task, "fold": fold, "split": part, "encoder": name, "mean": mean, "by language": theirs}
    click.echo(json.dumps({**shown, "apart": apart, "seconds": round(time.perf_counter() - began, 1)}))
    if apart > TOLERANCE:
        raise DataError(f"mteb and metasearch are {apart:.6f} apart, more than {TOLERANCE}")


if __name__ == "__main__":
    main()
