"""The study with `e5`: which studies its arms need, and which rows are kept of them."""

import click
import pytest

from benchmarks.paper import strong_encoder

ALIGNED = strong_encoder.Aligned("studies/aligned/model", "f00d")


def test_arms_through_a_map_without_one_and_of_the_aligned_encoder_are_studies_of_their_own():
    arms = ["zero-shot", "neutral", "neutral+maml:trans", "maml:trans", "aligned+maml:trans", "aligned"]
    assert list(strong_encoder._apart(arms, ALIGNED)) == [
        ("e5", ["zero-shot", "neutral", "neutral+maml:trans"]),
        ("e5", ["zero-shot", "neutral", "maml:trans"]),
        ("studies/aligned/model", ["aligned", "aligned+maml:trans"]),
    ]
    # What a study sets for all of its recipes is the same for all.
    merged = ["neutral+maml:trans", "neutral+maml+merge:trans", "aligned+best+merge:mixt"]
    assert list(strong_encoder._apart(merged, ALIGNED)) == [
        ("e5", ["neutral+maml:trans"]),
        ("e5", ["neutral+maml+merge:trans"]),
        ("e5", []),
        ("studies/aligned/model", ["aligned"]),
        ("studies/aligned/model", ["aligned", "aligned+best+merge:mixt"]),
    ]
    with pytest.raises(click.UsageError, match="aligned\\+maml:trans needs --aligned ENCODER"):
        list(strong_encoder._apart(arms, None))
