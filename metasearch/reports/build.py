"""Writes a report: one page, the same in Markdown, and its tables for papers and programs.

report.html     the page; needs no network and no other file
report.md       its words and tables
tables.json     all tables, as they were measured
tables/         each table as KEY.md, KEY.tex (booktabs) and KEY.csv
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from metasearch import __version__
from metasearch.errors import ConfigError, RunFolderError
from metasearch.reports import formats, sections
from metasearch.reports.main_table import ordered
from metasearch.reports.means import What
from metasearch.reports.page import Report, page
from metasearch.reports.sections import Part
from metasearch.reports.table import Table
from metasearch.reports.verdict import verdict
from metasearch.runs.questions import questions_path
from metasearch.study.arms import Arm
from metasearch.study.compare import Comparison, compare
from metasearch.study.statistics import bootstrap
from metasearch.study.study import Study

PAGE, INDEX, TABLES, NEW = "report.html", "tables.json", "tables", ".new"


@dataclass(frozen=True)
class Built:
    """A report that is not written yet.

    Attributes:
        report: what the page says.
        parts: its sections, with the tables that are written as files.
    """

    report: Report
    parts: tuple[Part, ...]

    @property
    def main(self) -> Table:
        """The main table."""
        return self.parts[0].tables[0]


def write(built: Built, folder: Path) -> list[Path]:
    """Write a report and return the paths of its files, the page first.

    Args:
        built: the report.
        folder: new, empty, or that of a former report, which is replaced.

    Raises:
        RunFolderError: the folder holds something else, or cannot be written; a former report stays as it was.
    """
    refuse(folder)
    return _written(folder, files(built))


def refuse(folder: Path) -> None:
    """Raise `RunFolderError` when a folder is there that is neither empty nor a report, whole or begun."""
    try:
        if folder.exists() and not folder.is_dir():
            raise RunFolderError(f"{folder} is a file; choose a folder with -o")
        report = all((folder / name).is_file() for name in (PAGE, INDEX))
        if not report and any(path.suffix != NEW for path in folder.rglob("*") if not path.is_dir()):
            raise RunFolderError(f"{folder} is not empty and holds no report; choose another folder with -o")
    except OSError as error:
        raise RunFolderError(f"{folder} cannot be read: {error.strerror}") from None


def build(
    study: Study,
    baseline: Arm | None = None,
    measure: str | None = None,
    level: float = bootstrap.LEVEL,
    resamples: int = bootstrap.RESAMPLES,
    seed: int = 0,
) -> Built:
    """Return the report of a study.

    Args:
        study: as it was read.
        baseline: what the others are compared with; by default zero-shot, or the first arm.
        measure: by default the task's first.
        level: of the intervals.
        resamples: of the bootstrap.
        seed: likewise.

    Raises:
        ConfigError: measure, level or resamples is wrong.
        DataError: what was kept of the questions is damaged, or not what the scores were computed from; the file is
            named.
    """
    bootstrap.check(level, resamples)
    measure, pool = study.require(measure)
    what = What(measure, pool)
    study = replace(study, arms=tuple(ordered(study)))
    known, without = with_questions(study)
    comparison, why = _compared(known, baseline or study.baseline, what, level, resamples, seed)
    why = [*without, *why]
    found = [
        sections.scores(study, what, comparison),
        sections.comparison_part(comparison, why),
        sections.modes(study, what),
        sections.matrices(study, what),
        sections.bias(known) if known.arms else None,
        sections.learning(study),
        sections.explorer(known, what, comparison) if known.arms else None,
        sections.facts(study),
    ]
    parts = tuple(part for part in found if part)
    intro = (*verdict(study, what, comparison), *(why if comparison is None else ()), *_lacking(study))
    facts = _facts(study, what, baseline or study.baseline)
    footer = f"Written by metasearch {__version__}."
    title = f"{study.task}: {study.name}"
    return Built(Report(title, intro, facts, tuple(part.section for part in parts), footer), parts)


def _facts(study: Study, what: What, baseline: Arm) -> tuple[tuple[str, str], ...]:
    """Return what a reader must know first."""
    return (
        ("Task", study.task),
        ("Measure", f"{what}, × 100"),
        ("Baseline", baseline.label),
        ("Folds", ", ".join(map(str, study.folds))),
        ("Seeds", ", ".join(map(str, study.seeds))),
        ("Data", study.data),
        ("Version", f"metasearch {study.versions.get('metasearch', 'unknown')}"),
    )


def _lacking(study: Study) -> list[str]:
    """Say what is not finished; the run facts have all of it."""
    if not study.missing:
        return []
    more = f"; and {len(study.missing) - 3} more" if study.missing[3:] else ""
    return [f"Not everything is there: {'; '.join(study.missing[:3])}{more}."]


def with_questions(study: Study) -> tuple[Study, list[str]]:
    """Return the part of a study whose runs kept the results of each question, and what has none, in words."""
    kept = [s for s in study.scored if questions_path(s.run.path, study.task, s.rows[0]["learner"], "test").is_file()]
    arms = tuple(arm for arm in study.arms if any(scored.arm == arm for scored in kept))
    said = []
    for arm in study.arms:
        lost = sorted(str(s.run.path) for s in study.of(arm) if s not in kept)
        if lost:
            more = f" and {len(lost) - 1} more" if lost[1:] else ""
            said.append(f"{arm.label}: the results of each question were not kept in {lost[0]}{more}.")
    return replace(study, arms=arms, scored=tuple(kept)), said


def files(built: Built) -> dict[str, str]:
    """Return path in the folder → text of each file of a report."""
    tables = [table for part in built.parts for table in part.tables]
    index = json.dumps([formats.tree(table) for table in tables], ensure_ascii=False, indent=1, allow_nan=False)
    made = {PAGE: page(built.report), "report.md": _markdown(built), INDEX: f"{index}\n"}
    for table in tables:
        for name in ("markdown", "latex", "csv"):
            made[f"{TABLES}/{table.key}.{formats.SUFFIXES[name]}"] = formats.FORMATS[name](table)
    return made


def _compared(
    study: Study, baseline: Arm, what: What, level: float, resamples: int, seed: int
) -> tuple[Comparison | None, list[str]]:
    """Return the comparison with a baseline, or why there is none, in words."""
    if baseline not in study.arms:
        return None, [f"Nothing is compared: {baseline.label} has no results of each question."]
    try:
        return compare(study, baseline, what.measure, what.pool, level, resamples, seed), []
    except ConfigError as error:  # all that was asked for is checked before: there is nothing to compare with
        return None, [f"Nothing is compared: {str(error).removesuffix('.')}."]


def _markdown(built: Built) -> str:
    """Return the words and tables of a report."""
    report = built.report
    said = [f"# {formats.plain(report.title)}", *map(formats.plain, report.intro)]
    said.append("\n".join(f"- {formats.plain(name)}: {formats.plain(value)}" for name, value in report.facts))
    for part in built.parts:
        if part.tables or part.section.paragraphs:
            said += [f"## {formats.plain(part.section.heading)}", *map(formats.plain, part.section.paragraphs)]
            said += [formats.markdown(table).rstrip("\n") for table in part.tables]
    said += [formats.plain(report.footer), f"Charts and single questions: {PAGE}"]
    return "\n\n".join(said) + "\n"


def _written(folder: Path, made: Mapping[str, str]) -> list[Path]:
    """Write files: first all under other names, then in their places, so that a full disk leaves a former report."""
    former = _former(folder)
    new = {folder / name: folder / f"{name}{NEW}" for name in made}
    try:
        (folder / TABLES).mkdir(parents=True, exist_ok=True)
        for beside, text in zip(new.values(), made.values(), strict=True):
            _write(beside, text)
        for path, beside in new.items():
            beside.replace(path)
        for path in (*(former - set(new)), *(folder / TABLES).glob(f"*{NEW}")):
            path.unlink(missing_ok=True)
    except OSError as error:
        for beside in new.values():
            with suppress(OSError):
                beside.unlink(missing_ok=True)
        raise RunFolderError(f"{folder} cannot be written: {error.strerror}") from None
    return list(new)


def _write(path: Path, text: str) -> None:
    # Half a surrogate pair, which a text of a data file may hold, is written as JSON does.
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _former(folder: Path) -> set[Path]:
    """Return the files of the tables that a former report listed."""
    try:
        keys = [str(table["key"]) for table in json.loads((folder / INDEX).read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError, KeyError):
        return set()
    return {folder / TABLES / f"{formats.slug(key)}.{end}" for key in keys for end in ("md", "tex", "csv")}
