"""Settings of `metasearch tune`; `config.yaml` in its folder."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from metasearch.config.base import Flag, Seed, Settings
from metasearch.config.run import Device, EncoderConfig

DEFAULT_ENCODER = "mini-e5"


class TuneConfig(Settings):
    """Everything that `metasearch tune` depends on, except the content of files and checkpoints.

    Attributes:
        labels: file or folder of the labels; empty where they were given in memory.
        columns: name of a value → its column.
    """

    kind: Literal["tune"] = "tune"
    labels: str = ""
    columns: Mapping[str, str] = {}
    documents: Annotated[tuple[str, ...], Flag(metavar="PATH", complete="paths")] = ()
    """File or folder to search, as for `metasearch index`; repeatable."""
    translations: Annotated[tuple[str, ...], Flag(metavar="PATH", complete="paths")] = ()
    """File or folder of translations, as for `metasearch distill --corpus`; repeatable."""
    encoder: EncoderConfig = EncoderConfig(name=DEFAULT_ENCODER)
    learners: Annotated[tuple[str, ...], Flag(metavar="LIST", comma=True)] = ()
    """Further learners to try, such as maml,maml-align."""
    folds: Annotated[int, Field(ge=3, le=20)] = 5
    """Held-out folds; fewer where there are few labels."""
    device: Device = "auto"
    """Device to run on; auto takes a GPU if there is one."""
    seed: Annotated[Seed, Flag(metavar="SEED")] = 0
    """Random seed of folds and episodes."""
