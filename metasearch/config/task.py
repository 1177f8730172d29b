"""Tasks and transfer modes, declared in `tasks/*.yaml` and `tasks/modes/*.yaml`."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field, ValidationInfo, model_validator

from metasearch.config.arrangement import Arrangement, Pattern
from metasearch.config.base import Contradiction, FrozenConfig, Name
from metasearch.config.languages import DeclaredLanguage, parse_pair
from metasearch.config.roles import MaxLength
from metasearch.errors import ConfigError

ORACLE = "oracle"
"""How a retrieval task is translated: by the parallel rows that the data itself has."""


class Translate(FrozenConfig):
    """Rows of train that are trained on in other languages, too.

    Attributes:
        by: `files` with translations, of a similarity task; `oracle`, the rows of the data with the same ids in other
            languages, of a retrieval task.
        source: the language to translate from. If it is no language of the task, it is read for train alone.
        into: languages to translate into; arrangements may name them.
        own: rows of train in these languages: `drop` them, or `keep` them and translate only what has none. It must be
            set if there are any.
        overlap: a row whose text is also in dev or test is an error (`refuse`) or dropped and counted (`drop`). A row
            whose id is there is always an error.
        options: the `path` of the files below the folder of the data, with `{source}` and `{target}`, or `{language}`.
    """

    by: Literal["files", "oracle"] = "files"
    source: DeclaredLanguage
    into: Annotated[tuple[DeclaredLanguage, ...], Field(min_length=1)]
    own: Literal["drop", "keep"] | None = None
    overlap: Literal["refuse", "drop"] = "refuse"
    options: dict[Literal["path"], str] = Field(default_factory=dict)

    @property
    def path(self) -> str:
        """Path of the files with translations."""
        return self.options.get("path", "{source}-{target}.tsv")

    @model_validator(mode="after")
    def _consistent(self) -> "Translate":
        if len(set(self.into)) < len(self.into):
            raise Contradiction("duplicate language", "into")
        if self.source in self.into:
            raise Contradiction(f"'{self.source}' is the source language", "into")
        if self.by == ORACLE and self.own == "keep":
            raise Contradiction("an oracle uses the rows of train; omit the key", "own")
        if self.by == ORACLE and self.options:
            raise Contradiction("an oracle has none", "options")
        if not ("{language}" in self.path or ("{source}" in self.path and "{target}" in self.path)):
            raise Contradiction("expected {language}, or {source} and {target}, in the path", "options", "path")
        if not self.path.removesuffix(".gz").endswith((".csv", ".tsv")):
            raise Contradiction("expected a path that ends in .csv, .csv.gz, .tsv or .tsv.gz", "options", "path")
        return self


TaskKind = Literal["retrieval", "similarity", "translation"]
Phase = Literal["meta-train", "meta-valid"]
PHASES: tuple[Phase, ...] = ("meta-train", "meta-valid")


class Source(FrozenConfig):
    """Where a task comes from."""

    paper: str
    url: str
    licence: str
    note: str | None = None


class Folds(FrozenConfig):
    """How data is split.

    Attributes:
        method: `kfold` cuts groups into k runs in file order; `given` uses the split of the data; with `none` all of it
        is test, and the task is for evaluation only.
        shuffle: shuffle the groups by the seed before cutting (a departure from the paper).
    """

    method: Literal["kfold", "given", "none"] = "kfold"
    # Test and dev take a k-th each, and something must be left to train on.
    k: Annotated[int, Field(ge=3)] = 5
    shuffle: bool = False
    seed: int = 0


def _require_distinct(values: Sequence[str], *at: str) -> None:
    for i, value in enumerate(values):
        if value in values[:i]:
            raise Contradiction(f"'{value}' is duplicated", *at)


def _parse_pair(pair: str, info: ValidationInfo) -> str:
    languages = info.data.get("languages")  # missing if one of them is wrong
    return "-".join(parse_pair(pair, languages)) if languages else pair


class Task(FrozenConfig):
    """A benchmark: data, languages, protocol and measures.

    Attributes:
        name: key `task` in files, and the file's own name.
        languages: tags, including all in `pairs` and `groups`.
        pairs: language pairs of a similarity task, such as `ar-en`.
        kind: `retrieval` ranks candidates for questions, `similarity` scores pairs, `translation` looks for the
            translation of a text in its language.
        reader: the plug-in that reads the files.
        data: folder of the files relative to this file, for data that lies beside its declaration.
        encoder: encoder that is trained when none is named.
        partial: of a translation task: languages without files are passed over, as long as one has files.
        groups: of a translation task: name → languages over which a mean is reported.
        candidates: of a retrieval task: whether the encoder sees a sentence followed by its paragraph, or alone.
        ignore_identical_ids: of a retrieval task: a document with the id of a query is the query itself, as in ArguAna,
            and is not ranked for it.
        measures: measures that are reported; `monitor` is the one that early stopping watches.
        translate: rows of train that are translated, and into which languages; None trains on the data alone.
        arrangements: the language arrangements that realise each pattern of a transfer mode; none where all is test.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, serialize_by_alias=True)

    name: str = Field(alias="task")
    description: str
    kind: TaskKind
    reader: Name
    data: str | None = None
    source: Source
    languages: Annotated[list[DeclaredLanguage], Field(min_length=1)]
    pairs: tuple[Annotated[str, AfterValidator(_parse_pair)], ...] = ()
    partial: bool = False
    groups: dict[str, Annotated[list[DeclaredLanguage], Field(min_length=1)]] = Field(default_factory=dict)
    candidates: Literal["paragraph", "sentence"] = "paragraph"
    ignore_identical_ids: bool = False
    encoder: Name
    max_length: MaxLength = MaxLength()
    folds: Folds = Folds()
    measures: Annotated[list[str], Field(min_length=1)]
    monitor: str
    translate: Translate | None = None
    arrangements: dict[str, Annotated[list[Arrangement], Field(min_length=1)]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _consistent(self) -> "Task":
        if self.monitor not in self.measures:
            raise Contradiction(f"'{self.monitor}' is not among the measures {', '.join(self.measures)}", "monitor")
        self._check_kind()
        self._check_languages()
        for key in ("languages", "pairs", "measures"):
            _require_distinct(getattr(self, key), key)
        self._check_translate()
        patterns: set[Pattern] = set()
        for written, arrangements in self.arrangements.items():
            try:
                pattern = Pattern.parse(written)
            except ValueError as error:
                raise Contradiction(str(error), "arrangements", written) from None
            if pattern in patterns:
                raise Contradiction(f"the pattern '{pattern}' is duplicated", "arrangements", written)
            patterns.add(pattern)
            for i, arrangement in enumerate(arrangements):
                at = ("arrangements", written, i)
                if arrangement.pattern != pattern:
                    raise Contradiction(f"'{arrangement}' is {arrangement.pattern}, listed under '{pattern}'", *at)
                unknown = sorted(arrangement.languages - self.trained_languages)
                if unknown:
                    raise Contradiction(f"'{arrangement}' uses {', '.join(unknown)}, not a language of the task", *at)
        return self

    def _check_kind(self) -> None:
        if self.kind == "translation" and not self.evaluation_only:
            raise Contradiction("a translation task has only a test split; write folds: {method: none}", "folds")
        if self.evaluation_only and self.arrangements:
            raise Contradiction("with folds: {method: none} everything is test", "arrangements")
        # An empty mapping is a choice, a missing key is a slip.
        if not self.evaluation_only and "arrangements" not in self.model_fields_set:
            raise Contradiction("missing key", "arrangements")
        if self.kind == "similarity" and not self.pairs:
            raise Contradiction("a similarity task needs language pairs, such as [ar-ar, ar-en]", "pairs")
        own: dict[str, TaskKind] = {"partial": "translation", "groups": "translation", "pairs": "similarity"}
        own |= {"candidates": "retrieval", "ignore_identical_ids": "retrieval"}
        for key, kind in own.items():
            default = type(self).model_fields[key].get_default(call_default_factory=True)
            if self.kind != kind and getattr(self, key) != default:
                raise Contradiction(f"only a {kind} task has {key}", key)

    def _check_languages(self) -> None:
        for name, codes in self.groups.items():
            unknown = [code for code in codes if code not in self.languages]
            if unknown:
                raise Contradiction(f"{', '.join(unknown)} is not a language of the task", "groups", name)
            _require_distinct(codes, "groups", name)

    def _check_translate(self) -> None:
        if self.translate is None:
            return
        if self.evaluation_only:
            raise Contradiction("with folds: {method: none} everything is test", "translate")
        if (self.translate.by == ORACLE) != (self.kind == "retrieval"):
            how = "rows of the data; add translations there and use by: oracle"
            wanted = how if self.kind == "retrieval" else "files with translations; use by: files"
            raise Contradiction(f"a {self.kind} task takes {wanted}", "translate", "by")
        foreign = [code for code in self.translate.into if code not in self.languages]
        if self.translate.by == ORACLE and foreign:
            raise Contradiction(
                f"{', '.join(foreign)} is not a language of the task; an oracle takes rows of the task",
                "translate",
                "into",
            )

    @property
    def language_pairs(self) -> list[tuple[str, str]]:
        """The languages in each of `pairs`."""
        return [parse_pair(pair, self.languages) for pair in self.pairs]

    @property
    def trained_languages(self) -> frozenset[str]:
        """Possible languages in train: the task's and its translations'."""
        block = self.translate
        return frozenset(self.languages) | (frozenset({block.source, *block.into}) if block else frozenset())

    @property
    def evaluation_only(self) -> bool:
        """Whether the task has only a test split."""
        return self.folds.method == "none"

    def require_training(self) -> None:
        """Raise `ConfigError` for a task with only a test split."""
        if self.evaluation_only:
            raise ConfigError(
                f"task '{self.name}' is for evaluation only: all of it is test, nothing can be trained on it."
                f" Score an encoder with: metasearch evaluate --task {self.name}"
            )

    def arrangements_of(self, pattern: Pattern) -> list[Arrangement]:
        """Return the arrangements that realise a pattern; empty when the task has none."""
        # Keys are compared after parsing: `mono->bi` and `mono → bi` are one pattern.
        return next((value for key, value in self.arrangements.items() if Pattern.parse(key) == pattern), [])


class Mode(FrozenConfig):
    """A transfer mode: patterns whose arrangements alternate over the episodes in each phase."""

    mode: str
    description: str
    meta_train: Annotated[list[Pattern], Field(min_length=1)]
    meta_valid: Annotated[list[Pattern], Field(min_length=1)]

    @model_validator(mode="after")
    def _one_length(self) -> "Mode":
        if len({len(pattern.kinds) for pattern in (*self.meta_train, *self.meta_valid)}) > 1:
            raise ValueError("all patterns of a mode must have the same number of links")
        return self

    @property
    def links(self) -> int:
        """Number of sets in an episode: 2 for X→Y, 3 for X→Y→Z."""
        return len(self.meta_train[0].kinds)

    def arrangements(self, task: Task) -> dict[Phase, list[Arrangement]]:
        """Return the arrangements of each phase on a task; nothing if the task has none for one of the patterns."""
        patterns: dict[Phase, list[Pattern]] = {"meta-train": self.meta_train, "meta-valid": self.meta_valid}
        found = {phase: [task.arrangements_of(each) for each in patterns[phase]] for phase in PHASES}
        if not all(each for by_pattern in found.values() for each in by_pattern):
            return {}
        return {phase: [item for each in by_pattern for item in each] for phase, by_pattern in found.items()}

    def __str__(self) -> str:
        return self.mode


def resolve(task: Task, mode: Mode, modes: Sequence[Mode] = ()) -> dict[Phase, list[Arrangement]]:
    """Return the arrangements per phase for a mode on a task; `modes` are named in the error if they have some."""
    task.require_training()
    found = mode.arrangements(task)
    if not found:
        have = ", ".join(str(each) for each in modes if each.arrangements(task)) or "none"
        known = f" (modes of {task.name}: {have})" if modes else ""
        raise ConfigError(f"mode '{mode}' has no arrangement for task '{task.name}'{known}")
    return found
