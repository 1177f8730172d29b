"""Queries, documents and graded judgements become retrieval data, as trec_eval reads them.

A repeated judgement counts once, and contradictory grades are an error. A relevant document that is missing, or has no
text, counts as never found. A query that is missing, or has no text, is skipped. The log counts all of these, which
occur in published benchmarks such as ArguAna and FiQA.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from metasearch.config.languages import parse_tag
from metasearch.data.languages import detect_all
from metasearch.data.readers import joined
from metasearch.data.records import Candidate, Question, RetrievalData
from metasearch.errors import DataError

log = logging.getLogger(__name__)

Pair = tuple[str, str]
"""Ids of a query and a document."""


@dataclass
class JudgedText:
    """A query or a document; the language is empty until it is detected, and the text where it shows nothing."""

    place: str
    text: str
    language: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """The relevance of a document for a query; grade 0 is not relevant."""

    place: str
    split: str
    query: str
    document: str
    grade: float


def judged_data(
    labels: Iterable[Judgement],
    queries: Mapping[str, JudgedText],
    corpus: Mapping[str, JudgedText],
    languages: Sequence[str],
    name: str,
    splits: Sequence[str] = (),
    ignore_identical_ids: bool = False,
) -> RetrievalData:
    """Return the queries that have a relevant document, and all documents with a text.

    Args:
        labels: the judgements.
        queries: texts by id.
        corpus: texts by id.
        languages: language of texts that name none, or languages to detect it among; by default any.
        name: of the data, in messages.
        splits: whose judgements these are; with several, each query is of one. By default the data is in no split.
        ignore_identical_ids: a document with the id of a query is the query itself, and is not ranked for it.

    Raises:
        DataError: grades contradict each other, a query is of two splits, or no judged query or document is there.
    """
    queries, corpus = _with_text(queries, "queries", name), _with_text(corpus, "documents", name)
    graded = _asked(_distinct(labels, name), queries, name)
    _require_one_split(graded.values(), splits)
    missing = _missing(graded, corpus, name)
    if ignore_identical_ids:
        missing |= {pair: label for pair, label in graded.items() if pair[0] == pair[1]}
    answers: dict[str, list[str]] = {}
    for (query, document), label in graded.items():
        if label.grade and (query, document) not in missing:
            answers.setdefault(document, []).append(query)
    _complete([*queries.values(), *corpus.values()], languages, name)
    answered = {query for (query, _), label in graded.items() if label.grade}
    if graded and not answered:
        place = next(iter(graded.values())).place
        raise DataError(f"{place}: no grade is above 0: no document answers any query")
    if left := len({query for query, _ in graded} - answered):
        log.info("%s: skipped queries without a relevant document: %d", name, left)
    questions = [Question(uid, each.language, each.text, uid) for uid, each in queries.items() if uid in answered]
    candidates = [
        Candidate(uid, each.language, each.text, own[0] if own else "", tuple(own), each.text)
        for uid, each in corpus.items()
        for own in [answers.get(uid, [])]
    ]
    if not splits:
        questions = list(joined(questions, candidates).questions)
    everywhere = tuple(replace(candidate, group="") for candidate in candidates)
    return RetrievalData(
        tuple(questions),
        everywhere,
        {query: label.split for (query, _), label in graded.items()} if len(splits) > 1 else {},
        grades={pair: label.grade for pair, label in graded.items() if label.grade != 1 and pair not in missing},
        missing={pair: label.grade for pair, label in missing.items() if label.grade},
        ignore_identical_ids=ignore_identical_ids,
    )


def _with_text(texts: Mapping[str, JudgedText], what: str, name: str) -> dict[str, JudgedText]:
    kept = {uid: each for uid, each in texts.items() if each.text}
    if left := len(texts) - len(kept):
        first = next(each.place for each in texts.values() if not each.text)
        log.info("%s: skipped %s without text: %d, the first in %s", name, what, left, first)
    return kept


def _distinct(labels: Iterable[Judgement], name: str) -> dict[Pair, Judgement]:
    """Return the judgements by pair; `DataError` where one has two grades."""
    found: dict[Pair, Judgement] = {}
    repeated: list[str] = []
    for label in labels:
        first = found.setdefault((label.query, label.document), label)
        if first is label:
            continue
        if first.grade != label.grade:
            raise DataError(
                f"{label.place}: query '{label.query}' and document '{label.document}' have the grade {label.grade:g}, "
                f"and {first.grade:g} in {first.place}"
            )
        repeated.append(label.place)
    if repeated:
        log.info("%s: repeated judgements, which count once: %d, the first in %s", name, len(repeated), repeated[0])
    return found


def _asked(graded: Mapping[Pair, Judgement], queries: Mapping[str, JudgedText], name: str) -> dict[Pair, Judgement]:
    """Return the judgements of queries that are there."""
    kept = {pair: label for pair, label in graded.items() if pair[0] in queries}
    left = [label for pair, label in graded.items() if pair[0] not in queries]
    if left:
        if not kept:
            raise DataError(f"{left[0].place}: there is no query '{left[0].query}' in the queries")
        log.info(
            "%s: skipped judgements of queries that are missing or have no text: %d, the first in %s (query '%s')",
            name, len(left), left[0].place, left[0].query,
        )  # fmt: skip
    return kept


def _missing(graded: Mapping[Pair, Judgement], corpus: Mapping[str, JudgedText], name: str) -> dict[Pair, Judgement]:
    """Return the judgements of documents that are not in the corpus."""
    missing = {pair: label for pair, label in graded.items() if pair[1] not in corpus}
    if missing:
        first = next(iter(missing.values()))
        if len(missing) == len(graded):
            raise DataError(f"{first.place}: there is no document '{first.document}' in the corpus")
        log.info(
            "%s: judged documents that are missing or have no text: %d, the first in %s (document '%s'); "
            "relevant ones, which no search finds: %d",
            name, len(missing), first.place, first.document, sum(label.grade > 0 for label in missing.values()),
        )  # fmt: skip
    return missing


def _require_one_split(labels: Iterable[Judgement], splits: Sequence[str]) -> None:
    split_of: dict[str, Judgement] = {}
    for label in labels:
        first = split_of.setdefault(label.query, label)
        if splits and first.split != label.split:
            raise DataError(f"{label.place}: query '{label.query}' is of split '{first.split}', too, by {first.place}")


def _complete(texts: Sequence[JudgedText], languages: Sequence[str], name: str) -> None:
    """Give every text a language, as the task writes it."""
    lacking = [each for each in texts if not each.language]
    if len(languages) == 1:
        tags = dict.fromkeys((each.text for each in lacking), languages[0])
    elif lacking:
        tags = detect_all([each.text for each in lacking], languages)
        log.info("%s: languages detected: %s", name, ", ".join(sorted(set(tags.values()))))
    for each in lacking:
        each.language = tags[each.text]
    written = {parse_tag(language): language for language in languages}
    for each in texts:
        each.language = written.get(each.language, each.language)
