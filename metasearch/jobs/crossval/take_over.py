"""Zero-shot scores are the same in every run on a fold: they are taken over, not computed again."""

from collections.abc import Collection

from metasearch.jobs.scoring import Row
from metasearch.runs.folder import RunFolder, versions
from metasearch.runs.questions import load
from metasearch.spec.recipe import ZERO_SHOT


def take_over(origin: RunFolder, files: RunFolder, facts: Row, data: str, splits: Collection[str]) -> bool:
    """Copy the zero-shot scores of a run, and what it kept of each question, to another one.

    Nothing is copied where the other run has them, or where they were made of other data or by other versions.

    Args:
        origin: a finished run.
        files: of the run that takes them over.
        facts: what its rows say instead, such as seed and mode.
        data: fingerprint of its data.
        splits: which parts are the same in both runs.

    Returns:
        whether the scores stand in its results now.
    """
    stamp = {"data": data, "versions": versions()}
    rows = [row for row in origin.results() if row["learner"] == ZERO_SHOT and row["split"] in splits]
    if not rows or any({key: row[key] for key in stamp} != stamp for row in rows):
        return False
    if any(row["learner"] == ZERO_SHOT for row in files.results()):
        return True
    for split in splits:
        kept = origin.queries(rows[0]["task"], ZERO_SHOT, split)
        if kept.is_file():
            # First what is kept: rows that stand in the results say that all of it is there.
            known, said = load(kept)
            known.save(files.queries(rows[0]["task"], ZERO_SHOT, split), {**said, **facts})
    files.add_results({**row, **facts} for row in rows)
    return True
