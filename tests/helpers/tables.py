"""Studies with scores that a reader can redo by hand, and the cells of the tables made of them."""

from pathlib import Path

from metasearch.evaluation.study.read import labelled
from metasearch.evaluation.study.study import Arm, Run, Scored, ScoreSelection, Study

SELECTION = ScoreSelection("map@20", "multilingual")


def study_of(scores, missing=(), **extra):
    """Make a study of `(learner, mode, fold, seed) → language → value`, in the pool of all languages."""
    rows = {
        key: [row_of(SELECTION, language, "all", value) for language, value in values.items()]
        for key, values in scores.items()
    }
    return study_of_rows(rows, missing, **extra)


def row_of(selection, language, candidates, value):
    """Make a row of results."""
    named = {"measure": selection.measure, "pool": selection.pool, "split": selection.split}
    return {**named, "language": language, "candidates": candidates, "value": value, "encoder": "tiny", "versions": {}}


def study_of_rows(rows, missing=(), facts=None):
    """Make a study of `(learner, mode, fold, seed) → rows`."""
    ways = list(dict.fromkeys(key[:2] for key in rows))
    arms = dict(zip(ways, labelled([Arm(learner, mode, None, "tiny") for learner, mode in ways]), strict=True))
    scored = []
    for (learner, mode, fold, seed), own in rows.items():
        config = {} if mode is None else {"recipe": {"learner": learner}, "precision": "fp32"}
        run = Run(Path(f"{learner}-{mode}-{fold}-{seed}"), "study", config, tuple(own), facts or {})
        scored.append(Scored(arms[learner, mode], fold, seed, run, tuple(own)))
    runs = tuple(each.run for each in scored)
    return Study("study", "demo", "4e8f", {}, tuple(arms.values()), tuple(scored), runs, tuple(missing))


def shown(table, *heads):
    """Return the cells of a line as they are shown."""
    (line,) = [line for line in table.lines if line.heads == heads]
    return [table.shown(cell) for cell in line.cells]


def places(table, column):
    return [line.cells[table.columns.index(column)].place for line in table.lines]
