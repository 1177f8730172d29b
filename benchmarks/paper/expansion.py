"""Document expansion and balanced scores in pools with and without translations of the answers, on vectors made once.

    python -m benchmarks.paper.expansion --task lareqa-sentences --encoder e5 --data ~/data

LAReQA's pool has every sentence in each of its languages. In the other pool here a sentence stands in one language
alone, drawn with a seed: what expansion takes for a translation there is none, and the best of most languages answers
nothing. Rows are in `results/expansion.jsonl`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import click
import numpy as np
import torch
from numpy.typing import NDArray

import metasearch as ms
from benchmarks.common.command import Command
from benchmarks.common.provenance import provenance
from benchmarks.common.rows import RESULTS, Row, append_new_rows, by_keys, latest_rows, read_rows
from metasearch.config.measure import BALANCED, MULTILINGUAL, Measure, Pool
from metasearch.config.projection import ProjectionSettings
from metasearch.config.roles import Role
from metasearch.data.records import Candidate, RetrievalData
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.neutral import ProjectedEncoder
from metasearch.encoders.pool_scores import ALPHA, expanded
from metasearch.encoders.protocols import CachedEncoder, TextEncoder
from metasearch.evaluation.evaluate import evaluate
from metasearch.pipelines.neutral import train_projection
from metasearch.runs.markdown import markdown

ROWS = RESULTS / "expansion.jsonl"
line_of = by_keys("task", "encoder", "fold", "pool")
ALPHAS = (1.0, 2.0, 3.0, 4.0, 6.0)
MAP20 = Measure("map", 20)
WITH, WITHOUT = "with translations", "without"


@dataclass
class Expanded:
    """Gives the vectors of an encoder, those of the candidates of some data expanded; of all of them at once."""

    encoder: TextEncoder
    data: RetrievalData
    alpha: float

    @property
    def device(self) -> torch.device:
        """Where texts are encoded."""
        return self.encoder.device

    def encode(self, texts: Sequence[str], role: Role) -> NDArray[np.float32]:
        """Return the unit vectors of texts, `(len(texts), D)`, in their order."""
        vectors = self.encoder.encode(texts, role)
        if role != "candidate":
            return vectors
        codes = sorted(self.data.languages)
        return expanded(vectors, np.array([codes.index(c.language) for c in self.data.candidates]), self.alpha)


@click.command(cls=Command)
@click.option("--task", default="lareqa-sentences", show_default=True, help="A retrieval task.")
@click.option("--encoder", default="e5", show_default=True, help="Built-in name, local folder or hub name.")
@click.option("--name", help="What the encoder is called in the rows; by default as given.")
@click.option("--neutral/--as-it-is", default=False, help="Take the language out of its vectors first.")
@click.option("--data", required=True, help="Folder of the task's files or a parent of it.")
@click.option("--fold", type=int, default=0, show_default=True, help="Whose test part is searched.")
@click.option("--draws", default=5, show_default=True, help="Pools without translations, over which the mean is taken.")
def main(task: str, encoder: str, name: str | None, neutral: bool, data: str, fold: int, draws: int) -> None:
    """Score one encoder in both kinds of pools, keep the rows, and print the table of all."""
    benchmark = ms.load_benchmark(task, data=data, fold=fold)
    loaded: Encoder = ms.load_encoder(encoder, benchmark.task.max_length)
    source: TextEncoder = loaded
    if neutral:
        source = ProjectedEncoder(loaded, train_projection(loaded, benchmark, ProjectionSettings(texts=150)))
    known, test = CachedEncoder(source), benchmark.split.test
    assert isinstance(test, RetrievalData)
    called = f"{name or encoder}{' neutral' if neutral else ''}"
    about = {"task": task, "encoder": called, "fold": fold, "weights": loaded.fingerprint, "draws": draws}
    rows = []
    for pool, parts in ((WITH, [test]), (WITHOUT, [without_translations(test, seed) for seed in range(draws)])):
        scores = {"0": [_score(known, part) for part in parts]}
        for alpha in ALPHAS:
            scores[f"{alpha:g}"] = [_score(Expanded(known, part, alpha), part) for part in parts]
        means = {alpha: fmean(values) for alpha, values in scores.items()}
        even = {
            "0": fmean(_score(known, part, BALANCED) for part in parts),
            f"{ALPHA:g}": fmean(_score(Expanded(known, part, ALPHA), part, BALANCED) for part in parts),
        }
        found = {"candidates": len(parts[0].candidates), str(MAP20): means, BALANCED: even}
        rows.append({**about, "pool": pool, **found, **provenance()})
    append_new_rows(ROWS, rows, identity)
    click.echo(table(read_rows(ROWS)))


def identity(row: Row) -> object:
    """Return what a row is known again by; the first ones have no balanced scores."""
    return (*line_of(row), row["weights"], row["draws"], BALANCED in row)


def without_translations(data: RetrievalData, seed: int) -> RetrievalData:
    """Return data whose candidates stand in one language each: those with an answer in common in the same."""
    rng = np.random.default_rng(seed)
    codes, kept = sorted(data.languages), set()
    groups = _groups(data.candidates)
    languages = {group: codes[int(rng.integers(len(codes)))] for group in dict.fromkeys(groups.values())}
    for candidate in data.candidates:
        # What answers nothing has no translation that is known by its id: a share of it is kept.
        own = languages[groups[candidate.id]] if candidate.answers else codes[int(rng.integers(len(codes)))]
        if candidate.language == own:
            kept.add(candidate.id)
    candidates = tuple(each for each in data.candidates if each.id in kept)
    answered = {question for each in candidates for question in each.answers}
    return replace(data, questions=tuple(q for q in data.questions if q.id in answered), candidates=candidates)


def _groups(candidates: Sequence[Candidate]) -> dict[str, int]:
    """Return id → number of the group of each candidate that answers something."""
    group_of: dict[str, int] = {}
    found: dict[str, int] = {}
    for candidate in candidates:
        if candidate.answers:
            known = [group_of[question] for question in candidate.answers if question in group_of]
            number = min(known, default=len(found))
            group_of.update(dict.fromkeys(candidate.answers, number))
            found[candidate.id] = number
    return found


def _score(encoder: TextEncoder, data: RetrievalData, pool: Pool = MULTILINGUAL) -> float:
    return evaluate(encoder, data, [MAP20], [pool]).mean(str(MAP20), pool)


def table(rows: Sequence[Row]) -> str:
    """Return a line of each encoder and pool: mAP@20 plain, balanced, by exponent, and balanced after expansion."""
    heads = ["map@20", "pool", "candidates", "plain", BALANCED, *(f"α = {alpha:g}" for alpha in ALPHAS)]
    lines = []
    for row in latest_rows(rows, line_of):
        plain, *moved = (f"{100 * value:.2f}" for value in row[str(MAP20)].values())
        # The first rows have no balanced scores.
        even = {alpha: f"{100 * value:.2f}" for alpha, value in row.get(BALANCED, {}).items()}
        scores = [plain, even.get("0", ""), *moved, even.get(f"{ALPHA:g}", "")]
        lines.append([row["encoder"], row["pool"], f"{row['candidates']:,}", *scores])
    heads.append(f"α = {ALPHA:g}, {BALANCED}")
    return markdown(heads, lines, left=2)


if __name__ == "__main__":
    main()
