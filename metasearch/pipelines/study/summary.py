"""What a study writes when it ends: all scores as one file, and the main table."""

import json
from typing import Any

from metasearch.evaluation.report.formats import markdown
from metasearch.evaluation.report.main_table import main_table, ordered, over_languages
from metasearch.evaluation.study.study import ScoreSelection, Study


def results(study: Study) -> str:
    """Return the scores of every arm on every fold with every seed as lines of JSON, zero-shot once."""
    rows = [{"arm": scored.arm.label, **row} for scored in study.scored for row in scored.rows]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def report(study: Study) -> str:
    """Return the main table in Markdown, and what the study lacks."""
    parts = [f"# {study.name}\n", markdown(main_table(study, study.select()))]
    if study.missing:
        parts.append("\n".join(f"- {line}" for line in study.missing) + "\n")
    return "\n".join(parts)


def means(study: Study) -> list[dict[str, Any]]:
    """Return the means of every arm over languages, seeds and folds, by measure, pool and split, as JSON."""
    rows = []
    for arm in ordered(study):
        for selection in (
            ScoreSelection(m, p, s) for s in ("test", "dev") for m in study.measures for p in study.pools
        ):
            mean = over_languages(study, arm, selection)
            if mean is not None:
                named = {"arm": arm.label, "split": selection.split, **selection._asdict()}
                rows.append({**named, "mean": mean.mean, "sd": mean.sd, "count": mean.count, "over": mean.over})
    return rows
