"""A task with its data read, one fold held out, and the arrangements of a mode."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any

from metasearch.config import registry, yaml
from metasearch.config.arrangement import Arrangement
from metasearch.config.library import Library, shipped
from metasearch.config.measure import Measure
from metasearch.config.roles import MaxLength
from metasearch.config.run import DEFAULT_ENCODER, DataConfig, FoldConfig
from metasearch.config.task import PHASES, Folds, Mode, Phase, Source, Task
from metasearch.data.folds import Split, split
from metasearch.data.locate import locate
from metasearch.data.records import Data, RetrievalData, grouped
from metasearch.data.translate import Translations, translate_train, with_source
from metasearch.errors import ConfigError, DataError, require_known

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Benchmark:
    """A task with its data read, one fold held out, and a transfer mode's arrangements.

    Attributes:
        arrangements: arrangements of a transfer mode, of each phase; empty if nothing is trained.
        data: all of the task's data, and `split` its train, dev and test part.
        translations: what was added to train; None where the task translates nothing.
        own_train: what train is without translations; None where the task translates nothing.
        ref: what it was built from; None for data that no task declares.
    """

    task: Task
    arrangements: dict[Phase, list[Arrangement]]
    data: Data
    split: Split
    measures: tuple[Measure, ...]
    fold: int
    translations: Translations | None = None
    own_train: Data | None = None
    ref: FoldConfig | None = None

    def trained_on(self, translate: bool) -> "Benchmark":
        """Return the benchmark with translations in train, or with the data's own rows alone in it."""
        if translate or self.own_train is None:
            return self
        own = replace(self.split, train=self.own_train)
        return replace(self, split=own, translations=None, own_train=None)

    @property
    def only_translated(self) -> tuple[str, ...]:
        """Languages that train has only through translation: no meta-valid episode can use them."""
        into = self.translations.block.into if self.translations else ()
        return tuple(code for code in into if code not in self.split.dev.languages)

    def part(self, name: str) -> Data:
        """Return `train`, `dev`, `test` or `all`; `ConfigError` if the task has only a test split."""
        if name in ("train", "dev") and self.task.evaluation_only:
            raise ConfigError(f"task '{self.task.name}' has no {name} part: everything is test; use --split test")
        return self.data if name == "all" else getattr(self.split, name)


def load_benchmark(task: DataConfig | str, /, mode: Mode | str | None = None, **settings: Any) -> Benchmark:
    """Look a task up by name, and build it.

    Args:
        task: settings of the data, or the name of a task such as `lareqa`.
        mode: a transfer mode, or its name, such as `mono-bi-multi`; None when nothing is trained.
        **settings: further settings of the `DataConfig`, such as `fold=1` or `data="~/data"`.

    Raises:
        ConfigError: a name is unknown, the mode does not apply, the fold is out of range, or a fold seed is given for
            a task that comes split or is all test.
        DataError: the data is missing or damaged.
    """
    ref = DataConfig.of(task, **settings)
    if ref.task.startswith("mteb:"):
        raise ConfigError(f"task '{ref.task}': mteb scores its tasks itself, with metasearch.mteb.MetasearchModel")
    library = Library(ref.include)
    whole = library.fold(ref)
    return build(whole, library.arrangements(whole.task, library.mode(mode)) if mode else {})


def build(ref: FoldConfig, arrangements: Mapping[Phase, list[Arrangement]] = MappingProxyType({})) -> Benchmark:
    """Read a task's data and hold a fold out; errors as `load_benchmark`, but of names."""
    task = with_fold_seed(ref.task, ref.fold_seed)
    path = (shipped() if ref.declared_in is None else Path(ref.declared_in)) / f"{task.name}.yaml"
    measures = _measures(task, path)
    folder, records = _read(with_source(task), path, ref.data)
    parts = split(records, task.folds, ref.fold)
    built = Benchmark(task, dict(arrangements), records, parts, measures, ref.fold, ref=ref)
    if task.translate is None:
        return built
    everything, translated, done, own = translate_train(records, parts, task, folder)
    log.info("translate: %s", done)
    return replace(built, data=everything, split=translated, translations=done, own_train=own)


def make_benchmark(
    data: RetrievalData,
    arrangements: str | Sequence[str] = (),
    *,
    fold: int = 0,
    folds: int = 5,
    seed: int | None = 0,
    measures: Sequence[str] = ("map@20", "ndcg@10", "mrr@10"),
    max_length: MaxLength | None = None,
    encoder: str = DEFAULT_ENCODER,
    name: str = "rows",
) -> Benchmark:
    """Return a benchmark with retrieval data, like `load_benchmark` for a task.

    Args:
        data: its questions and candidates.
        arrangements: what episodes are drawn along, such as `en_en -> en_de -> en_{de,en}`, all of one length; none
            where nothing is trained.
        fold: the run of groups that is test, from 0.
        folds: number of runs.
        seed: of the order in which groups are cut into runs; None keeps the order of the rows.
        measures: measures that are reported; dev scores are of the first.
        max_length: longest inputs in tokens; by default the encoder's own.
        encoder: encoder that is trained when none is named.
        name: name of the task in messages and reports.

    Raises:
        ConfigError: an arrangement or a measure is wrong, or the fold is out of range.
        DataError: there are too few groups.
    """
    by_pattern = grouped(_arrangements(arrangements, data), lambda each: str(each.pattern))
    chains = list(chain.from_iterable(by_pattern.values()))
    own = "the user's own"
    task = Task(
        task=name,
        description=data.describe(),
        kind="retrieval",
        reader="rows",
        source=Source(paper=own, url=own, licence=own),
        languages=sorted(data.languages),
        encoder=encoder,
        max_length=max_length or MaxLength(),
        folds=Folds(k=folds, shuffle=seed is not None, seed=seed or 0),
        measures=list(measures),
        monitor=measures[0],
        arrangements={pattern: list(found) for pattern, found in by_pattern.items()},
    )
    parsed = tuple(Measure.parse(measure, "retrieval") for measure in measures)
    phases = dict.fromkeys(PHASES, chains) if chains else {}
    return Benchmark(task, phases, data, split(data, task.folds, fold), parsed, fold)


def _arrangements(written: str | Sequence[str], data: RetrievalData) -> list[Arrangement]:
    """Return arrangements; `ConfigError` where one cannot be read, or names a language that the data lacks."""
    chains = []
    for text in [written] if isinstance(written, str) else written:
        try:
            chains.append(Arrangement.parse(text))
        except ValueError as error:
            raise ConfigError(f"arrangements: {error}") from None
        for language in sorted(chains[-1].languages):
            require_known(f"language in arrangement '{text}':", language, sorted(data.languages))
    lengths = {len(chain.variants): chain for chain in chains}
    if len(lengths) > 1:
        raise ConfigError(f"arrangements: {' and '.join(map(str, lengths.values()))} differ in their number of links")
    return chains


def on_folds(benchmark: Benchmark, folds: Iterable[int]) -> list[Benchmark]:
    """Return a benchmark with each of some folds held out."""
    if (ref := benchmark.ref) and benchmark.translations:  # of each train part its own
        others = (ref.model_copy(update={"fold": n}) for n in folds)
        return [benchmark if each == ref else build(each, benchmark.arrangements) for each in others]
    return [replace(benchmark, split=split(benchmark.data, benchmark.task.folds, n), fold=n) for n in folds]


def _read(task: Task, path: Path, source: str | None) -> tuple[Path, Data]:
    """Return a task's folder and its parsed content."""
    try:
        reader = registry.load("readers", task.reader)
        expected = reader.files(task)
    except ConfigError as error:
        raise ConfigError(f"{yaml.find_place(path, 'reader')}: reader: {error}") from None
    if not expected and task.kind == "translation":
        raise ConfigError(
            f"{yaml.find_place(path, 'reader')}: reader: '{task.reader}' reads no translations; use 'tatoeba'"
        )
    folder = locate(task, path, expected, source)
    records: Data = reader.read(folder, task)
    if records.kind != task.kind:
        place = yaml.find_place(path, "kind")
        raise ConfigError(f"{place}: kind: '{task.kind}', but reader '{task.reader}' gives {records.kind} data")
    if task.ignore_identical_ids and not getattr(records, "ignore_identical_ids", False):
        place = yaml.find_place(path, "ignore_identical_ids")
        raise ConfigError(f"{place}: ignore_identical_ids: the reader '{task.reader}' does not use it; 'beir' does")
    # Before the split, so that fingerprints hash the encoded texts.
    if isinstance(records, RetrievalData) and task.candidates == "sentence":
        records = records.sentences()
    if isinstance(records, RetrievalData):
        _warn_of_ids(records, folder)
    if not task.partial:
        _require_languages(records, task.languages, str(folder))
    return folder, records


def _require_languages(data: Data, languages: Iterable[str], where: str) -> None:
    """Raise `DataError` naming the languages that the data lacks."""
    missing = sorted(set(languages) - data.languages)
    if missing:
        have = ", ".join(sorted(data.languages)) or "none"
        raise DataError(f"{where}: no data for language {', '.join(missing)}; there is: {have}")


def _warn_of_ids(data: RetrievalData, folder: Path) -> None:
    """Warn if no question has answers in two languages, since ids join translations."""
    if len(data.languages) < 2 or any(len(by_language) > 1 for by_language in data.answers.values()):
        return
    first = {question.language: question.id for question in reversed(data.questions)}
    ids = ", ".join(f"'{uid}' in {language}" for language, uid in sorted(first.items()))
    log.warning(
        "%s: no id occurs in two languages (%s). Translations of a question need the same id; without it "
        "each question has relevant candidates in one language only",
        folder, ids,
    )  # fmt: skip


def _measures(task: Task, path: Path) -> tuple[Measure, ...]:
    found, problems = [], []
    for i, name in enumerate(task.measures):
        try:
            found.append(Measure.parse(name, task.kind))
        except ConfigError as error:
            problems.append(f"{yaml.find_place(path, 'measures', i)}: measures: {error}")
        else:
            if name == task.monitor and found[-1].load().languages:
                place = yaml.find_place(path, "monitor")
                problems.append(f"{place}: monitor '{name}': training needs a measure of all answers, such as map@20")
    if problems:
        raise ConfigError("\n".join(problems))
    return tuple(found)


def with_fold_seed(task: Task, seed: int | None) -> Task:
    """Return a task whose articles or rows are shuffled with a seed before folds are cut; None changes nothing."""
    if seed is None:
        return task
    if task.folds.method != "kfold":
        how = "comes split" if task.folds.method == "given" else "is all test"
        raise ConfigError(f"task '{task.name}' {how}: there are no folds to cut with fold seed {seed}")
    return task.model_copy(update={"folds": task.folds.model_copy(update={"shuffle": True, "seed": seed})})
