"""Settings of runs from keyword arguments without sections, `device="cpu"` for `compute.device`; and stopped runs."""

import os
import signal
from contextlib import nullcontext

import pytest

from metasearch.config.base import Settings
from metasearch.config.library import Library, load_recipe
from metasearch.config.run import RunConfig
from metasearch.errors import Interrupted
from metasearch.pipelines.train import TrainRun
from metasearch.runs.callbacks import Callback


def nested(model, **flat):
    """Return settings of a model, each keyword in the section that declares it, with names of encoder, task and mode.

    Example:
        >>> nested(RunConfig, task="demo", encoder="tiny", device="cpu", ...).compute.device
        'cpu'
    """
    left = dict(flat)
    config = model.model_validate(_declared(_tree(model, left)))
    assert left == {}, f"{model.__name__} has no {', '.join(left)}"
    return config


def _tree(model, left):
    tree = {}
    for name, field in model.model_fields.items():
        kind = field.annotation
        key = "encoder" if name == "name" else name
        if isinstance(kind, type) and issubclass(kind, Settings):
            tree[name] = _tree(kind, left)
        elif key in left:
            tree[name] = left.pop(key)
    return tree


def _declared(tree):
    """Return settings with whole tasks and modes in place of names."""
    data = tree.get("data") or {}
    library = Library(data.get("include") or ())
    if isinstance(tree.get("mode"), str):
        tree["mode"] = library.mode(tree["mode"])
    if isinstance(data.get("task"), str):
        tree["data"] = data | library.declared(data["task"])
    if "evaluate" in tree:
        tree["evaluate"] = [library.scored(task, data) for task in tree["evaluate"]]
    return tree


def through(callback):
    """Return what opens the same callback for a run and for each of its stages."""
    return lambda name: nullcontext(callback)


SMALL = [
    *("budget.meta_train=8", "budget.meta_valid=0", "budget.meta_batch=2", "budget.eval_every=1"),
    *("episodes.k=2", "episodes.q=2", "options.inner_steps=1"),
]
SHORT_RUN = nested(
    RunConfig,
    task="demo-sts",
    mode="mono-bi",
    encoder="tiny",
    recipe=load_recipe("maml-tiny", SMALL),
    max_steps=2,
    device="cpu",
)
"""Two steps of MAML on the demo's scored pairs, with a checkpoint after each."""


class _Stopping(Callback):
    def on_step(self, step, total, phase, terms):
        os.kill(os.getpid(), signal.SIGINT)


def train_one_step(config, folder):
    """Begin a training that Ctrl-C stops after its first step."""
    with pytest.raises(Interrupted, match=f"Continue with: metasearch resume {folder}"):
        TrainRun(config, folder).execute(through(_Stopping()))
