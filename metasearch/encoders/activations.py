"""Activations of `Dense` modules, of which sentence-transformers saves the class alone.

It opens an activation of another library than torch as Tanh, unless code of others is trusted. Those of transformers
are as safe as torch's, and are opened here.
"""

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense
from sentence_transformers.util import fullname, import_from_string, load_file_path
from torch import Tensor, nn

from metasearch.errors import EncoderError, first_line

_TORCH, _TRANSFORMERS = "torch.", "transformers.activations."
_TWINS = (nn.GELU, nn.SiLU, nn.ReLU, nn.Tanh, nn.Sigmoid, nn.Identity, nn.Mish, nn.ReLU6)
"""Activations without settings, of which other libraries have classes of their own."""

Activation = Callable[[Tensor], Tensor]


def restore_activations(
    model: SentenceTransformer, name: str, listed: Sequence[Mapping[str, str]], local: bool
) -> None:
    """Give the `Dense` modules of a model the activations of transformers that its checkpoint names.

    `name` is its folder, if it is `local`, or its hub name; `listed` is what its `modules.json` lists. `EncoderError`
    for an activation of another library, as the model was opened without trust in code of others.
    """
    for module, entry in zip(model, listed, strict=False):
        if isinstance(module, Dense):
            path = load_file_path(name, str(Path(entry["path"]) / "config.json"), local_files_only=local)
            said = json.loads(Path(path).read_text(encoding="utf-8")).get("activation_function") if path else None
            if said and not said.startswith(_TORCH):
                module.activation_function = _opened(said, name)


def _opened(said: str, name: str) -> nn.Module:
    """Return the activation of transformers with a dotted name."""
    if not said.startswith(_TRANSFORMERS):
        raise EncoderError(
            f"encoder '{name}': its activation '{said}' is code of neither torch nor transformers; pass "
            "--trust-remote-code if you trust its source"
        )
    try:
        made = import_from_string(said)()
    except Exception as error:  # of a class that needs settings, or is in no release that is installed
        raise EncoderError(f"encoder '{name}': its activation '{said}' cannot be made: {first_line(error)}") from error
    if not isinstance(made, nn.Module):
        raise EncoderError(f"encoder '{name}': its activation '{said}' is no activation")
    return made


def saveable(module: Any) -> Any:
    """Return a module, or for a `Dense` with another library's activation a copy with torch's own where it is the same.

    `EncoderError` for an activation with settings, such as a slope, which sentence-transformers does not save, or with
    weights in a class of transformers, which it cannot open.
    """
    if not isinstance(module, Dense):
        return module
    activation = module.activation_function
    own, path = type(activation), fullname(activation)
    if _same(own, activation) and path.startswith(_TORCH):
        return module
    twin = next((twin for twin in _TWINS if _same(twin, activation)), None)
    if twin is None:
        if _same(own, activation) and not (path.startswith(_TRANSFORMERS) and activation.state_dict()):
            return module
        says = " ".join(str(activation).split())
        raise EncoderError(
            f"its Dense module has the activation {says}, of which sentence-transformers saves the class without the "
            "settings; use an activation without settings"
        )
    changed = copy.copy(module)
    changed._modules = dict(module._modules)  # which a shallow copy shares
    changed.__dict__.pop("activation_function", None)  # a function, which would hide the module
    changed.activation_function = twin()
    return changed


def _same(made: Callable[[], Any], activation: Activation) -> bool:
    """Return whether a class without arguments makes an activation, with its weights where it has any."""
    inputs = torch.linspace(-9, 9, 181)[None]
    try:
        found, own = made(), copy.deepcopy(activation)
        if isinstance(own, nn.Module):
            found.load_state_dict(own.cpu().state_dict())
            own.eval()
        with torch.no_grad():
            return torch.equal(found.eval()(inputs), own(inputs))
    except Exception:  # any error shows a difference: the class needs arguments, or takes other weights or inputs
        return False


def untrusted(model: SentenceTransformer) -> str | None:
    """Return the name of an activation that plain sentence-transformers opens with `trust_remote_code=True` only."""
    names = (fullname(module.activation_function) for module in model if isinstance(module, Dense))
    return next((name for name in names if not name.startswith(_TORCH)), None)
