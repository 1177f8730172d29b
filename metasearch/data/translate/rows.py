"""Rows added to train: translated rows of the source language, or an oracle's.

A translated row keeps its id, its article (`group`) and its answers. Only candidates that answer a question are
translated: episodes use no others. If a candidate's text is a sentence followed by its paragraph, both are translated
separately, so that a paragraph is translated once.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from metasearch.data.records import Candidate, Question, RetrievalData, ScoredPair, SimilarityData

Row = Question | Candidate | ScoredPair
Translate = Callable[[Sequence[str], str], dict[str, str]]
"""Translates texts of the source language into a language: text → translation."""


@dataclass(frozen=True)
class TranslatedRow:
    """A row that is added to train."""

    row: Row
    origin: Row


def retrieval_rows(
    train: RetrievalData, source: str, into: Sequence[str], keep: bool, translate: Translate
) -> Iterator[TranslatedRow]:
    """Yield the questions and candidates of a train part in other languages."""
    for language in into:
        asked = {q.id for q in train.questions if q.language == language} if keep else set()
        answered = {q for q, found in train.answers.items() if language in found} if keep else set()
        questions = [q for q in train.questions if q.language == source and q.id not in asked]
        # What answers a question is translated with all that it answers, so that it is no wrong answer to the others.
        wanted = [c for c in train.candidates if c.language == source and not answered.issuperset(c.answers)]
        table = translate([*(q.text for q in questions), *(text for c in wanted for text in _texts(c))], language)
        for question in questions:
            yield TranslatedRow(replace(question, language=language, text=table[question.text]), question)
        for candidate in wanted:
            head, gap, tail = _parts(candidate)
            text = table[head] + gap + (table[tail] if tail else "")
            shown = table[candidate.shown] if candidate.shown else ""
            # An id is unique within the data; this one also tells where the candidate comes from.
            uid = f"{candidate.id}>{language}"
            row = replace(candidate, id=uid, language=language, text=text, shown=shown)
            yield TranslatedRow(row, candidate)


def _parts(candidate: Candidate) -> tuple[str, str, str]:
    """Split a candidate's displayed text into its text, white space and the rest, if it starts with the text."""
    rest = candidate.text.removeprefix(candidate.shown)
    if rest == candidate.text:
        return candidate.text, "", ""
    tail = rest.lstrip()
    return candidate.shown, rest[: len(rest) - len(tail)], tail


def _texts(candidate: Candidate) -> list[str]:
    head, _, tail = _parts(candidate)
    return list(filter(None, [head, tail, candidate.shown]))


def similarity_rows(
    train: SimilarityData, source: str, into: Sequence[str], keep: bool, translate: Translate
) -> Iterator[TranslatedRow]:
    """Yield a train part's source-language pairs in every other language pair."""
    origins = [pair for pair in train.pairs if pair.languages == (source, source)]
    texts = list(dict.fromkeys(text for pair in origins for text in pair.texts))
    tables = {source: dict(zip(texts, texts, strict=True)), **{code: translate(texts, code) for code in into}}
    known = {(pair.group, frozenset(pair.languages)) for pair in train.pairs} if keep else set()
    for languages in _pairs(source, into):
        first, second = languages
        for pair in origins:
            if (pair.group, frozenset(languages)) not in known:
                text1, text2 = tables[first][pair.text1], tables[second][pair.text2]
                name = f"{first}-{second}"
                yield TranslatedRow(replace(pair, pair=name, languages=languages, text1=text1, text2=text2), pair)


def _pairs(source: str, into: Sequence[str]) -> list[tuple[str, str]]:
    codes = [source, *into]
    return [(one, other) for i, one in enumerate(codes) for other in codes[i:] if (one, other) != (source, source)]


def oracle_retrieval(train: RetrievalData, source: str, into: Sequence[str]) -> Iterator[TranslatedRow]:
    """Yield a train part's own rows in other languages for source-language questions."""
    asked = {question.id: question for question in train.questions if question.language == source}
    for question in train.questions:
        if question.language in into and question.id in asked:
            yield TranslatedRow(question, asked[question.id])
    for candidate in train.candidates:
        ids = tuple(id for id in candidate.answers if id in asked and source in train.answers[id])
        if candidate.language in into and ids:
            yield TranslatedRow(replace(candidate, answers=ids), train.answers[ids[0]][source][0])


def oracle_similarity(train: SimilarityData, source: str, into: Sequence[str]) -> Iterator[TranslatedRow]:
    """Yield a train part's own pairs in other languages for source-language rows."""
    origins = {pair.group: pair for pair in train.pairs if pair.languages == (source, source)}
    wanted = {frozenset(pair) for pair in _pairs(source, into)}
    for pair in train.pairs:
        if frozenset(pair.languages) in wanted and pair.group in origins:
            yield TranslatedRow(pair, origins[pair.group])


def without(train: RetrievalData | SimilarityData, languages: Iterable[str]) -> RetrievalData | SimilarityData:
    """Return data without rows in some languages; a pair is dropped if either text is in one."""
    out = set(languages)
    if isinstance(train, SimilarityData):
        return replace(train, pairs=tuple(pair for pair in train.pairs if not out & set(pair.languages)))
    questions = tuple(question for question in train.questions if question.language not in out)
    candidates = tuple(candidate for candidate in train.candidates if candidate.language not in out)
    return replace(train, questions=questions, candidates=candidates)
