"""Options of a stage of distillation: what contradicts itself or is out of range is refused."""

import math

import pytest
from pydantic import ValidationError

from metasearch.algorithms.distill import Distill
from metasearch.errors import ConfigError


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"output": "tokens"}, "options.output: tokens of a translation have no counterpart; it needs options.target"),
        ({"output": "tokens", "target": "own", "contrast": "soft"}, "options.contrast: 'soft' is over sentences"),
        ({"contrast": "soft", "source_share": 0.5}, "options.source_share: contrast soft needs every source read"),
        ({"output": "states"}, "options.output: states of a translation have no counterpart; it needs options.target"),
        ({"output": "states", "target": "own", "contrast": "soft"}, "options.contrast: 'soft' is over sentences"),
    ],
)
def test_options_that_contradict_each_other_are_refused_before_anything_is_encoded(options, says):
    with pytest.raises(ConfigError, match=f"^{says}"):
        Distill.wanted(Distill.Options(**options))


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": 0},
        {"source_share": 1.5},
        {"source_share": -0.1},
        {"temperature": math.inf},
        {"contrast_weight": -1},
        {"output": "words"},
        {"target": "translation"},
        {"contrast": "hard"},
        {"weight": 1},
    ],
)
def test_options_out_of_range_are_refused(options):
    with pytest.raises(ValidationError):
        Distill.Options(**options)
