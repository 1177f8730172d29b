"""One small hand-written data set in `tests/fixtures` for each file format, and the task that it serves."""

import shutil
from pathlib import Path

from metasearch.config import registry, yaml
from metasearch.config.task import Task
from metasearch.data.records import Data

FOLDER = Path(__file__).parents[1] / "fixtures"

SIX_PAIRS = ("ar-ar", "ar-en", "es-es", "es-en", "en-en", "tr-en")
_TASKS = {
    # folder: reader, languages, language pairs of a similarity task
    "xquad-r": ("xquad-r", "el ar tr", ""),
    "semeval2017": ("semeval2017", "ar en es tr", " ".join(SIX_PAIRS)),
    "stsb-multi-mt": ("stsb-multi-mt", "en de", "en-en en-de de-en"),
    "sts-extended": ("sts-extended", "ar de en", "en-de ar-ar"),
    "jsonl-paragraphs": ("jsonl", "de el", ""),
    "jsonl-labelled": ("jsonl", "de el", ""),
    "jsonl-pairs": ("jsonl", "de", "de-de"),
    "csv-labelled": ("csv", "de el", ""),
    "csv-pairs": ("csv", "de el", "de-de el-de"),
}
FORMATS = tuple(_TASKS)


def task(reader: str, languages: str, pairs: str = "", **others: object) -> Task:
    """Declare a task: of similarity where it has language pairs, of retrieval where it has none."""
    measure = "pearson" if pairs else "map"
    declared = {
        "task": "small",
        "description": "for a test",
        "kind": "similarity" if pairs else "retrieval",
        "reader": reader,
        "source": {"paper": "none", "url": "https://example.org/small", "licence": "CC0 1.0"},
        "languages": languages.split(),
        "pairs": tuple(pairs.split()),
        "encoder": "tiny",
        "measures": [measure],
        "monitor": measure,
        "arrangements": {},
    }
    return Task.model_validate({**declared, **others})


def translation(languages: str, **others: object) -> Task:
    """Declare a task of translations from or into English, all of it test."""
    kind = {"kind": "translation", "measures": ["accuracy"], "monitor": "accuracy", "folds": {"method": "none"}}
    return task("tatoeba", languages, **{**kind, **others})


def declared(task: Task, **changed: object) -> str:
    """Return a task as YAML, all of it test, so that it needs no arrangements."""
    tree = task.model_dump(mode="json", exclude={"arrangements"})
    return yaml.dump({**tree, "folds": {"method": "none"}, **changed})


def task_of(form: str) -> Task:
    """Return the task of a format in `FORMATS`."""
    return task(*_TASKS[form])


def files(form: str) -> list[str]:
    """Return the names of the files that its reader opens."""
    found = task_of(form)
    return registry.load("readers", found.reader).files(found)


def read(form: str, folder: Path | None = None) -> Data:
    """Read a format from its fixture, or from another folder."""
    found = task_of(form)
    return registry.load("readers", found.reader).read(folder or FOLDER / form, found)


def copy(form: str, to: Path) -> Path:
    """Copy the fixture of a format to a folder where it may be damaged."""
    return Path(shutil.copytree(FOLDER / form, to / form))
