"""From what a command asks for to the job of a preparation: files and test sets by name."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from metasearch.config import yaml
from metasearch.config.corpus import CorpusSettings
from metasearch.config.languages import normalise_tag, primary_language
from metasearch.config.library import Library
from metasearch.config.run import DataConfig
from metasearch.data.benchmark import load_benchmark
from metasearch.data.overlap import TestSet, set_of, set_of_file
from metasearch.data.parallel.files import Part, find
from metasearch.data.prepared.manifest import OF_STAGES, Asked, Input, Manifest
from metasearch.errors import ConfigError, DataError, nearest
from metasearch.io import digest
from metasearch.pipelines.prepare.job import prepare
from metasearch.pipelines.prepare.worker import Job, language_of
from metasearch.runs.callbacks import SILENT, Callback


def prepare_corpus(
    paths: Sequence[str | Path],
    folder: Path,
    settings: Mapping[str, Any] | None = None,
    across: bool = False,
    detect: Sequence[str] = (),
    exclude: Sequence[str] = (),
    data: str | None = None,
    include: Sequence[str] = (),
    processes: int = 1,
    callback: Callback = SILENT,
) -> Manifest:
    """Prepare a parallel corpus for `metasearch distill --corpus`; returns its manifest.

    Args:
        paths: files and folders of parallel text.
        folder: of the corpus; one that was begun in the same way is gone on with.
        settings: keys of `CorpusSettings` but `OF_STAGES`, which a stage of a distillation has.
        across: leave out a pair that another file had before, too.
        detect: leave out pairs of which a side is in another language, told among these; `("all",)` among all.
        exclude: tasks and files whose texts are left out.
        data: folder of the tasks' files.
        include: folders with further tasks.
        processes: that work at the same time.
        callback: hears of the progress.

    Raises:
        ConfigError: a name or a setting is wrong.
        DataError: a file is missing, damaged or has no pair.
        RunFolderError: the folder holds another corpus, or cannot be written.
    """
    if of_stages := sorted(OF_STAGES & set(settings or {})):
        name = of_stages[0]
        raise ConfigError(f"settings of the corpus: {name} is a setting of stages: --set stages.NAME.corpus.{name}=...")
    chosen = yaml.check(dict(settings or {}), CorpusSettings, "settings of the corpus")
    if across and chosen.max_lines:
        raise ConfigError(
            "--dedup-global and --max-lines: use either one: together, the first pairs of a file would depend on other "
            "files"
        )
    files = [Path(path) for path in paths]
    parts, _ = find(files, chosen)
    tests = tuple(_test_set(name, data, include) for name in dict.fromkeys(exclude))
    hashes = {test.name: _hash(test) for test in tests}
    if len(hashes) < len(tests):
        twice = next(test.name for i, test in enumerate(tests) if test.name in {each.name for each in tests[:i]})
        raise ConfigError(f"--exclude: duplicate name '{twice}'; rename a file")
    told = tuple(primary_language(normalise_tag(language)) for language in detect)
    asked = Asked(settings=chosen, across=across, detect=told, exclude=hashes, inputs=_inputs(parts))
    _check_languages(asked, parts)
    return prepare(Job(folder=folder, asked=asked, tests=tests), files, processes, callback)


def _inputs(parts: Sequence[Part]) -> tuple[Input, ...]:
    found = []
    for path in (path for part in parts for path in part.paths):
        try:
            name = str(path.resolve())
            name.encode()
            found.append(Input(path=name, size=path.stat().st_size, sha256=digest(path)))
        except UnicodeEncodeError:
            raise DataError(f"{name!r}: the name of the file or of a folder above it is not UTF-8") from None
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None
    return tuple(found)


def _test_set(name: str, data: str | None, include: Sequence[str]) -> TestSet:
    """Return the texts of a task or of a file."""
    tasks = Library(include).names("task")
    if name in tasks:
        # The folder of the data is that of all tasks; one whose data lies beside it needs none.
        beside = Library(include).task(name).data
        ref = DataConfig(task=name, data=None if beside else data, include=tuple(include))
        return set_of(name, load_benchmark(ref).data)
    if not Path(name).exists():
        raise ConfigError(f"--exclude {name}: neither a file nor a task.{nearest(name, tasks)}")
    return set_of_file(Path(name))


def _hash(test: TestSet) -> str:
    texts = json.dumps([sorted(text for text, _ in texts) for texts in (test.texts, test.passages)])
    return hashlib.sha256(texts.encode()).hexdigest()[:16]


def _check_languages(asked: Asked, parts: Sequence[Part]) -> None:
    """Raise `ConfigError` where languages are to be told, and that of a file cannot be."""
    language_of(asked)
    if not asked.detect:
        return
    from metasearch.data.documents.detect import detector

    for part in parts:
        for language in (part.pivot, part.language):
            plain = primary_language(language)
            if asked.detect == ("all",):
                detector([plain])
            elif plain not in asked.detect:
                raise ConfigError(
                    f"--detect {','.join(asked.detect)}: {part.path} is in {plain}, too; name all languages"
                )
