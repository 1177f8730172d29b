"""Teacher, assistant and student: loaded when they are needed, and the student made of the assistant."""

import logging
from collections.abc import Mapping
from pathlib import Path

from metasearch.compress.sizes import Sizes
from metasearch.compress.student import make_student
from metasearch.config import registry
from metasearch.config.distill_run import DistillConfig
from metasearch.config.distillation import RoleName
from metasearch.config.roles import MaxLength
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.load import load_encoder
from metasearch.errors import ConfigError
from metasearch.pipelines.run import require_same_weights

log = logging.getLogger(__name__)


class RoleEncoders:
    """A distillation's encoders, loaded when they are needed. A trained one stays for the next stage.

    `weights` has the fingerprint of the checkpoint that a resumed run began with, by role.
    """

    def __init__(self, config: DistillConfig, weights: Mapping[str, str] | None = None) -> None:
        self.config = config
        self._weights = dict(weights or {})
        self._loaded: dict[RoleName, Encoder] = {}
        for role in config.needed:
            if getattr(config.encoders, role) is None:
                raise ConfigError(f"recipe '{config.recipe.recipe}': its stages need --{role} ENCODER")

    @property
    def origins(self) -> dict[str, str]:
        """Fingerprints of the given checkpoints by role, if loaded or known."""
        return self._weights

    def check(self) -> None:
        """Load the given encoders and check that a student can be made, before any stage starts."""
        for role in self.config.needed:
            self.at(role)
        settings = self.config.recipe.student
        if "student" in self.config.used and self.config.encoders.student is None and settings is not None:
            if settings.initial == "random" and settings.bottleneck is None:
                raise ConfigError("student.initial: random is for a bottleneck, and student.bottleneck is null")
            # This shows what does not fit, without making the weights of a student.
            config = self.at("assistant").model[0].auto_model.config
            Sizes.planned(config, settings.bottleneck, settings.recurrent, settings.repeats)

    def stand_in(self, role: RoleName, max_length: int) -> Encoder:
        """Return an encoder with a role's dimensions and vocabulary, even before the student is made."""
        if role != "student" or self.config.encoders.student is not None:
            return self.at(role, max_length)
        return self.at("assistant", max_length)

    def take(self, role: RoleName, folder: Path) -> None:
        """Use a finished stage's result for a role."""
        trained = self._load(str(folder))
        # Results name the encoder that was given, not the folder of a stage.
        trained.name = self._label(role)
        trained.origin = self._weights.get(role, "")
        trained.seeded = self._seeded(role)
        self._loaded[role] = trained

    def at(self, role: RoleName, max_length: int = 128) -> Encoder:
        """Return a role's encoder, which truncates at `max_length` tokens; `EncoderError` if that fails."""
        if role not in self._loaded:
            name = getattr(self.config.encoders, role)
            self._loaded[role] = self._open_given(role, name) if name is not None else self._student()
        loaded = self._loaded[role]
        # A checkpoint takes the longest of its lengths with it, so none of them is longer than what is trained.
        lengths = MaxLength(question=max_length, candidate=max_length, text=max_length)
        view = Encoder(loaded.model, loaded.name, lengths)
        view.origin, view.seeded = loaded.origin, loaded.seeded
        return view

    def _label(self, role: RoleName) -> str:
        return getattr(self.config.encoders, role) or f"student of {self.config.encoders.assistant}"

    def _seeded(self, role: RoleName) -> bool:
        """Return whether the weights that were given for a role are drawn from the seed; only built-in ones are."""
        if role in self._loaded:
            return self._loaded[role].seeded
        name = getattr(self.config.encoders, role)
        return name in registry.names("encoders") and self._load(name).seeded

    def _open_given(self, role: RoleName, name: str) -> Encoder:
        loaded = self._load(name)
        require_same_weights(f"{role} '{name}'", self._weights.setdefault(role, loaded.origin), loaded.origin)
        return loaded

    def _load(self, name: str) -> Encoder:
        trust, device = self.config.encoders.trust_remote_code, self.config.compute.device
        return load_encoder(
            name, identify=True, plain_for="distill", device=device, seed=self.config.seed, trust_remote_code=trust
        )

    def _student(self) -> Encoder:
        settings = self.config.recipe.student
        if settings is None:
            raise ConfigError(f"recipe '{self.config.recipe.recipe}': its stages need --student ENCODER")
        assistant = self.at("assistant")
        label = self._label("student")
        sizes = (settings.bottleneck, settings.recurrent, settings.repeats)
        student = make_student(assistant, *sizes, initial=settings.initial, seed=self.config.seed, name=label)
        before, after = assistant.parameter_count, student.parameter_count
        log.info("made the student: %s parameters of the assistant's %s", f"{after:,}", f"{before:,}")
        return student
