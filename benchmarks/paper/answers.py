"""Languages of the answers in LAReQA's pool, by encoder, with and without a projection and balanced scores.

    OMP_NUM_THREADS=1 python -m benchmarks.paper.answers --encoder e5-lite --data ~/data

The projection is estimated from the train part without labels. Figures are measures of `metasearch evaluate`, and the
language bias. Rows are in `results/answers.jsonl`.
"""

from collections.abc import Sequence

import click
import numpy as np

import metasearch as ms
from benchmarks.common.command import Command
from benchmarks.common.provenance import provenance
from benchmarks.common.rows import RESULTS, Row, append_new_rows, by_keys, latest_rows, read_rows
from metasearch.config.measure import BALANCED, MULTILINGUAL, Measure, Pool
from metasearch.config.projection import ProjectionSettings
from metasearch.encoders.neutral import ProjectedEncoder
from metasearch.encoders.protocols import CachedEncoder, TextEncoder
from metasearch.evaluation.evaluate import evaluate
from metasearch.evaluation.study.bias import measure_ranking_bias
from metasearch.pipelines.neutral import train_projection
from metasearch.runs.markdown import markdown

ROWS = RESULTS / "answers.jsonl"
line_of = by_keys("task", "encoder", "fold", "way")
identity = by_keys("task", "encoder", "fold", "way", "weights")
MEASURES = {
    "map@20": "map@20",
    "own_ndcg": "own-ndcg@20",
    "others_recall": "others-recall@20",
    "best_own": "best-own",
    "mean_worst": "worst-rank",
    "relevant_own": "first-relevant-own",
    "relevant_other": "first-relevant-other",
    "irrelevant_own": "first-irrelevant-own",
    "irrelevant_other": "first-irrelevant-other",
}
"""Key of a row → its measure."""
POOLS: dict[Pool, str] = {MULTILINGUAL: "", BALANCED: "balanced"}
SHARES = {
    "map@20": "map@20",
    "bias": "language bias",
    "own_ndcg": "own nDCG@20",
    "others_recall": "recall@20 of others",
    "best_own": "best answer is own",
    "chance": "1/L",
    "relevant_own": "first: answer, own",
    "relevant_other": "answer, other",
    "irrelevant_own": "no answer, own",
    "irrelevant_other": "no answer, other",
}
"""Key of a row → its column, in percent."""
RANKS = {"median_worst": "worst rank, median", "mean_worst": "worst rank, mean"}


@click.command(cls=Command)
@click.option("--task", default="lareqa-sentences", show_default=True, help="A retrieval task.")
@click.option("--encoder", default="e5-lite", show_default=True, help="Built-in name, local folder or hub name.")
@click.option("--data", required=True, help="Folder of the task's files or a parent of it.")
@click.option("--fold", type=int, default=0, show_default=True, help="Whose test part is searched.")
def main(task: str, encoder: str, data: str, fold: int) -> None:
    """Search with one encoder in four ways, keep the rows, and print the table of all."""
    benchmark = ms.load_benchmark(task, data=data, fold=fold)
    loaded = ms.load_encoder(encoder, benchmark.task.max_length)
    about = {"task": task, "encoder": encoder, "fold": fold, "weights": loaded.fingerprint}
    known = CachedEncoder(loaded)
    projected = ProjectedEncoder(known, train_projection(loaded, benchmark, ProjectionSettings(texts=150)))
    ways: dict[str, TextEncoder] = {"": known, "neutral": projected}
    rows = []
    for projection, source in ways.items():
        for pool, scores in POOLS.items():
            measures = [Measure.parse(name, "retrieval") for name in MEASURES.values()]
            found = evaluate(source, benchmark.split.test, measures, [pool])
            ranking = found.questions.ranking
            assert ranking is not None
            worst = [values for (name, *_), values in found.questions.columns.items() if name == "worst-rank"]
            figures = {key: found.mean(name) for key, name in MEASURES.items()}
            figures |= {"bias": measure_ranking_bias(ranking), "chance": 1 / len(ranking.languages)}
            figures["median_worst"] = float(np.mean([np.nanmedian(values) for values in worst]))
            way = " + ".join(filter(None, (projection, scores))) or "none"
            rows.append({**about, "way": way, "questions": len(ranking.questions), **figures, **provenance()})
    append_new_rows(ROWS, rows, identity)
    click.echo(table(read_rows(ROWS)))


def table(rows: Sequence[Row]) -> str:
    """Return a line of each encoder and way: scores and shares in percent, and ranks."""
    lines = [
        [
            row["encoder"],
            row["way"],
            *(f"{100 * row[key]:.1f}" for key in SHARES),
            *(f"{row[key]:.1f}" for key in RANKS),
        ]
        for row in latest_rows(rows, line_of)
    ]
    return markdown(["encoder", "against bias", *SHARES.values(), *RANKS.values()], lines, left=2)


if __name__ == "__main__":
    main()
