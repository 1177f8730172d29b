"""Teacher, assistant and student: loaded when they are needed, and the student made of the assistant."""

import logging
from pathlib import Path

from metasearch import run
from metasearch.compress.student import make_student
from metasearch.config import MaxLength
from metasearch.data.stages import RoleName
from metasearch.distillation.config import DistillConfig
from metasearch.encoders.base import Encoder
from metasearch.errors import ConfigError

log = logging.getLogger(__name__)


class Roles:
    """The encoders of a distillation. One that was trained stays, so that the next stage begins with it.

    Args:
        config: names the encoders, and says how a student is made.
        quiet: leave the student's size unsaid.

    Raises:
        ConfigError: a role that the chosen stages need is not given.
    """

    def __init__(self, config: DistillConfig, quiet: bool = False) -> None:
        self.config = config
        self.quiet = quiet
        self._loaded: dict[RoleName, Encoder] = {}
        for role in config.recipe.roles(student_given=config.student is not None):
            if config.named(role) is None:
                raise ConfigError(f"recipe '{config.recipe.recipe}': its stages need --{role} ENCODER")

    def take(self, role: RoleName, folder: Path) -> None:
        """Go on with what a finished stage made of a role."""
        self._loaded[role] = self._load(str(folder))

    def at(self, role: RoleName, max_length: int) -> Encoder:
        """Return the encoder of a role, with texts cut at `max_length` tokens.

        Raises:
            EncoderError: it cannot be loaded, or a student cannot be made of the assistant.
        """
        if role not in self._loaded:
            name = self.config.named(role)
            self._loaded[role] = self._load(name) if name is not None else self._student(max_length)
        found = self._loaded[role]
        return Encoder(found.model, found.name, MaxLength(text=max_length))

    def _load(self, name: str) -> Encoder:
        return run.load_encoder(
            name, None, self.config.device, self.config.seed, trust_remote_code=self.config.trust_remote_code
        )

    def _student(self, max_length: int) -> Encoder:
        settings = self.config.recipe.student
        if settings is None:
            raise ConfigError(f"recipe '{self.config.recipe.recipe}': its stages need --student ENCODER")
        assistant = self.at("assistant", max_length)
        student = make_student(
            assistant,
            settings.bottleneck,
            settings.recurrent,
            settings.repeats,
            initial=settings.initial,
            seed=self.config.seed,
        ).to(assistant.device)
        before, after = assistant.parameter_count, student.parameter_count
        if not self.quiet:
            log.info("made the student: %s parameters of the assistant's %s", f"{after:,}", f"{before:,}")
        return student
