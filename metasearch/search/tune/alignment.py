"""Alignment of an encoder with itself on translations, after its language bias was removed: docs/few-labels.md, step 1.

neutral/   the encoder without language bias
aligned/   the distillation of it
"""

from collections.abc import Sequence
from pathlib import Path

from metasearch.config.distill_run import DistillConfig, RolesConfig, TextsConfig
from metasearch.config.library import load_distillation
from metasearch.config.projection import ProjectionSettings
from metasearch.config.run import ComputeConfig, Device, EncoderConfig
from metasearch.data.texts import read_tagged
from metasearch.encoders.load import load_encoder
from metasearch.pipelines.distill.job import DistillRun
from metasearch.pipelines.neutral import neutralise_encoder
from metasearch.runs.callbacks import SILENT, Callback

_BUDGET = ("stages.align.budget.steps=320", "stages.align.budget.epochs=4")
_DEV_PAIRS = 100
"""Pairs of each language that score the alignment; a tenth of them where there are fewer than ten times as many."""


def align(
    encoder: EncoderConfig, translations: Sequence[str], folder: Path, neutral: bool,
    device: Device = "auto", seed: int = 0, callback: Callback = SILENT,
) -> Path:  # fmt: skip
    """Return the folder of the aligned encoder; finished work is not repeated.

    Args:
        encoder: the encoder.
        translations: files, folders and hub names of translations.
        folder: gets the two folders above.
        neutral: whether the encoder has no language bias.
        device: device to run on.
        seed: random seed.
        callback: is told of the texts that estimate the language bias.
    """
    start, trust = encoder.name, encoder.trust_remote_code
    texts = read_tagged(list(map(Path, translations)), 10 * _DEV_PAIRS)
    if not neutral:
        start = str((folder / "neutral").resolve())
        if not Path(start).is_dir():
            settings = ProjectionSettings()
            first = {language: own[: settings.texts] for language, own in texts.items()}
            loaded = load_encoder(encoder, device=device)
            neutralise_encoder(loaded, first, settings, folder / "neutral", callback)
    dev = max(1, min(map(len, texts.values())) // 10)
    asked = DistillConfig(
        recipe=load_distillation("align", [*_BUDGET, f"stages.align.corpus.dev={dev}"]),
        encoders=RolesConfig(teacher=start, student=start, trust_remote_code=trust),
        texts=TextsConfig(corpus=tuple(translations)),
        compute=ComputeConfig(device=device),
        seed=seed,
    )
    aligned = folder / "aligned"
    run = DistillRun.open(aligned) if (aligned / "config.yaml").is_file() else DistillRun(asked, aligned)
    run.execute(trust_remote_code=trust)
    return aligned / "model"
