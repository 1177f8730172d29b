"""What a preparation left out and why, as Markdown and as JSON."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from metasearch.data.prepared.manifest import Manifest
from metasearch.runs.markdown import markdown

_SHOWN = 20
"""Lines that are shown of those that were left out."""


def report_of(manifest: Manifest, examples: Sequence[str], ignored: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """Return the report of a corpus, as text and as values.

    Args:
        manifest: of the corpus.
        examples: the first few lines of each reason in each file, as `file:line: reason`.
        ignored: files that are no training text.
    """
    asked = manifest.asked
    rows = []
    for part in manifest.parts:
        why = ", ".join(f"{count:,} {reason}" for reason, count in part.dropped.items())
        rows.append([part.corpus, f"{part.pivot}-{part.language}", f"{part.read:,}", f"{part.pairs:,}", why])
    counts = [[name, f"{value:,}"] for name, value in totals(manifest).items()]
    tests = ", ".join(asked.exclude) or "nothing: pass --exclude TASK or FILE to leave test sets out"
    lines = [
        "# Prepared corpus",
        markdown(["", "count"], counts),
        f"Compared with: {tests}.",
        markdown(["corpus", "languages", "lines read", "pairs kept", "left out"], rows, left=2),
    ]
    if examples:
        lines += ["Such as:", "\n".join(f"- `{line}`" for line in examples[:_SHOWN])]
    if ignored:
        lines.append(f"Passed over, as their names are not of training text: {', '.join(ignored[:_SHOWN])}")
    tree = {**totals(manifest), "dropped": dict(dropped(manifest)), "parts": _parts(manifest)}
    return "\n\n".join(lines) + "\n", tree | {"examples": list(examples), "ignored": list(ignored)}


def totals(manifest: Manifest) -> dict[str, int]:
    """Return the sizes of a corpus; lines read are pairs kept and all lines left out."""
    shards = manifest.shards
    return {
        "lines read": sum(part.read for part in manifest.parts),
        "pairs kept": manifest.pairs,
        "lines left out": dropped(manifest).total(),
        "texts": sum(shard.texts for shard in shards),
        "shards": len(shards),
        "bytes": sum(shard.stored.size for shard in shards),
    }


def dropped(manifest: Manifest) -> Counter[str]:
    """Return why lines were left out, and how many."""
    found: Counter[str] = Counter()
    for part in manifest.parts:
        found.update(part.dropped)
    return Counter(dict(found.most_common()))


def summary(manifest: Manifest) -> str:
    """Return the counts in a few lines."""
    sizes = totals(manifest)
    whys = ", ".join(f"{count:,} {reason}" for reason, count in dropped(manifest).items()) or "none"
    return (
        f"lines read: {sizes['lines read']:,}\nleft out: {whys}\npairs: {sizes['pairs kept']:,} in "
        f"{sizes['shards']} shards, {sizes['bytes']:,} bytes\ntexts: {sizes['texts']:,}"
    )


def _parts(manifest: Manifest) -> list[dict[str, Any]]:
    return [
        {"paths": list(part.paths), "read": part.read, "pairs": part.pairs, "dropped": dict(part.dropped)}
        for part in manifest.parts
    ]
