"""What `metasearch compress` does, from an encoder to a folder."""

from pathlib import Path
from typing import Any

from transformers import AutoConfig

from metasearch.compress.sizes import Sizes
from metasearch.compress.student import make_student
from metasearch.compress.thinning import thin, thinned
from metasearch.compress.trimming import trim
from metasearch.config.compress import CompressSettings
from metasearch.data.texts import read_texts
from metasearch.encoders.compressed import CompressedConfig
from metasearch.encoders.encoder import Encoder, require_plain
from metasearch.encoders.int8 import StoredConfig
from metasearch.errors import ConfigError, EncoderError, first_line
from metasearch.io import atomic_write
from metasearch.io.output import whole
from metasearch.pipelines.cards import CARD, Dataset, describe_value, find_base, make_card

_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")


def compress(encoder: Encoder, plan: CompressSettings, folder: Path | None) -> tuple[Sizes, Sizes]:
    """Write the student of an encoder to a folder, if one is given; return the sizes before and after."""
    require_plain(encoder, "compress")
    # An option that does not fit the configuration is an error before any work.
    config = _thinned(encoder.model[0].auto_model.config, plan)
    if plan.shrinks:
        CompressedConfig(backbone=config, bottleneck=plan.bottleneck, recurrent=plan.recurrent, repeats=plan.repeats)
    before, student = Sizes.of(encoder), _make_student(encoder, plan)
    after = Sizes.of(student)
    if folder is not None:
        with whole(folder) as partial:
            student.write(partial)
            atomic_write(partial / CARD, _card(student, encoder.name, plan, before, after))
    return before, after


def _make_student(student: Encoder, plan: CompressSettings) -> Encoder:
    if plan.trim:
        student = trim(student, read_texts(plan.trim), plan.vocabulary)
    if plan.layers is not None:
        student = thin(student, plan.layers)
    if plan.shrinks:
        counted = read_texts(plan.texts) if plan.texts and plan.weighs_words else None
        sizes = (plan.bottleneck, plan.recurrent, plan.repeats)
        student = make_student(student, *sizes, plan.initial, plan.seed, texts=counted)
    return student


def _card(student: Encoder, base: str, plan: CompressSettings, before: Sizes, after: Sizes) -> str:
    """Return the card for a student of `metasearch compress`; `base` is the encoder as given."""
    given = {name.replace("_", "-"): value for name, value in plan if value not in (None, ())}
    del given["seed"], given["initial"]
    source = find_base("base", base)
    return make_card(
        student,
        (source,),
        ["It was not trained after it was made smaller; `metasearch distill` does that."],
        command="compress",
        title=f"Student of {source.short}",
        summary=f"A smaller sentence encoder, made by metasearch from {source.name} by {', '.join(given)}.",
        data=[
            Dataset("read for words or layers", name)
            for name in dict.fromkeys(path.name for path in (*plan.trim, *plan.texts))
        ],
        facts={
            **{name: describe_value(value) for name, value in given.items()},
            "initial, seed": f"{plan.initial}, {plan.seed}",
            "weights": f"{before.total:,} before, {after.total:,} after",
        },
        tags=("compression",),
    )


def forecast(name: str, plan: CompressSettings) -> tuple[Sizes, Sizes] | None:
    """Return the sizes before and after from a configuration without weights; None for all else."""
    if (config := _bare_config(name)) is None:
        return None
    if plan.trim:
        raise ConfigError("--trim-vocab needs an encoder with its tokenizer and weights; this is only a configuration")
    slim = _thinned(config, plan)
    if plan.shrinks:
        return Sizes.of_config(config), Sizes.planned(slim, plan.bottleneck, plan.recurrent, plan.repeats)
    return Sizes.of_config(config), Sizes.of_config(slim)


def _thinned(config: Any, plan: CompressSettings) -> Any:
    """Return a configuration with the layers of a plan; `ConfigError` where there are fewer."""
    return config if plan.layers is None else thinned(config, plan.layers)


def _bare_config(name: str) -> Any | None:
    """Return the configuration in a `config.json`, or in a folder that has one and no weights; None for all else."""
    path = Path(name)
    if path.is_dir():
        if not (path / "config.json").is_file() or any(next(path.rglob(pattern), None) for pattern in _WEIGHTS):
            return None
    elif not path.is_file():
        return None
    try:
        config = AutoConfig.from_pretrained(name, local_files_only=True)
        return config.transformer if isinstance(config, StoredConfig) else config
    except Exception as error:  # transformers raises anything from OSError to its own validation errors
        raise EncoderError(f"{name}: unreadable configuration: {first_line(error)}") from error
