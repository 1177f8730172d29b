"""The card of a model that was made without a run: compressed, merged, or without the language in its vectors."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path

from metasearch.compress.plan import Plan
from metasearch.compress.sizes import Sizes
from metasearch.data.benchmark import Benchmark
from metasearch.encoders.encoder import Encoder
from metasearch.jobs.cards.encoders import base_of, limits_of, usage_of
from metasearch.publish.about import About, Figures, Source
from metasearch.publish.card import render
from metasearch.runs.rows import Row
from metasearch.runs.versions import versions


def compressed_card(student: Encoder, base: str, plan: Plan, before: Sizes, after: Sizes) -> str:
    """Return the card of what `metasearch compress` made.

    Args:
        student: what was made.
        base: the encoder's name, as the command had it.
        plan: how it was made.
        before: sizes of the encoder.
        after: sizes of the student.
    """
    asked = {each.name: getattr(plan, each.name) for each in fields(plan)}
    said = {name: value for name, value in asked.items() if value not in (None, ()) and name not in ("seed", "initial")}
    files = [*plan.trim, *plan.texts]
    bases, usage = (base_of("base", base),), usage_of(student)
    made = {
        "command": "`metasearch compress`",
        **{name.replace("_", "-"): _shown(value) for name, value in said.items()},
        "initial, seed": f"{plan.initial}, {plan.seed}",
        "weights": f"{before.total:,} before, {after.total:,} after",
        "versions": ", ".join(f"{name} {value}" for name, value in versions().items()),
    }
    limits = [
        "It was not trained after it was made smaller; `metasearch distill` does that.",
        *limits_of(usage, bases, ()),
    ]
    return render(
        About(
            title=f"Student of {bases[0].title or bases[0].name.strip('`')}",
            summary=f"A smaller sentence encoder, made by metasearch of {bases[0].name} by "
            f"{', '.join(name.replace('_', '-') for name in said)}.",
            usage=usage,
            bases=bases,
            data=tuple(Source("read for words or layers", name) for name in dict.fromkeys(path.name for path in files)),
            made=made,
            limits=tuple(limits),
            tags=("compression",),
        )
    )


def merged_card(encoder: Encoder, parts: Sequence[tuple[str, float, str]]) -> str:
    """Return the card of what `metasearch merge` made.

    Args:
        encoder: what was made.
        parts: name, share and fingerprint of each encoder whose weights are in the mean.
    """
    bases, usage = tuple(base_of("merged", name, origin) for name, _, origin in parts), usage_of(encoder)
    said = [base.title or base.name.strip("`") for base in bases]
    shares = [f"{share:g} of {name} ({origin})" for (_, share, origin), name in zip(parts, said, strict=True)]
    return render(
        About(
            title=f"Between {' and '.join(said)}",
            summary="A sentence encoder whose weights are the weighted mean of those of others, made by metasearch of "
            f"{', '.join(base.name for base in bases)}.",
            usage=usage,
            bases=bases,
            made={
                "command": "`metasearch merge`",
                "weights": " + ".join(shares),
                "versions": ", ".join(f"{name} {value}" for name, value in versions().items()),
            },
            limits=(
                "It was neither trained nor scored after its weights were put together.",
                *limits_of(usage, bases, ()),
            ),
            tags=("merge",),
        )
    )


def neutral_card(
    encoder: Encoder,
    base: str,
    made: Mapping[str, str],
    counts: Mapping[str, int],
    rows: Sequence[Row],
    tasks: Sequence[Benchmark],
    shown: str,
) -> str:
    """Return the card of what `metasearch neutralise` made.

    Args:
        encoder: with the map.
        base: the encoder's name before.
        made: facts of the map.
        counts: language → texts in the estimate.
        rows: scores, `before` and `after`.
        tasks: of these scores.
        shown: the tables of the command's report.
    """
    bases, usage, languages = (base_of("base", base),), usage_of(encoder), tuple(counts)
    data = [Source("estimated from", "texts", f"{count} texts in {language}") for language, count in counts.items()]
    for task in (each.task for each in tasks):
        found = next(row["data"] for row in rows if row["task"] == task.task)
        data.append(Source("scored on", task.task, task.description, task.source.url, task.source.licence, found))
    kinds = {each.task.task: each.task.kind for each in tasks}
    return render(
        About(
            title=f"{bases[0].title or bases[0].name.strip('`')} without the language in its vectors",
            summary=f"The sentence encoder {bases[0].name} with a linear module at its end, made by metasearch, that "
            "takes out of its vectors what languages differ in, so that a search prefers no answer for its language.",
            usage=usage,
            bases=bases,
            data=tuple(data),
            languages=languages,
            figures=Figures(rows, "after", "before", kinds, shown=shown) if rows else None,
            made={
                "command": "`metasearch neutralise`",
                **made,
                "versions": ", ".join(f"{name} {value}" for name, value in versions().items()),
            },
            limits=tuple(limits_of(usage, bases, languages)),
            tags=("language-neutral",),
        )
    )


def _shown(value: object) -> str:
    if isinstance(value, tuple | list):
        paths = [each for each in value if isinstance(each, Path)]
        return f"{len(paths)} files of text" if paths else ", ".join(map(str, value))
    return str(value)
