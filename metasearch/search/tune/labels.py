"""Labelled data: its held-out folds, and the rankings and languages that it allows."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Self, get_args

from metasearch.config.languages import UNKNOWN
from metasearch.config.measure import BALANCED, EXPANDED, MULTILINGUAL, Pool
from metasearch.config.projection import LEAST
from metasearch.data.benchmark import Benchmark, make_benchmark
from metasearch.data.folds import Split, split
from metasearch.data.records import RetrievalData, grouped
from metasearch.data.texts import tagged_of
from metasearch.errors import ConfigError
from metasearch.search.index.local import LocalStore
from metasearch.search.index.plan import SearchPlan
from metasearch.search.tune.pages import Pages
from metasearch.search.tune.steps import READS_ANSWERS, REMEMBERED

LEAST_LABELS = 8
"""Labelled questions below which nothing is held out: a fold would have one or two."""
LEAST_FOLDS = 3
"""A paired test of fewer differences tells next to nothing."""
_FREQUENT = 0.05
"""Share of the documents from which a language counts."""
Held = Literal["as asked", "new pages", "pages with labels"]
"""What a fold holds out: questions of pages with several labels alone and others with their page, whole pages, or the
former alone."""


@dataclass(frozen=True)
class Labels:
    """Labelled questions, and unlabelled texts beside them.

    Attributes:
        data: the labels.
        everything: the labels, then candidates that answer no question: trained against, and searched by every fold.
        benchmark: the labels with folds and measures; None if there are too few to hold some out.
        folds: number of folds to hold out, at most as many as the benchmark has.
        whole: whether a fold searches the documents of all folds; else its own, as in papers.
        beside: ids of candidates that are searched and not trained on.
        balanced: whether an index of the documents balances scores by default.
        paged: whether answers are pages of an index, which may be asked again.
    """

    data: RetrievalData
    everything: RetrievalData
    benchmark: Benchmark | None
    folds: int
    whole: bool = True
    beside: frozenset[str] = frozenset()
    balanced: bool = False
    paged: bool = False

    @classmethod
    def of(cls, labels: Benchmark | RetrievalData, folds: int) -> Self:
        """Return labels with `folds` folds, or the first folds of a benchmark.

        Few labels have fewer folds, each of two groups or more, and none where there are too few to hold any out.
        """
        if isinstance(labels, RetrievalData):
            most = len({question.group for question in labels.questions}) // 2
            folds = min(folds, most) if most >= LEAST_FOLDS and len(labels.questions) >= LEAST_LABELS else 0
            return cls(labels, labels, make_benchmark(labels, folds=folds, name="labels") if folds else None, folds)
        task, data = labels.task, labels.data
        if not isinstance(data, RetrievalData) or task.folds.method != "kfold":
            raise ConfigError(f"task '{task.name}': tune needs questions with answers, to be cut into folds")
        return cls(data, data, labels, min(folds, task.folds.k), whole=False)

    @classmethod
    def on_pages(cls, pages: Pages, folds: int) -> Self:
        """Return labels that were joined to pages, with `folds` folds at most."""
        everything = replace(pages.data, candidates=(*pages.data.candidates, *pages.unlabelled))
        return replace(cls.of(pages.data, folds), everything=everything, beside=pages.beside, paged=True)

    @classmethod
    def on_index(
        cls, store: LocalStore, data: RetrievalData, folds: int, same_page: bool | None, most: int,
        named: Sequence[str] = (), bases: Sequence[str] = (),
    ) -> tuple[Self, tuple[str, ...]]:  # fmt: skip
        """Return labels on the pages of an index, and what was joined and is searched, in words.

        Args:
            store: the index.
            data: labels whose candidates name or quote pages.
            folds: at most.
            same_page: whether translations of a page answer what it answers; by default they do.
            most: passages of pages without a label that are searched.
            named: files and folders of the documents as they were named; by default the root of the index.
            bases: addresses that stand for a folder.

        Raises:
            DataError: fewer than half of the labels have a page.
        """
        found, root = store.passages_by_place(), store.root
        passages = [replace(each, file=(root / each.file).as_posix()) for each in found]
        places = store.place_groups(), store.original_places().tolist()
        pages = Pages.of(data, passages, *places, named or [str(root)], most, same_page, bases)
        return replace(cls.on_pages(pages, folds), balanced=bool(store.plan.ranking.balance)), pages.notes

    @cached_property
    def alone(self) -> Mapping[tuple[str, str], int]:
        """Id and language of a question that shares pages with others → the fold that holds it out without them.

        If a page has labels in several languages, a fold holds out all its labels in one language.
        """
        found: dict[tuple[str, str], int] = {}
        if not self.paged or self.benchmark is None:
            return found
        page = {uid: each.work or each.page for each in reversed(self.data.candidates) for uid in each.answers}
        groups = grouped(self.data.questions, lambda asked: asked.group)
        for fold in range(self.folds):
            held = split(self.data, self.benchmark.task.folds, fold).test.groups
            for group in (groups[each] for each in held if len(groups.get(each, ())) > 1):
                for place, own in enumerate(grouped(group, lambda asked: page[asked.id]).values()):
                    parts = [*grouped(own, lambda asked: asked.language).values()]
                    for i, part in enumerate(parts if len(parts) > 1 else [(each,) for each in own]):
                        found |= {(each.id, each.language): (fold + place + i) % self.folds for each in part}
        return found

    def describe_alone(self) -> str:
        """Return how many questions are held out alone, in words."""
        count = len(self.data.questions)
        return f"Of {count} labels, {len(self.alone)} share a page with others, and are held out alone."

    def adapters(self, plan: SearchPlan) -> tuple[str, ...]:
        """Return the query adapters to try: one with labelled queries needs page scores, and pages with several."""
        remembers = self.alone and plan.sharpness
        return tuple(form for form in READS_ANSWERS if form != REMEMBERED or remembers)

    def hold_out(self, fold: int | None, what: Held = "as asked") -> Benchmark:
        """Return a benchmark: `test` is a fold or nothing, and `train` is the rest, unlabelled texts included.

        `dev` is empty: the last weights are scored, so a dev score would only take time and a copy of the best weights.
        """
        assert self.benchmark is not None
        held = set() if fold is None else {*split(self.data, self.benchmark.task.folds, fold).test.groups}
        alone = {own for own, at in self.alone.items() if at == fold and what != "new pages"}
        if what == "pages with labels":
            held = set()
        elif what == "as asked":
            held -= {each.group for each in self.data.questions if (each.id, each.language) in self.alone}
        train = self.everything.select([group for group in self.everything.groups if group not in held])
        train = replace(
            train,
            questions=tuple(each for each in train.questions if (each.id, each.language) not in alone),
            candidates=tuple(each for each in train.candidates if each.id not in self.beside),
        )
        test = self.data.select(held)
        if alone:
            own = (each for each in self.data.questions if each.group in held or (each.id, each.language) in alone)
            test = replace(test, questions=tuple(own))
        unlabelled = self.everything.candidates[len(self.data.candidates) :]
        pool = self.everything.candidates if self.whole else (*test.candidates, *unlabelled)
        parts = Split(train, RetrievalData((), ()), replace(test, candidates=pool))
        return replace(self.benchmark, data=self.everything, split=parts, fold=fold or 0)

    def apart(self) -> Iterator[tuple[str, list[Benchmark]]]:
        """Yield `new pages` and `pages with labels`, with the folds that hold them out."""
        for what in get_args(Held)[1:]:
            numbers = range(self.folds) if what == "new pages" else sorted({*self.alone.values()})
            yield what, [self.hold_out(fold, what) for fold in numbers]

    def pools(self) -> tuple[Pool, ...]:
        """Return the rankings to try with each step, the simplest first; for documents the default of their index."""
        counts = Counter(candidate.language for candidate in self.everything.candidates)
        # Detection takes a few short texts for another language.
        several = sum(count > _FREQUENT * counts.total() for count in counts.values()) > 1
        translated = several and any(len(languages) > 1 for languages in self.data.answers.values())
        found: tuple[Pool, ...] = (MULTILINGUAL, BALANCED, EXPANDED)[: 1 + several + translated]
        return (BALANCED, MULTILINGUAL, *found[2:]) if several and self.balanced else found

    def projectable(self) -> tuple[str, ...]:
        """Return the languages with enough texts for a projection, without any fold; none where only one has."""
        parts = [self.hold_out(fold).split.train for fold in range(self.folds)] or [self.everything]
        counts = [{language: len(own) for language, own in tagged_of(part, LEAST).items()} for part in parts]
        known = sorted(set[str]().union(*counts) - {UNKNOWN})
        found = tuple(language for language in known if all(count.get(language, 0) >= LEAST for count in counts))
        return found if len(found) > 1 else ()

    def list_skipped(self, neutral: str, projected: bool, translations: bool) -> list[str]:
        """Return what the labels and documents allow no step of, in words.

        Args:
            neutral: name of the base encoder where it has a projection, or empty.
            projected: whether a projection is tried.
            translations: whether there are some to align the encoder on.
        """
        notes = []
        if neutral:
            notes.append(f"{neutral} has a language-neutral projection already; no other one is tried.")
        elif not projected:
            notes.append(
                f"The language-neutral projection was skipped: it needs {LEAST} texts or more in each of two languages"
                f", and the labels and documents are in {', '.join(sorted(self.data.languages))}."
            )
        if len(self.pools()) == 1:
            notes.append("Balanced scores were skipped: the documents are in one language.")
        return notes + ["Alignment was skipped: it needs --translations."] * (not translations)
