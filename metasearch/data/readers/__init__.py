"""One reader per file format.

A reader is a module with two functions: `files(task)` names the files it will open, `read(folder, task)` returns
`RetrievalData`, `SimilarityData` or `TranslationData`. Damage is a `DataError` that names file, line or key path, and
what was expected. Here are checks that several readers share.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, StringConstraints, ValidationError

from metasearch.data.formats.blank import require_text
from metasearch.data.records import Candidate, Question, RetrievalData
from metasearch.errors import DataError, nearest

Shown = Annotated[str, AfterValidator(require_text)]
"""A text that is not blank, as it stands."""
Text = Annotated[Shown, StringConstraints(strip_whitespace=True)]
"""The same without white space at both ends."""
Model = TypeVar("Model", bound=BaseModel)

COMPOSED = AfterValidator(lambda name: unicodedata.normalize("NFC", name))
"""For ids and article names: canonically equivalent ones (Unicode, UAX 15) are the same."""


def require_unique(ids: Iterable[tuple[str, str]]) -> None:
    """Raise `DataError` for a duplicate id."""
    first: dict[str, str] = {}
    for uid, place in ids:
        if uid in first:
            raise DataError(f"{place}: duplicate id '{uid}', first in {first[uid]}")
        first[uid] = place


def joined(
    questions: Sequence[Question], candidates: Sequence[Candidate], same: Iterable[tuple[str, str]] = ()
) -> RetrievalData:
    """Merge groups that share a question or an answer, so that folds separate them."""
    root: dict[str, str] = {}

    # Union-find: follows a group to the one that stands for all that it was joined with.
    def find(group: str) -> str:
        while (above := root.setdefault(group, group)) != group:
            root[group] = root[above]  # so that chains stay short
            group = above
        return group

    for first, second in same:
        root[find(second)] = find(first)
    group_of: dict[str, str] = {}
    for question in questions:
        root[find(question.group)] = find(group_of.setdefault(question.id, question.group))
    for candidate in candidates:
        for uid in candidate.answers:
            root[find(group_of[uid])] = find(candidate.group)
    asked = tuple(replace(question, group=find(question.group)) for question in questions)
    return RetrievalData(asked, tuple(replace(candidate, group=find(candidate.group)) for candidate in candidates))


def checked(model: type[Model], values: object, place: str) -> Model:
    """Return a row or a file as a model; `DataError` names the field, and the nearest one for an unknown field."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        # A misspelt field says more than the one that is missing for it.
        first = min(error.errors(), key=lambda item: item["type"] != "extra_forbidden")
        field = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"]).lstrip(".")
        if first["type"] == "extra_forbidden":
            hint = nearest(field, model.model_fields) if len(first["loc"]) == 1 else ""
            raise DataError(f"{place}: {field}: unknown field.{hint}") from None
        # Errors of this project name the value themselves.
        message, ours = first["msg"].removeprefix("Value error, "), first["type"] == "value_error"
        value = "nothing" if first["input"] is None else f"'{str(first['input'])[:40]}'"
        got = "" if ours or isinstance(first["input"], dict | list) else f", got {value}"
        raise DataError(f"{place}: {field or 'top level'}: {message[:1].lower()}{message[1:]}{got}") from None
