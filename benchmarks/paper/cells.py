"""Cells of a study as rows that outlive its folder: the measure of every test question, without the texts.

A study of many hours is run over days and machines. Its run folders are large and hold texts of the data, which may not
be published here; a row of a cell has what comparisons need. Values are rounded to four digits.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks.common.rows import Row
from metasearch.config import yaml
from metasearch.config.base import Settings
from metasearch.config.library import Library
from metasearch.config.measure import REORDERED
from metasearch.config.recipe import NEUTRAL, ZERO_SHOT
from metasearch.config.run import RunConfig, ScoreConfig
from metasearch.data.benchmark import Benchmark, load_benchmark
from metasearch.errors import DataError
from metasearch.evaluation.scores import Evaluation, Score
from metasearch.evaluation.study.bias import measure_ranking_bias
from metasearch.evaluation.study.read import STUDY_FILE, read_study
from metasearch.evaluation.study.study import Scored, Study
from metasearch.runs.folder import RunFolder
from metasearch.runs.per_query_results import Cell, QueryResults, query_results_path

DIGITS = 10_000
ENCODER = "e5"
BEFORE = f"{NEUTRAL}+"
"""Begins the name of an arm whose encoder had the language taken out before it was trained."""
ALIGNED = "aligned"
"""Encoder that `benchmarks.paper.aligned` makes of `e5`, and what its arms begin with; alone, it is untrained."""
BEST, FINE_TUNE = "best", "fine-tune"
"""A recipe whose arms are called by its name, as there are others of its learner, which is the second."""
_PLACES = ("data", "include")
_FACTS = ("task", "encoder", "learner", "mode", "recipe", "fold", "seed", "step")
_SHARED = (*_FACTS, "versions", "data")


def rows_of(study: Study, encoder: str, weights: str | None = None, pool: str | None = None) -> list[Row]:
    """Return a row of every cell of a study: of each arm, fold and seed.

    Args:
        study: study with one encoder.
        encoder: name of the encoder in the rows.
        weights: fingerprint of an encoder that is made anew each time.
        pool: by default the task's main one.
    """
    selection = study.select(pool=pool)
    rows = [_row(scored, *selection[:2]) for arm in study.arms for scored in study.of(arm)]
    named = {"encoder": encoder, **({"weights": weights} if weights else {})}
    return [{**row, **named, "config": {**row["config"], "encoder": encoder}} for row in rows]


def rows_of_pools(study: Study, encoder: str, weights: str | None = None) -> list[Row]:
    """Return the same of the main pool and of those that rank it otherwise, as far as a cell has them."""
    pools = (None, *(pool for pool in REORDERED if pool in study.pools))
    return [row for pool in pools for row in rows_of(study, encoder, weights, pool) if row["values"]]


def identity(row: Row) -> object:
    """Return what a row is known again by: what was trained, on what, and how."""
    config = {key: str(value) for key, value in row["config"].items() if key not in ("fold", "seed")}
    keys = ("task", "encoder", "learner", "mode", "fold", "seed")
    # Every run has the scores of the encoder as it was, whatever it trained.
    return (
        *(row[key] for key in keys),
        row.get("weights"),
        row["pool"],
        None if row["learner"] == ZERO_SHOT else str(sorted(config.items())),
    )


def in_main_pool(row: Row) -> Row:
    """Return a row of a reranked pool as one of an arm of its own in the main pool, to be compared with others."""
    end, config = f"+{row['pool']}", dict(row["config"])
    # Untrained encoders of two names would be one arm.
    own = ALIGNED if (row["encoder"], row["learner"]) == (ALIGNED, ZERO_SHOT) else row["learner"]
    if "recipe" in config:
        config["recipe"] = {**config["recipe"], "learner": config["recipe"]["learner"] + end}
    else:
        config["label"] = own + end
    return {**row, "pool": "multilingual", "learner": own + end, "config": config}


def of_any_precision(row: Row) -> Row:
    """Return a row as one of an arm whose seeds may have been trained in float32 and in bfloat16.

    What that changes of a score is less than what another seed does: benchmarks/README.md.
    """
    return {**row, "config": {key: value for key, value in row["config"].items() if key != "precision"}}


def restored(rows: Iterable[Row], data: str, folder: Path) -> Study:
    """Return the study of rows of one task, with run folders below a new folder.

    Raises:
        DataError: the rows were made on other data.
    """
    benchmarks: dict[tuple[str, int], Benchmark] = {}
    runs: dict[str, list[Row]] = {}
    for row in rows:
        # A run may have scored several encoders: before training, after it, and with a map.
        runs.setdefault(json.dumps(row["config"], sort_keys=True), []).append(row)
    for number, run in enumerate(runs.values()):
        key = run[0]["task"], run[0]["fold"]
        if key not in benchmarks:
            benchmarks[key] = load_benchmark(key[0], fold=key[1], data=data)
        _write(run, benchmarks[key], folder / "cells" / f"{number}")
    listed = {"cells": [f"{number}" for number in range(len(runs))]}
    (folder / STUDY_FILE).write_text(yaml.dump(listed), encoding="utf-8")
    return read_study([folder], any_version=True)


def _row(scored: Scored, measure: str, pool: str) -> Row:
    results = scored.questions
    ranked = measure_ranking_bias(results.ranking) if results.ranking else None
    values = {
        language: np.rint(column * DIGITS).astype(int).tolist()
        for (name, own, language, inside), column in results.columns.items()
        if (name, own, inside) == (measure, pool, "all")
    }
    first = scored.rows[0]
    config = {key: value for key, value in scored.run.config.items() if key not in _PLACES}
    return {
        **{key: first.get(key) for key in _SHARED},
        "measure": measure,
        "pool": pool,
        "values": values,
        "bias": None if ranked is None or pool in REORDERED else ranked,
        "dev": scored.values(measure, pool, "dev") and float(np.mean([*scored.values(measure, pool, "dev").values()])),
        "facts": dict(scored.run.facts),
        "config": config,
    }


def _write(rows: Sequence[Row], benchmark: Benchmark, folder: Path) -> None:
    """Write a run folder with the test scores of its rows alone."""
    first = rows[0]
    if benchmark.data.fingerprint != first["data"]:
        raise DataError(
            f"the rows were made on data {first['data']}; {first['task']} is {benchmark.data.fingerprint} here"
        )
    kind: type[RunConfig | ScoreConfig] = RunConfig if "recipe" in first["config"] else ScoreConfig
    files = RunFolder.create(
        folder, yaml.check(_resolve_names(_in_sections(first["config"], kind)), kind, "config of a row"), first["data"]
    )
    for row in rows:
        facts = {key: row[key] for key in _FACTS} | {"fold_seed": None, "split": "test"}
        stamp = {"data": row["data"], "versions": row["versions"]}
        results = _evaluation(row, benchmark)
        results.questions.save(query_results_path(files.path, row["task"], row["learner"], "test"), facts | stamp)
        files.add_results({**facts, **each, **stamp} for each in results.rows())
    files.finish(f"# {first['learner']}\n", first["facts"])


def _resolve_names(config: Row) -> yaml.Tree:
    """Return the settings of a run with its task and mode in place of their names, which rows have."""
    found, where, library = dict(config), dict(config["data"]), Library(config["data"].get("include") or ())
    if isinstance(found.get("mode"), str):
        found["mode"] = library.mode(found["mode"])
    if isinstance(where.get("task"), str):
        found["data"] = where | library.declared(where["task"])
    return found


def _in_sections(config: Row, kind: type[Settings]) -> Row:
    """Return the settings of a row, which has them without sections, as a run has them; unknown ones had one value."""
    tree = {}
    for name, field in kind.model_fields.items():
        section = field.annotation
        if isinstance(section, type) and issubclass(section, Settings):
            tree[name] = _in_sections(config, section)
        elif (key := "encoder" if name == "name" else name) in config:
            tree[name] = config[key]
    return tree


def _evaluation(row: Row, benchmark: Benchmark) -> Evaluation:
    """Return the scores of a row and of its questions, which are those of the test part in their order."""
    questions = benchmark.part("test").questions_by_language  # type: ignore[union-attr]  # of a retrieval task
    columns = {language: np.array(values) / DIGITS for language, values in row["values"].items()}
    scores = tuple(
        Score(row["measure"], row["pool"], language, "all", float(column.mean()), len(column))
        for language, column in columns.items()
    )
    cells: dict[str, Cell] = {language: (row["pool"], language, "all") for language in columns}
    units = {cell: tuple(question.id for question in questions[language]) for language, cell in cells.items()}
    named = {(row["measure"], *cell): columns[language] for language, cell in cells.items()}
    articles = {question.id: question.group for language in columns for question in questions[language]}
    return Evaluation(scores, QueryResults(units, named, None, articles))


@dataclass(frozen=True)
class Missing:
    """Arms such as `maml:trans` without a row on some folds with a seed; one study can run them."""

    seed: int
    arms: tuple[str, ...]
    folds: tuple[int, ...]


def missing(rows: Sequence[Row], arms: Iterable[str], folds: Iterable[int], seeds: Iterable[int]) -> list[Missing]:
    """Return the cells of some arms that no row has, in the order to do them in.

    An untrained encoder has the same scores with every seed, so that those with one are enough.
    """
    known = {(find_arm(row), row["fold"], row["seed"]) for row in rows}
    scored = {(arm, fold) for arm, fold, _ in known if arm in (ZERO_SHOT, NEUTRAL, ALIGNED)}
    wanted = list(arms)
    groups: dict[tuple[int, tuple[str, ...]], list[int]] = {}
    for seed, fold in product(seeds, folds):
        lacking = tuple(arm for arm in wanted if (arm, fold, seed) not in known and (arm, fold) not in scored)
        groups.setdefault((seed, lacking), []).append(fold)
    return [Missing(seed, lacking, tuple(places)) for (seed, lacking), places in groups.items() if lacking]


def find_arm(row: Row) -> str:
    """Return the arm of a row: `zero-shot`, `maml:trans`, `neutral+maml:trans`, `aligned` or `aligned+maml:trans`."""
    stage = (row["config"].get("recipe") or {}).get("neutralise") or {}
    # With what follows its learner's name, such as a stage after training.
    learner = BEST + row["learner"].removeprefix(FINE_TUNE) if row["recipe"] == BEST else row["learner"]
    name = named(learner, row["encoder"], stage.get("when") == "before")
    untrained = row["learner"].partition("+")[0] in (ZERO_SHOT, NEUTRAL, ALIGNED)
    return name if row["mode"] is None or untrained else f"{name}:{row['mode']}"


def named(learner: str, encoder: str, before: bool) -> str:
    """Return what a learner is called with what was done to its encoder first; `before`: it trained through a map."""
    if encoder == ALIGNED:
        first = learner.partition("+")[0]
        return ALIGNED if learner == ZERO_SHOT else learner if first == ALIGNED else f"{ALIGNED}+{learner}"
    return f"{BEFORE if before and learner not in (ZERO_SHOT, NEUTRAL) else ''}{learner}"
