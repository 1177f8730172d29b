"""Encoders by name."""

from typing import Any, get_args

from metasearch.config import registry
from metasearch.config.precision import EncodingPrecision
from metasearch.config.roles import MaxLength, Role
from metasearch.config.run import Device, EncoderConfig
from metasearch.encoders.device import device_of
from metasearch.encoders.encoder import Encoder, require_plain
from metasearch.encoders.prompts import replace_prompts


def load_encoder(
    encoder: EncoderConfig | str,
    max_length: MaxLength | None = None,
    identify: bool = False,
    *,
    plain_for: str = "",
    device: Device = "auto",
    seed: int = 0,
    precision: EncodingPrecision = "float32",
    **settings: Any,
) -> Encoder:
    """Return an encoder by built-in name, local folder or hub name.

    Args:
        encoder: its settings, or its name, such as `tiny`, `runs/my-run/model` or a hub name.
        max_length: longest inputs in tokens, as a task declares them; by default those that it was saved with.
        identify: take the fingerprint of the checkpoint, with its own prompts, as `origin`.
        plain_for: refuse an encoder with a query adapter, which this command would lose.
        device: device to run on; `auto` takes a GPU if there is one.
        seed: random seed of the weights of a built-in encoder that is made from one.
        precision: what `encode` computes in; `auto` takes bfloat16 where the CPU is faster in it.
        **settings: further settings of the `EncoderConfig`, such as `trust_remote_code=True`.

    Raises:
        EncoderError: it cannot be found or loaded.
        ConfigError: there is no such device, or it cannot compute in this precision.
    """
    ref = EncoderConfig.of(encoder, **settings)
    target = device_of(device)
    # A built-in name wins over a folder that is called the same; `./NAME` is the folder.
    if ref.name in registry.names("encoders"):
        loaded: Encoder = registry.load("encoders", ref.name).build(max_length, seed)
    else:
        from metasearch.encoders.open import open_checkpoint

        loaded = open_checkpoint(ref.name, max_length, ref.trust_remote_code)
    if plain_for:
        require_plain(loaded, plain_for)
    if identify:
        loaded.origin = loaded.fingerprint
    replace_prompts(loaded.model, ref.prompts)
    for role in get_args(Role):  # one that cannot be pooled is refused before anything is begun
        loaded.prompt(role)
    return loaded.to(target).choose_precision(precision)
