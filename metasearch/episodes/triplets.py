"""Draw sets of triplets for retrieval tasks (MAML-Align paper, section 4.2 and appendices B and C).

Negatives are chosen by how hard they are (Schroff et al., 2015). With d the Euclidean distance between unit vectors and
m the margin of the triplet loss:

- easy: d(q, p) + m < d(q, n)
- semi-hard: d(q, p) < d(q, n) < d(q, p) + m   (the paper's line repeats a term)
- hard: d(q, n) < d(q, p)
"""

import logging
from collections.abc import Collection, Sequence
from functools import cached_property
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray

from metasearch.config.arrangement import Variant
from metasearch.config.recipe import Episodes, Loss
from metasearch.data.records import Candidate, Question, RetrievalData, grouped
from metasearch.episodes.episode import Embed, LabelledSet, Triplet
from metasearch.errors import ConfigError, DataError

Class = Literal["easy", "semi-hard", "hard"]
log = logging.getLogger(__name__)


def choose(
    kind: Class,
    to_positive: float,
    to_negatives: NDArray[np.float32],
    margin: float,
    count: int,
    rng: np.random.Generator,
) -> list[int]:
    """Return the indices of `count` negatives in a class, drawn at random without replacement.

    Where the class has too few members, the ones nearest to the class follow, and a warning says so. `to_positive` is
    d(q, p), and `to_negatives` are d(q, n) of N ≥ count candidates n, `(N,)`.
    """
    lower, upper = {
        "easy": (to_positive + margin, np.inf),
        "semi-hard": (to_positive, to_positive + margin),
        "hard": (-np.inf, to_positive),
    }[kind]
    members = np.flatnonzero((lower < to_negatives) & (to_negatives < upper))
    chosen = [int(i) for i in rng.permutation(members)[:count]]
    if len(chosen) < count:
        log.warning("%d of %d negatives are %s; the closest others fill the rest", len(chosen), count, kind)
        # The distance to the interval: outside of it one of the two differences is not negative.
        outside = np.maximum(lower - to_negatives, to_negatives - upper)
        # They are chosen already.
        outside[members] = np.inf
        chosen += [int(i) for i in np.argsort(outside, kind="stable")[: count - len(chosen)]]
    return chosen


# Mines hard negatives: the candidates nearest to a question, less those that may well answer it.
#
# A candidate n is no negative of question q with answer p where cos(q, n) > cos(q, p) − m |cos(q, p)|: so near, it may
# be an answer that nobody labelled (Moreira et al. 2024, "NV-Retriever: Improving text embedding models with effective
# hard-negative mining", TopK-PercPos, which is m = 0.05).


class NearestCandidates:
    """Candidates and questions in some languages, embedded once by the starting encoder."""

    def __init__(self, data: RetrievalData, languages: Collection[str], embed: Embed) -> None:
        self._candidates = [each for each in data.candidates if each.language in languages]
        questions = [each for code in sorted(languages) for each in data.questions_by_language.get(code, ())]
        self._language = np.array([each.language for each in self._candidates])
        # A text is encoded once, however many candidates have it.
        texts = list(dict.fromkeys(each.text for each in self._candidates))
        number = {text: i for i, text in enumerate(texts)}
        self._vector_of = [number[each.text] for each in self._candidates]
        self._vectors = embed(texts, "candidate")
        self._row_of = {question: i for i, question in enumerate(questions)}
        self._questions = embed([question.text for question in questions], "question")

    def near(
        self, question: Question, positive: Candidate, own: Collection[str], languages: Sequence[str], margin: float
    ) -> list[Candidate]:
        """Return negatives for a question with this answer in some languages, nearest first, without duplicates.

        `own` are texts of all its answers, `margin` is m.
        """
        cosine = (self._vectors @ self._questions[self._row_of[question]])[self._vector_of]
        right = cosine[self._candidates.index(positive)]
        far_enough = cosine <= right - margin * abs(right)
        rows = np.flatnonzero(far_enough & np.isin(self._language, languages))
        nearest = (self._candidates[i] for i in rows[np.argsort(-cosine[rows], kind="stable")])
        return list({each.text: each for each in nearest if each.text not in own}.values())


class TripletSampler:
    """Draw triplets from one split's questions.

    A set of `count` triplets uses as few questions as possible. Each question is paired with its answer in every
    candidate language, and each pair with `n_neg` negatives. The order of triplets keeps questions and languages
    balanced when a set is cut at `count`. A negative answers another question, in a language drawn evenly from the
    candidate languages. It never has the text of an answer to the question, and all negatives of a question differ;
    `mined` ones may be any candidates. Candidates labelled as wrong (`grades` of 0) come first.

    Args:
        data: data of the split to draw from.
        settings: settings of the episodes.
        loss: settings of the loss, whose margin separates the classes of negatives.
        embed: vectors on the current encoder; needed unless queries and negatives are both `random`. `similar` queries
            keep the similarity of the starting encoder.
        nearest: gives `mined` negatives.
    """

    def __init__(
        self,
        data: RetrievalData,
        settings: Episodes,
        loss: Loss,
        embed: Embed | None = None,
        nearest: NearestCandidates | None = None,
    ) -> None:
        self.data = data
        self.settings = settings
        self.margin = loss.margin
        self.embed = embed
        self.nearest = nearest
        self._warned = False
        self._askable_of: dict[Variant, tuple[Question, ...]] = {}
        self._vectors: dict[str, NDArray[np.float32]] = {}
        if settings.queries == "similar" and embed is not None:
            for language, questions in data.questions_by_language.items():
                self._vectors[language] = embed([question.text for question in questions], "question")

    def check(self, variant: Variant, count: int, where: str) -> None:
        """Raise `DataError` if a set for this variant and size cannot be drawn."""
        need = self._questions_for(variant, count)
        have = len(self._askable(variant))
        if have < need:
            raise DataError(
                f"{where}: {count} triplets of {variant} need {need} questions with answers in "
                f"{', '.join(variant.candidates)}; there are {have}. Lower it with --set, or use more data"
            )
        for language in variant.candidates:
            texts = {candidate.text for candidate in self._answers[language]}
            own = (self._own(question, variant) for question in self._askable(variant))
            # The question with the most answers of its own has the fewest negatives.
            others = len(texts) - max(len(texts & answers) for answers in own)
            if others < self.settings.n_neg:
                raise DataError(
                    f"{where}: {self.settings.n_neg} negatives in {language} need as many different answers to other "
                    f"questions; there are {others}. Lower episodes.n_neg with --set, or use more data"
                )

    def draw(self, variant: Variant, count: int, rng: np.random.Generator, like: LabelledSet | None) -> LabelledSet:
        """Draw a set of `count` triplets; a `similar` query set resembles the support set `like`."""
        if self.embed is None and (self.settings.queries, self.settings.negatives) != ("random", "random"):
            raise ConfigError("similar queries and graded or mined negatives need an encoder")
        number = self._questions_for(variant, count)
        askable = self._askable(variant)
        if like is not None and self.settings.queries == "similar":
            questions = self._similar(like, variant, number, rng)
        else:
            questions = [askable[i] for i in rng.choice(len(askable), size=number, replace=False)]
        return LabelledSet(variant, tuple(self.triplets(questions, variant, rng)[:count]))

    def triplets(self, questions: Sequence[Question], variant: Variant, rng: np.random.Generator) -> list[Triplet]:
        """Draw the triplets of these questions, which have an answer in every candidate language."""
        rows = [
            (question, positive, self._negatives(question, positive, variant, rng))
            for question in questions
            for positive in self._positives(question, variant, rng)
        ]
        # Negatives in the outer loop: the cut at `count` drops last negatives before it drops a question.
        answers = {question: tuple(sorted(self._own(question, variant))) for question in questions}
        return [
            Triplet(question, positive, negatives[j], answers[question])
            for j in range(self.settings.n_neg)
            for question, positive, negatives in rows
        ]

    def _questions_for(self, variant: Variant, count: int) -> int:
        return -(-count // (self.settings.n_neg * len(variant.candidates)))

    @cached_property
    def _answers(self) -> dict[str, tuple[Candidate, ...]]:
        """Answer sentences by language."""
        return grouped((each for each in self.data.candidates if each.answers), lambda each: each.language)

    @cached_property
    def _places(self) -> dict[str, dict[str, list[int]]]:
        """Language → text → its places among the answers."""
        table: dict[str, dict[str, list[int]]] = {}
        for language, answers in self._answers.items():
            own = table.setdefault(language, {})
            for place, answer in enumerate(answers):
                own.setdefault(answer.text, []).append(place)
        return table

    def _askable(self, variant: Variant) -> Sequence[Question]:
        """Questions in the query language that have an answer in every candidate language."""
        if variant not in self._askable_of:
            self._askable_of[variant] = self.data.askable(variant.query, variant.candidates)
        return self._askable_of[variant]

    def _positives(self, question: Question, variant: Variant, rng: np.random.Generator) -> list[Candidate]:
        by_language = self.data.answers[question.id]
        return [by_language[code][int(rng.integers(len(by_language[code])))] for code in variant.candidates]

    def _negatives(
        self, question: Question, positive: Candidate, variant: Variant, rng: np.random.Generator
    ) -> list[Candidate]:
        labelled = [each for each in self._labelled.get(question.id, ()) if each.language in variant.candidates]
        if not labelled:
            return self._unlabelled(question, positive, variant, rng)
        count, own = self.settings.n_neg, self._own(question, variant)
        chosen = [labelled[i] for i in rng.permutation(len(labelled)) if labelled[i].text not in own][:count]
        if len(chosen) < count:
            # Where some of these are labelled, too, random ones follow.
            chosen += self._unlabelled(question, positive, variant, rng)
            chosen += self._random_negatives(question, variant, 2 * count, rng)
        distinct: dict[str, Candidate] = {}
        for candidate in chosen:
            distinct.setdefault(candidate.text, candidate)
        return list(distinct.values())[:count]

    @cached_property
    def _labelled(self) -> dict[str, list[Candidate]]:
        """Question id → the candidates that are labelled as no answers to it."""
        by_id = {candidate.id: candidate for candidate in self.data.candidates} if self.data.grades else {}
        table: dict[str, list[Candidate]] = {}
        for (question, candidate), grade in self.data.grades.items():
            if not grade and candidate in by_id:
                table.setdefault(question, []).append(by_id[candidate])
        return table

    def _unlabelled(
        self, question: Question, positive: Candidate, variant: Variant, rng: np.random.Generator
    ) -> list[Candidate]:
        """Draw negatives from the class in the settings."""
        if self.settings.negatives == "random" or self.embed is None:
            return self._random_negatives(question, variant, self.settings.n_neg, rng)
        if self.settings.negatives == "mined":
            return self._mined_negatives(question, positive, variant, rng)
        size = max(self.settings.negative_pool, self.settings.n_neg)
        pool = self._random_negatives(question, variant, size, rng)
        anchor = self.embed([question.text], "question")[0]
        vectors = self.embed([positive.text, *(candidate.text for candidate in pool)], "candidate")
        away = np.linalg.norm(vectors - anchor, axis=1)
        chosen = choose(self.settings.negatives, float(away[0]), away[1:], self.margin, self.settings.n_neg, rng)
        return [pool[i] for i in chosen]

    def _mined_negatives(
        self, question: Question, positive: Candidate, variant: Variant, rng: np.random.Generator
    ) -> list[Candidate]:
        """Draw negatives from the nearest ones that are far enough, and random ones for the rest where they are few."""
        assert self.nearest is not None, "mined negatives need `nearest`"
        own, count = self._own(question, variant), self.settings.n_neg
        near = self.nearest.near(question, positive, own, variant.candidates, self.settings.relative_margin)
        pool = near[: max(self.settings.negative_pool, count)]
        mined = [pool[i] for i in rng.permutation(len(pool))[:count]]
        if len(mined) < count:
            if not self._warned:
                log.warning("only %d of %d mined negatives are far enough; the rest are random", len(mined), count)
            self._warned = True
            texts = {each.text for each in mined}
            others = self._random_negatives(question, variant, count + len(mined), rng)
            mined += [each for each in others if each.text not in texts][: count - len(mined)]
        return mined

    def _random_negatives(
        self, question: Question, variant: Variant, count: int, rng: np.random.Generator
    ) -> list[Candidate]:
        """Draw negatives with distinct texts; fewer than `count` only if there are no more."""
        own = self._own(question, variant)
        left = {code: self._others(code, own) for code in variant.candidates}
        drawn: list[Candidate] = []
        while len(drawn) < count and (codes := [code for code in variant.candidates if left[code]]):
            answers = left[codes[int(rng.integers(len(codes)))]]
            answer = answers.pop(int(rng.integers(len(answers))))
            # Two candidates may have one text: it counts once.
            if all(answer.text != other.text for other in drawn):
                drawn.append(answer)
        return drawn

    def _others(self, language: str, own: Collection[str]) -> list[Candidate]:
        """Return the answers in a language without some texts."""
        left, places = list(self._answers[language]), self._places[language]
        # To delete these few is faster than to look at every answer.
        for place in sorted((place for text in own for place in places.get(text, ())), reverse=True):
            del left[place]
        return left

    def _own(self, question: Question, variant: Variant) -> set[str]:
        """Return the texts that answer a question, or are the question itself; they are never its negatives."""
        own = {answer.text for code in variant.candidates for answer in self.data.answers[question.id][code]}
        itself = self.data.identical.get(question.id)
        return own if itself is None else own | {self.data.candidates[itself].text}

    def _similar(self, like: LabelledSet, variant: Variant, number: int, rng: np.random.Generator) -> list[Question]:
        """Draw each question from the nearest to one of the support's, in the query's language.

        In another language the translation of the support question counts as the nearest, as in the authors' code.
        """
        anchors = list(dict.fromkeys(t.question for t in cast("tuple[Triplet, ...]", like.examples)))
        chosen: list[Question] = []
        for i in range(number):
            anchor = anchors[i % len(anchors)]
            rest = [question for question in self._ranked(anchor, variant) if question not in chosen]
            if anchor.language == variant.query:
                rest = [question for question in rest if question.id != anchor.id] or rest
            near = rest[: self.settings.similar_top]
            chosen.append(near[int(rng.integers(len(near)))])
        return chosen

    def _ranked(self, anchor: Question, variant: Variant) -> list[Question]:
        """Return the askable questions by closeness to `anchor`, itself or its translation first."""
        questions = self.data.questions_by_language[variant.query]
        row = self.data.questions_by_language[anchor.language].index(anchor)
        closeness = self._vectors[variant.query] @ self._vectors[anchor.language][row]
        askable = set(self._askable(variant))
        ranked = [questions[j] for j in np.argsort(-closeness, kind="stable") if questions[j] in askable]
        return sorted(ranked, key=lambda question: question.id != anchor.id)
