"""A small recipe of two stages, written into a folder of one's own, and those that ship."""

from metasearch.config.library import Library

LIBRARY = Library()
NAMES = LIBRARY.names("distillation")
STAGES = ("assistant", "embedding", "student", "contrast")
SMALL = """\
recipe: small
description: for a test
student: {bottleneck: 4, recurrent: 2}
stages:
  first:
    description: teaches
    trains: assistant
    against: teacher
    learner: distill
    outer: {lr: 1e-3}
  second:
    description: compresses
    trains: student
    against: assistant
    learner: distill
    options: {output: pooled, target: own}
    outer: {lr: 1e-3}
"""


def written(place, text=SMALL, name="small"):
    """Write a recipe into a folder of one's own below a place, and return that folder."""
    path = place / "mine" / "distillation" / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path.parents[1]
