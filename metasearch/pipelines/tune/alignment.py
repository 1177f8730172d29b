"""Alignment of the base encoder on translations, after its language bias was removed, as in docs/few-labels.md.

neutral/   the encoder without language bias
aligned/   the distillation from it to itself
"""

from pathlib import Path

from metasearch.config.distill_run import DistillConfig, RolesConfig, TextsConfig
from metasearch.config.library import load_distillation
from metasearch.config.postprocessing import NeutralSettings
from metasearch.config.run import ComputeConfig, TuneConfig
from metasearch.data.texts import read_tagged
from metasearch.pipelines import factory
from metasearch.pipelines.distill.job import DistillRun
from metasearch.pipelines.neutral import neutralise_encoder
from metasearch.runs.callbacks import Callback

_BUDGET = ("stages.align.budget.steps=320", "stages.align.budget.epochs=4")
_DEV_PAIRS = 100
"""Pairs of each language that score the alignment; a tenth of them where there are fewer than ten times as many."""


def align(config: TuneConfig, folder: Path, neutral: bool, callback: Callback) -> Path:
    """Return the aligned encoder, below a folder; finished work is not repeated.

    Args:
        config: encoder, translations, device and seed.
        folder: of the tuning.
        neutral: whether the base encoder has no language bias.
        callback: is told of encoded texts.
    """
    start, trust = config.encoder.name, config.encoder.trust_remote_code
    texts = read_tagged(list(map(Path, config.translations)), 10 * _DEV_PAIRS)
    if not neutral:
        start = str((folder / "neutral").resolve())
        if not Path(start).is_dir():
            settings = NeutralSettings()
            first = {language: own[: settings.texts] for language, own in texts.items()}
            loaded = factory.load_encoder(config.encoder, device=config.device)
            neutralise_encoder(loaded, first, settings, folder / "neutral", callback=callback)
    dev = max(1, min(map(len, texts.values())) // 10)
    asked = DistillConfig(
        recipe=load_distillation("align", [*_BUDGET, f"stages.align.corpus.dev={dev}"]),
        encoders=RolesConfig(teacher=start, student=start, trust_remote_code=trust),
        texts=TextsConfig(corpus=config.translations),
        compute=ComputeConfig(device=config.device),
        seed=config.seed,
    )
    aligned = folder / "aligned"
    run = DistillRun.open(aligned) if (aligned / "config.yaml").is_file() else DistillRun(asked, aligned)
    run.execute(trust_remote_code=trust)
    return aligned / "model"
