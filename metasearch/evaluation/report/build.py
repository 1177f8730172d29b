"""Makes a report from a study: one page, the same in Markdown, and its tables for papers and programs.

report.html     the page; needs no network and no other file
report.md       its words and tables
tables.json     all tables, as they were measured
tables/         each table as KEY.tex (booktabs) and KEY.csv
"""

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from metasearch.config import registry
from metasearch.errors import ConfigError, RunFolderError
from metasearch.evaluation.report import formats
from metasearch.evaluation.report.comparison import verdict
from metasearch.evaluation.report.main_table import ordered
from metasearch.evaluation.report.section import Inputs, Report, Section
from metasearch.evaluation.statistics import jackknife
from metasearch.evaluation.study.compare import compare
from metasearch.evaluation.study.study import Arm, Study
from metasearch.io import NEW, atomic_write_all
from metasearch.version import __version__

# Control characters, lone surrogates and noncharacters.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
PAGE, WORDS, INDEX, TABLES = "report.html", "report.md", "tables.json", "tables"


def build(
    study: Study, baseline: Arm | None = None, measure: str | None = None, level: float = jackknife.LEVEL
) -> Report:
    """Return a study's report; arguments and errors as `study.compare.compare`, in the task's main pool."""
    jackknife.check(level)
    selection = study.select(measure)
    study = replace(study, arms=tuple(ordered(study)))
    comparison, why = None, ""
    try:
        comparison = compare(study, baseline, selection.measure, selection.pool, level)
    except ConfigError as error:  # the arguments are checked: there is nothing to compare with
        why = f"Nothing is compared: {str(error).removesuffix('.')}."
    inputs = Inputs(study, selection, comparison, why)
    more = f"; and {len(study.missing) - 3} more" if study.missing[3:] else ""  # the run facts have all of it
    unfinished = [f"Not everything is there: {'; '.join(study.missing[:3])}{more}."] if study.missing else []
    return Report(
        title=f"{study.task}: {study.name}",
        intro=tuple(filter(None, (*verdict(study, selection, comparison), why, *unfinished))),
        facts=(
            ("Task", study.task),
            ("Measure", f"{selection}, × 100"),
            *([("Baseline", comparison.reference)] if comparison else []),
            ("Folds", ", ".join(map(str, study.folds))),
            ("Seeds", ", ".join(map(str, study.seeds))),
            ("Data", study.data),
            ("Version", f"metasearch {study.versions.get('metasearch', 'unknown')}"),
        ),
        sections=tuple(_sections(inputs)),
        footer=f"Written by metasearch {__version__}.",
    )


def _sections(inputs: Inputs) -> Iterator[Section]:
    modules = (registry.load("sections", name) for name in registry.names("sections"))
    for module in sorted(modules, key=attrgetter("ORDER")):
        if section := module.section(inputs):
            yield section


@cache
def environment() -> Environment:
    """Return the templates of this package; they escape all values, and an unknown name is an error."""
    made = Environment(
        loader=PackageLoader("metasearch.evaluation.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_clean,
    )
    made.filters["minus"] = formats.minus
    return made


def page(report: Report) -> str:
    """Return a report as an HTML file that needs no network, no script and no other file."""
    keys = ["content"]
    for section in report.sections:
        keys += [section.key, *(chart.key for chart in section.charts), *(table.key for table in section.tables)]
    if twice := sorted({key for key in keys if keys.count(key) > 1}):
        raise ValueError(f"duplicate report section '{twice[0]}'")
    return environment().get_template("report.html.j2").render(report=report)


def _clean(value: Any) -> Any:
    """Return a value with the replacement character for each character that HTML forbids; escaped text stays."""
    return _FORBIDDEN.sub("\ufffd", value) if isinstance(value, str) and not isinstance(value, Markup) else value


def files(report: Report) -> dict[str, str]:
    """Return a report's files by path, the page first."""
    tables = [table for section in report.sections for table in section.tables]
    index = json.dumps([asdict(table) for table in tables], ensure_ascii=False, indent=1, allow_nan=False)
    texts = {PAGE: page(report), WORDS: _markdown(report), INDEX: f"{index}\n"}
    for table in tables:
        texts |= {f"{TABLES}/{table.key}.{suffix}": text(table) for suffix, text in formats.FILES.items()}
    return texts


def _markdown(report: Report) -> str:
    parts = [f"# {formats.plain(report.title)}", *map(formats.plain, report.intro)]
    parts.append("\n".join(f"- {formats.plain(name)}: {formats.plain(value)}" for name, value in report.facts))
    for section in report.sections:
        parts += [f"## {formats.plain(section.heading)}", *map(formats.plain, section.paragraphs)]
        parts += [formats.markdown(table).rstrip("\n") for table in section.tables]
    parts += [formats.plain(report.footer), f"Charts: {PAGE}"]
    return "\n\n".join(parts) + "\n"


def write(report: Report, folder: Path) -> list[Path]:
    """Write a report, whole or not at all, and return the paths of its files, the page first."""
    refuse(folder)
    former = _former(folder)
    # Half a surrogate pair, which a text of a data file may hold, is written as JSON does.
    made = {folder / name: text.encode("utf-8", "backslashreplace") for name, text in files(report).items()}
    atomic_write_all(made)
    try:
        # Tables of the former report go only once all new files are in place.
        for path in (*(former - set(made)), *(folder / TABLES).glob(f"*{NEW}")):
            path.unlink(missing_ok=True)
    except OSError as error:
        raise RunFolderError(f"{folder} cannot be written: {error.strerror}") from None
    return list(made)


def refuse(folder: Path) -> None:
    """Raise `RunFolderError` when a folder is there that is neither empty nor a report, whole or begun."""
    try:
        if folder.exists() and not folder.is_dir():
            raise RunFolderError(f"{folder} is a file; choose a folder with -o")
        # A process that died while files took their names left the page, which is first, and the others beside theirs.
        report = (folder / PAGE).is_file() and any((folder / name).is_file() for name in (INDEX, f"{INDEX}{NEW}"))
        if not report and any(path.suffix != NEW for path in folder.rglob("*") if not path.is_dir()):
            raise RunFolderError(f"{folder} is not empty and holds no report; choose another folder with -o")
    except OSError as error:
        raise RunFolderError(f"{folder} cannot be read: {error.strerror}") from None


def _former(folder: Path) -> set[Path]:
    """Return the files of the tables of an earlier report, which earlier versions wrote as Markdown, too."""
    try:
        keys = [str(table["key"]) for table in json.loads((folder / INDEX).read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError, KeyError):
        return set()
    return {folder / TABLES / f"{formats.slug(key)}.{end}" for key in keys for end in ("md", *formats.FILES)}
