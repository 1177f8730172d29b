"""The scores of a run as a card shows them: a table to read, and entries of the header that programs read."""

from collections.abc import Iterable, Mapping, Sequence

from huggingface_hub import EvalResult

from metasearch.publish.about import Figures, Interval
from metasearch.runs.markdown import DIRECTIONS, by_direction, by_language, markdown
from metasearch.runs.rows import MEAN, STAGE, Row

TASK_TYPES = {
    "retrieval": "information-retrieval",
    "similarity": "semantic-similarity",
    "translation": "translation",
}
"""Kind of a task → what the header calls it, as cards of sentence-transformers do."""

_BOTH = DIRECTIONS[-1]


def eval_results(figures: Figures) -> list[EvalResult]:
    """Return the model's scores on test as entries of the header, times 100, the encoder as it was beside each.

    There is an entry for each task, measure and language of the pool whose mean counts, and for their mean; of other
    pools the means alone.
    """
    before = {_key(row): row["value"] for row in figures.rows if row["learner"] == figures.before}
    return [_result(row, before, figures.kinds) for row in _shown(figures)]


def _shown(figures: Figures) -> Iterable[Row]:
    for task in tasks(figures.rows):
        own = [
            row
            for row in figures.rows
            if (row["task"], row["learner"], row["split"]) == (task, figures.label, "test") and "found" not in row
        ]
        main = main_pool(own)
        yield from (row for row in own if row["pool"] == main or row["language"] == MEAN)


def _result(row: Row, before: Mapping[tuple[str, ...], float], kinds: Mapping[str, str]) -> EvalResult:
    task, pool, language = row["task"], row["pool"], row["language"]
    was = before.get(_key(row))
    args = {"fold": row["fold"], "pool": pool, "questions": row.get("count")}
    return EvalResult(
        task_type=TASK_TYPES[kinds[task]],
        dataset_type=task,
        dataset_name=task,
        dataset_config=f"{pool}, {language}",
        dataset_split=row["split"],
        dataset_revision=row["data"],
        dataset_args={key: value for key, value in args.items() if value is not None},
        metric_type=row["measure"],
        metric_name=f"{row['measure']}, {pool}, {language}",
        metric_value=_times_100(row["value"]),
        metric_args=None if was is None else {"before": _times_100(was)},
    )


def main_pool(rows: Sequence[Row]) -> str:
    """Return the pool whose mean counts: the first one; of translations the mean of both directions."""
    pools = list(dict.fromkeys(row["pool"] for row in rows))
    return _BOTH if _BOTH in pools else next(iter(pools), "")


def tasks(rows: Iterable[Row]) -> list[str]:
    """Return the tasks of rows; the dev scores of a distillation's stages are of none."""
    return [task for task in dict.fromkeys(row["task"] for row in rows) if task != STAGE]


def tables(figures: Figures) -> str:
    """Return the scores of every task on test as tables in Markdown, that of the encoder as it was beside them."""
    parts = []
    for task in tasks(figures.rows):
        rows = [row for row in figures.rows if row["task"] == task]
        parts.append(f"### {task}")
        own = by_direction(rows, "test") if main_pool(rows) == _BOTH else by_language(rows, "test")
        parts.append(own)
    return "\n\n".join(parts)


def interval_table(intervals: Sequence[Interval]) -> str:
    """Return intervals as a table in Markdown."""
    lines = []
    for each in intervals:
        sign = "+" if " less " in each.what else ""
        ends = "undefined" if each.low is None else f"[{each.low:{sign}.2f}, {each.high:{sign}.2f}]"
        over = f"{each.units} {each.unit}"
        lines.append([f"{each.task}, {each.measure}", each.what, f"{each.value:{sign}.2f}", ends, over])
    return markdown(["mean over languages (test)", "of", "figure", "95 %", "resampled"], lines, left=2)


def _times_100(value: float) -> float:
    return round(100 * value, 2)


def _key(row: Row) -> tuple[str, ...]:
    return tuple(str(row[key]) for key in ("task", "split", "measure", "pool", "language", "candidates"))
