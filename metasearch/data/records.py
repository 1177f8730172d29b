"""Results of readers: questions and candidates for retrieval, scored pairs for similarity, or translations.

All data has *groups*, units that must not straddle train, dev and test: articles in retrieval, rows in similarity. A
group has the same content in each language.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import ClassVar, NamedTuple, Protocol, TypeVar

from metasearch.config.roles import Role
from metasearch.config.task import TaskKind
from metasearch.io import fingerprint_of

Item = TypeVar("Item")
Key = TypeVar("Key")


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, tuple[Item, ...]]:
    """Group items by key; keys and items keep their order."""
    table: dict[Key, list[Item]] = {}
    for item in items:
        table.setdefault(key(item), []).append(item)
    return {value: tuple(of_value) for value, of_value in table.items()}


def commonest(tags: Iterable[str]) -> str:
    """Return the most frequent language tag; of equally frequent ones the first in alphabetical order."""
    return min(Counter(tags).items(), key=lambda item: (-item[1], item[0]))[0]


class Example(Protocol):
    """A few texts that belong together: a triplet, a scored pair, a translation, or a pair with a label."""

    @property
    def roles(self) -> Mapping[str, Role]:
        """Role of each text, by the name of its column."""

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts, in the order of `roles`."""

    @property
    def languages(self) -> tuple[str, ...]:
        """Language codes of the texts; the first belongs to the question or first sentence."""

    @property
    def ids(self) -> tuple[str, ...]:
        """What the example is called in its data, such as its row; empty where only its texts tell it from others."""

    @property
    def score(self) -> float | None:
        """Gold similarity from 0 to 1, in kinds that have one."""

    @property
    def answers(self) -> tuple[str, ...]:
        """Texts of candidates labelled as answers to the question."""

    def lines(self) -> tuple[str, ...]:
        """Return the example as lines for a person to read."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question in one language; translations share the id. `group` is its article."""

    id: str
    language: str
    text: str
    group: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A text that may answer questions, in one language.

    Attributes:
        id: unique within the data.
        text: text that the encoder reads (for LAReQA the sentence followed by its paragraph).
        group: the article it belongs to; empty where it is in the pool of every part.
        answers: ids of the questions that it answers.
        shown: text for a person to read; the sentence without its paragraph.
        page: the page that it is a passage of. A ranked list has a page once, at its best passage. Empty where each
            candidate is ranked by itself.
        work: what the page shares with its translations; empty where it has none. Pages of a `group` may differ in it.
    """

    id: str
    language: str
    text: str
    group: str
    answers: tuple[str, ...] = ()
    shown: str = ""
    page: str = ""
    work: str = ""


@dataclass(frozen=True, slots=True)
class ScoredPair:
    """Two sentences and their similarity.

    Attributes:
        pair: the name of its language pair, such as `tr-en`; the texts may be in the other order.
        languages: languages of the two texts, in their order.
        score: gold similarity from 0 to 1.
        group: the row it belongs to; translations of a row share it.
    """

    pair: str
    languages: tuple[str, str]
    text1: str
    text2: str
    score: float
    group: str

    roles: ClassVar[Mapping[str, Role]] = {"text1": "text", "text2": "text"}
    answers: ClassVar[tuple[str, ...]] = ()

    @property
    def texts(self) -> tuple[str, str]:
        """The two sentences."""
        return self.text1, self.text2

    @property
    def ids(self) -> tuple[str, str]:
        """Language pair and row."""
        return self.pair, self.group

    def lines(self) -> tuple[str, ...]:
        """Return the score from 0 to 5 and the sentences, in one line."""
        return (f"{5 * self.score:.1f}  {self.text1}  |  {self.text2}",)


@dataclass(frozen=True, slots=True)
class Translation:
    """A text in the pivot language, which the teacher knows, and its translation."""

    source: str
    target: str
    languages: tuple[str, str]

    roles: ClassVar[Mapping[str, Role]] = {"source": "text", "target": "text"}
    ids: ClassVar[tuple[str, ...]] = ()
    score: ClassVar[None] = None
    answers: ClassVar[tuple[str, ...]] = ()

    @property
    def texts(self) -> tuple[str, str]:
        """Source and target."""
        return self.source, self.target

    def lines(self) -> tuple[str, ...]:
        """Return both texts in one line."""
        return (f"{self.source}  |  {self.target}",)


@dataclass(frozen=True)
class RetrievalData:
    """Questions and candidates, in a fixed order that also breaks ties in rankings.

    Attributes:
        given: the split (`train`, `dev`, `test`) of each group where the data comes split; empty otherwise.
        translated: how rows of train are translated, which belongs to the fingerprint; empty where none are.
        grades: ids of a question and a candidate → relevance, where it is not 1; 0 labels one that is no answer.
        missing: ids of a question and a relevant document that is not among the candidates → relevance. As in
            trec_eval, it counts as not found.
        ignore_identical_ids: a candidate with the id of a question is the question itself, and is not ranked for it.
        places: id of a candidate → where its first label stands, such as `labels.csv:3`, where that is known.
        notes: what was noticed while the data was read, such as detected languages; in words.
        clicks: ids of a question and a candidate whose relevance is a number of clicks.
    """

    questions: tuple[Question, ...]
    candidates: tuple[Candidate, ...]
    given: Mapping[str, str] = field(default_factory=dict)
    translated: str = ""
    grades: Mapping[tuple[str, str], float] = field(default_factory=dict)
    missing: Mapping[tuple[str, str], float] = field(default_factory=dict)
    ignore_identical_ids: bool = False
    places: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    clicks: frozenset[tuple[str, str]] = frozenset()

    kind: ClassVar[TaskKind] = "retrieval"

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """Articles in file order, candidates' articles first."""
        own = (*(candidate.group for candidate in self.candidates), *(question.group for question in self.questions))
        return tuple(dict.fromkeys(filter(None, own)))

    @cached_property
    def languages(self) -> frozenset[str]:
        """Languages that have questions or candidates."""
        return frozenset(q.language for q in self.questions) | {c.language for c in self.candidates}

    @cached_property
    def answers(self) -> dict[str, dict[str, tuple[Candidate, ...]]]:
        """Question id → language → the candidates that answer it."""
        table: dict[str, dict[str, list[Candidate]]] = {}
        for candidate in self.candidates:
            for question in candidate.answers:
                table.setdefault(question, {}).setdefault(candidate.language, []).append(candidate)
        return {uid: {tag: tuple(found) for tag, found in own.items()} for uid, own in table.items()}

    @cached_property
    def questions_by_language(self) -> dict[str, tuple[Question, ...]]:
        """Questions by language, in file order."""
        return grouped(self.questions, lambda question: question.language)

    @cached_property
    def identical(self) -> dict[str, int]:
        """Question id → the index of the candidate that is the question itself; empty unless such are ignored."""
        if not self.ignore_identical_ids:
            return {}
        asked = {question.id for question in self.questions}
        return {candidate.id: i for i, candidate in enumerate(self.candidates) if candidate.id in asked}

    def askable(self, query: str, candidates: Collection[str]) -> tuple[Question, ...]:
        """Return questions in the language `query` with an answer in every language in `candidates`."""
        asked, wanted = self.questions_by_language.get(query, ()), set(candidates)
        return tuple(question for question in asked if wanted <= self.answers.get(question.id, {}).keys())

    def select(self, groups: Collection[str]) -> "RetrievalData":
        """Return the data of these articles, with all candidates."""
        wanted = set(groups)
        questions = tuple(question for question in self.questions if question.group in wanted)
        candidates = tuple(candidate for candidate in self.candidates if candidate.group in wanted)
        if len(candidates) < len(self.candidates) and any(not candidate.group for candidate in self.candidates):
            # In every part, but it answers no question of another one.
            ids = {question.id for question in questions}
            candidates = tuple(
                each if each.group else replace(each, answers=tuple(own for own in each.answers if own in ids))
                for each in self.candidates
                if not each.group or each.group in wanted
            )
        return replace(self, questions=questions, candidates=candidates)

    def sentences(self) -> "RetrievalData":
        """Return the same data with each candidate's sentence alone, without its paragraph."""
        return replace(self, candidates=tuple(replace(c, text=c.shown or c.text) for c in self.candidates))

    @cached_property
    def fingerprint(self) -> str:
        """Hash of everything that a learner or evaluation can see."""
        questions = ((q.id, q.language, q.text, q.group) for q in self.questions)
        pages = ((c.page, *([c.work] if c.work else ())) if c.page else () for c in self.candidates)
        candidates = (
            (c.id, c.language, c.text, c.group, *c.answers, *page)
            for c, page in zip(self.candidates, pages, strict=True)
        )
        grades = ((*pair, repr(grade)) for pair, grade in chain(self.grades.items(), self.missing.items()))
        ignored = [("ignore_identical_ids",)] if self.ignore_identical_ids else []
        return fingerprint_of(chain(questions, candidates, grades, ignored), self.translated)

    def describe(self) -> str:
        """Return the size in words, such as `274 questions, 1284 candidates in 7 languages`."""
        distinct = len({question.id for question in self.questions})
        return f"{distinct} questions, {len(self.candidates)} candidates in {len(self.languages)} languages"


@dataclass(frozen=True)
class SimilarityData:
    """Scored pairs in a fixed order; `given` and `translated` as in `RetrievalData`."""

    pairs: tuple[ScoredPair, ...]
    given: Mapping[str, str] = field(default_factory=dict)
    translated: str = ""

    kind: ClassVar[TaskKind] = "similarity"

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """Rows in file order."""
        return tuple(dict.fromkeys(pair.group for pair in self.pairs))

    @cached_property
    def languages(self) -> frozenset[str]:
        """Languages that have sentences."""
        return frozenset(code for pair in self.pairs for code in pair.languages)

    @cached_property
    def by_languages(self) -> dict[frozenset[str], tuple[ScoredPair, ...]]:
        """Pairs by languages, in either order."""
        return grouped(self.pairs, lambda pair: frozenset(pair.languages))

    def select(self, groups: Collection[str]) -> "SimilarityData":
        """Return the data of these rows."""
        wanted = set(groups)
        return replace(self, pairs=tuple(pair for pair in self.pairs if pair.group in wanted))

    @cached_property
    def fingerprint(self) -> str:
        """Hash of everything that a learner or evaluation can see."""
        rows = ((p.pair, *p.languages, p.text1, p.text2, repr(p.score), p.group) for p in self.pairs)
        return fingerprint_of(rows, self.translated)

    def describe(self) -> str:
        """Return the size in words, such as `300 pairs in 6 language pairs`."""
        return f"{len(self.pairs)} pairs in {len(self.by_languages)} language pairs"


@dataclass(frozen=True)
class TranslationData:
    """Pairs of a text in the pivot language (`source`) and its translation (`target`), in a fixed order.

    The pairs of one language are one file, in which translations are searched: a *group*, named after its language.

    Attributes:
        pairs: file after file; the order within a file breaks ties in rankings.
        named: name → languages over which a mean is reported, also languages without pairs.
        given: the split of each file where the data comes split.
    """

    pairs: tuple[Translation, ...]
    named: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    given: Mapping[str, str] = field(default_factory=dict)

    kind: ClassVar[TaskKind] = "translation"

    @cached_property
    def by_language(self) -> dict[str, tuple[Translation, ...]]:
        """Pairs by the language of the translation, in file order."""
        return grouped(self.pairs, lambda pair: pair.languages[1])

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """Files by the language of their translations, in the task's order."""
        return tuple(self.by_language)

    @cached_property
    def languages(self) -> frozenset[str]:
        """Languages that have texts, the pivot among them."""
        return frozenset(code for pair in self.pairs for code in pair.languages)

    def select(self, groups: Collection[str]) -> "TranslationData":
        """Return the data in these files."""
        wanted = set(groups)
        return replace(self, pairs=tuple(pair for pair in self.pairs if pair.languages[1] in wanted))

    @cached_property
    def fingerprint(self) -> str:
        """Hash of everything that an evaluation can see."""
        return fingerprint_of((*p.languages, p.source, p.target) for p in self.pairs)

    def describe(self) -> str:
        """Return the size in words, such as `32692 translations, in 36 languages`."""
        return f"{len(self.pairs)} translations, in {len(self.by_language)} languages"


Labelled = RetrievalData | SimilarityData
"""Data that can be trained on."""
Data = Labelled | TranslationData


# The texts of any kind of data, as an encoder reads them.


class RoleText(NamedTuple):
    """A text, its role and its language."""

    role: Role
    text: str
    language: str


def texts_of(data: Data) -> Iterator[RoleText]:
    """Yield every text in questions, candidates or pairs, in order, with duplicates."""
    if isinstance(data, RetrievalData):
        yield from (RoleText("question", question.text, question.language) for question in data.questions)
        yield from (RoleText("candidate", candidate.text, candidate.language) for candidate in data.candidates)
    else:
        for pair in data.pairs:
            yield from (RoleText("text", *side) for side in zip(pair.texts, pair.languages, strict=True))
