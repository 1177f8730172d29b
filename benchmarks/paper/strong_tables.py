"""Tables of the study with a strong encoder, made of the rows of its cells; the rows of arms are kept beside them."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.common.provenance import provenance
from benchmarks.common.rows import RESULTS, Row, append_new_rows, latest_rows
from benchmarks.paper import cells, main_table
from benchmarks.paper.study_rows import study_rows
from benchmarks.paper.study_tables import against_table, name_of, summary_table
from metasearch.config.recipe import NEUTRAL, ZERO_SHOT
from metasearch.errors import ConfigError
from metasearch.evaluation.study.study import Arm


def tables(task: str, data: str, known: list[Row], arm_results: Path) -> str:
    """Return the tables of the arms that are on all folds, and keep a row of each; say which arms are not."""
    kept = _latest(known)
    places: dict[str, set[tuple[int, int]]] = {}
    for row in kept:
        places.setdefault(cells.find_arm(row), set()).add((row["fold"], row["seed"]))
    if ZERO_SHOT not in places:
        raise ConfigError(f"there is no row of {ZERO_SHOT} on {task} yet, from which the others are counted")
    folds = {fold for fold, _ in places[ZERO_SHOT]}
    begun = [arm for arm, done in places.items() if {fold for fold, _ in done} != folds]
    whole = [row for row in kept if cells.find_arm(row) not in begun]
    with tempfile.TemporaryDirectory() as folder:
        study = cells.restored(whole, data, Path(folder))
        rows = study_rows(study, cells.ENCODER, references=[arm for arm in study.arms if _is_reference(arm)])
    rows = [{**row, **_bias(row, whole), **provenance()} for row in rows]
    append_new_rows(arm_results, rows, main_table.identity)
    tables = [summary_table(rows), against_table(rows)]
    tables += [f"not on all folds yet: {arm}, {len(places[arm])} cells" for arm in begun]
    return "\n\n".join(table for table in tables if table)


def reranked_table(task: str, data: str, known: list[Row], in_other: list[Row]) -> str:
    """Return the table of the arms in reranked pools beside the untrained ones in the main pool; keep its rows."""
    untrained = [row for row in known if cells.find_arm(row) in (ZERO_SHOT, NEUTRAL)]
    folds = {row["fold"] for row in untrained}
    moved = [cells.in_main_pool(row) for row in _latest(in_other)]
    places: dict[str, set[int]] = {}
    for row in moved:
        places.setdefault(cells.find_arm(row), set()).add(row["fold"])
    whole = [row for row in moved if places[cells.find_arm(row)] == folds]
    with tempfile.TemporaryDirectory() as folder:
        study = cells.restored([*_latest(untrained), *whole], data, Path(folder))
        rows = study_rows(study, cells.ENCODER, references=[arm for arm in study.arms if arm.mode is None][:2])
    rows = [{**row, **provenance()} for row in rows]
    append_new_rows(RESULTS / "expanded.jsonl", rows, main_table.identity)
    return summary_table(rows)


def _latest(rows: Sequence[Row]) -> list[Row]:
    return latest_rows(map(cells.of_any_precision, rows), cells.identity)


def _is_reference(arm: Arm) -> bool:
    """Return whether other arms are compared with one: with what is untrained, and with fine-tuning."""
    return arm.mode is None or arm.learner == "fine-tune"


def _bias(row: Row, kept: list[Row]) -> Row:
    """Return the mean language bias of an arm's cells, which have no rankings to find it in again."""
    arm = name_of(row) if row["mode"] is None else f"{name_of(row)}:{row['mode']}"
    own = [each["bias"] for each in kept if cells.find_arm(each) == arm]
    return {"bias": sum(own) / len(own), "bias_sd": None} if own and None not in own else {}
