"""An evaluator for the trainers of sentence-transformers: search in a pool of all languages, and its language bias."""

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.evaluation import BaseEvaluator

from metasearch.config.measure import MULTILINGUAL, Measure
from metasearch.config.roles import Role
from metasearch.data.labels import load_labels
from metasearch.data.records import RetrievalData
from metasearch.errors import ConfigError, DataError
from metasearch.evaluation.evaluate import evaluate
from metasearch.evaluation.scores import require_answers
from metasearch.evaluation.study.bias import measure_ranking_bias
from metasearch.io import write_error


class MultilingualPoolEvaluator(BaseEvaluator):  # type: ignore[misc]  # untyped in the library
    """Scores a model by search in one pool with documents in all languages.

    The scores are mAP@k (LAReQA, Roy et al. 2020, section 4), its value for each query language, and the language bias
    in the top k (`metasearch.evaluation.study.bias`).
    Language bias is 0 for a model that ignores language and 1 for a model that prefers documents in the language of
    the query wherever it can. It is NaN where the pool leaves no choice, such as with one language.

    Queries are encoded with `encode_query` and documents with `encode_document`; vectors are compared by cosine.

    Args:
        data: questions and candidates, or labelled rows in any form that `metasearch.load_labels` reads. Rows that
            share an `id` are translations of one query.
        name: prefix of the names of scores.
        k: depth of the ranking.
        batch_size: texts that are encoded at once.
        write_csv: append the scores to a CSV file in the folder that the trainer names.

    Raises:
        ConfigError: k is not positive.
        DataError: the rows are damaged, or a query has no relevant document.

    Example:
        >>> rows = [{"id": "1", "query": "Where?", "document": "Here.", "language": "en"}]
        >>> MultilingualPoolEvaluator(rows, name="shop").primary_metric
        'shop_map@20'
    """

    def __init__(self, data: Any, name: str = "", k: int = 20, batch_size: int = 32, write_csv: bool = True) -> None:
        super().__init__()
        if k < 1:
            raise ConfigError(f"k: {k}; expected 1 or more")
        self.data = data if isinstance(data, RetrievalData) else load_labels(data)
        if not self.data.questions:
            raise DataError("there are no questions to evaluate on")
        require_answers(self.data, [MULTILINGUAL])
        self.name, self.k, self.batch_size, self.write_csv = name, k, batch_size, write_csv
        self.primary_metric = f"{name}_map@{k}" if name else f"map@{k}"
        self.csv_file = f"multilingual_pool_evaluation{f'_{name}' if name else ''}_results.csv"

    def __call__(
        self, model: SentenceTransformer, output_path: str | None = None, epoch: int = -1, steps: int = -1
    ) -> dict[str, float]:
        """Return the scores of a model by name, and append them to the CSV file.

        Args:
            model: model to score.
            output_path: folder of the CSV file; None writes nothing.
            epoch: epoch of the training, for the file.
            steps: steps in the epoch, for the file.

        Raises:
            NonFiniteError: the model gives embeddings that are not finite.
            RunFolderError: the file cannot be written.
        """
        measure = Measure("map", self.k)
        with torch.inference_mode():
            found = evaluate(_Roles(model, self.batch_size), self.data, [measure], depth=self.k)
        ranking = found.questions.ranking
        assert ranking is not None
        scores = {str(measure): found.mean(str(measure))}
        scores |= {f"{measure}_{score.language}": score.value for score in found.scores}
        scores["language_bias"] = measure_ranking_bias(ranking, self.k)
        if output_path is not None and self.write_csv:
            self._append(Path(output_path), {"epoch": epoch, "steps": steps, **scores})
        named: dict[str, float] = self.prefix_name_to_metrics(scores, self.name)
        shown = {key: value for key, value in named.items() if math.isfinite(value)}
        self.store_metrics_in_model_card_data(model, shown, epoch, steps)
        return named

    def get_config_dict(self) -> dict[str, Any]:
        """Return what the model card says of the evaluator."""
        return {"k": self.k, "languages": sorted(self.data.languages)}

    def _append(self, folder: Path, row: dict[str, float]) -> None:
        path = folder / self.csv_file
        try:
            folder.mkdir(parents=True, exist_ok=True)
            is_new = not path.exists()
            with path.open("a", encoding="utf-8", newline="") as file:
                csv.writer(file).writerows([list(row), list(row.values())] if is_new else [list(row.values())])
        except OSError as error:
            raise write_error(path, error) from None


@dataclass(frozen=True)
class _Roles:
    """Gives the unit vectors of a model in the role of each text."""

    model: SentenceTransformer
    batch_size: int

    @property
    def device(self) -> torch.device:
        return torch.device(self.model.device)

    def encode(self, texts: Sequence[str], role: Role) -> NDArray[np.float32]:
        encode = self.model.encode_query if role == "question" else self.model.encode_document
        vectors = encode(list(texts), batch_size=self.batch_size, normalize_embeddings=True, show_progress_bar=False)
        return np.asarray(vectors, np.float32)
