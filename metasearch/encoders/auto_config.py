"""metasearch configurations that transformers loads without an import of metasearch.

A saved folder holds a file of a few lines that imports metasearch, and `config.json` names it as `auto_map`.
`SentenceTransformer(folder, trust_remote_code=True)` then loads the model wherever metasearch is installed. After
`import metasearch.encoders` no option is needed, since transformers prefers the classes that are registered.
"""

import json
import os
from pathlib import Path
from typing import Any

from transformers import PreTrainedConfig

from metasearch.config.extras import DISTRIBUTION, LOADER

_CODE = f'''"""Lets transformers load this model with trust_remote_code=True, where {DISTRIBUTION} is installed."""

try:  # transformers would name another package where this import fails
    from metasearch.encoders.{{module}} import {{name}}
except ModuleNotFoundError as error:
    raise ImportError("this model needs: pip install {DISTRIBUTION}") from error
'''


class LoadableConfig(PreTrainedConfig):  # type: ignore[misc]  # transformers is untyped here
    """A configuration saved together with the file that loads it."""

    def __init__(self, **kwargs: Any) -> None:
        # An attribute would be saved with the fields, and would count as a property of the model.
        kwargs.pop("auto_map", None)
        super().__init__(**kwargs)

    def save_pretrained(self, save_directory: str | os.PathLike[str], *args: Any, **kwargs: Any) -> None:
        """Write `config.json` and the file that loads it."""
        super().save_pretrained(save_directory, *args, **kwargs)
        kind = type(self)
        path = Path(save_directory, "config.json")
        settings = json.loads(path.read_text(encoding="utf-8"))
        settings["auto_map"] = {"AutoConfig": f"{Path(LOADER).stem}.{kind.__name__}"}
        path.write_text(json.dumps(settings, indent=2, sort_keys=True) + "\n", encoding="utf-8")
        code = _CODE.format(module=kind.__module__.rpartition(".")[2], name=kind.__name__)
        path.with_name(LOADER).write_text(code, encoding="utf-8")

    @classmethod
    def register_for_auto_class(cls, auto_class: str = "AutoConfig") -> None:
        """Do nothing: transformers would copy this class's source into every folder."""
