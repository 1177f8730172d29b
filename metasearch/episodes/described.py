"""Episodes as lines for a person to read: briefly for a message, or whole."""

from collections.abc import Iterator, Sequence

from metasearch.data.example import Example
from metasearch.episodes.episode import Episode

_EPISODES, _EXAMPLES, _CHARACTERS = 2, 3, 40
"""As much as a message holds: episodes, examples of each, and characters of one without an id."""


def brief(episodes: Sequence[Episode]) -> str:
    """Return the languages of episodes and what their first examples are called, in half a line.

    Such as `de_de -> de_ar (bread-1-0, light-2-1, ...), el_el -> el_tr (...) and 2 more`.
    """
    shown = []
    for episode in episodes[:_EPISODES]:
        examples = [example for each in episode.sets for example in each.examples]
        names = ", ".join(_name(example) for example in examples[:_EXAMPLES])
        shown.append(f"{episode.arrangement} ({names}{', ...' if len(examples) > _EXAMPLES else ''})")
    more = len(episodes) - _EPISODES
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def whole(episode: Episode) -> Iterator[str]:
    """Yield the sets of an episode: each example with its ids and its texts."""
    # An episode of two sets has no Z, a batch of a distillation has X alone.
    for name, examples in zip(("X", "Y", "Z"), episode.sets, strict=False):
        yield f"{name}  {examples.variant}"
        for example in examples.examples:
            if example.ids:
                yield f"  {'/'.join(example.ids)}"
            yield from (f"  {line}" for line in example.lines())


def _name(example: Example) -> str:
    """Return the first ids of an example, which tell it from others, or how its first text begins."""
    return "/".join(example.ids[:2]) or f"'{example.texts[0][:_CHARACTERS]}'"
