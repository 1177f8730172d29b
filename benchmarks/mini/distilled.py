"""A run of `metasearch distill` as a step of the build, which goes on where it was stopped."""

from pathlib import Path

from benchmarks.common.command import metasearch
from benchmarks.mini.settings import Settings

HERE = Path(__file__).parent


def distil(settings: Settings, out: Path, run: Path, recipe: str, teacher: str | Path, **role: Path) -> None:
    """Run a recipe of this folder on the corpus of a build and its joined texts; `role` is `student` or `assistant`."""
    if (run / "config.yaml").exists():
        metasearch("resume", run)
        return
    flags: list[object] = ["--seed", settings.seed, "--device", settings.device, "--precision", settings.precision]
    if settings.targets:
        flags += ["--teacher-cache", settings.targets]
    if settings.steps:
        flags += ["--max-steps", settings.steps]
    given = [part for name, encoder in role.items() for part in (f"--{name}", encoder)]
    metasearch(
        "distill", "--recipe", recipe, "--include", HERE, "--teacher", teacher, *given,
        "--corpus", out / "corpus", "--corpus", out / "joined", *flags, "-o", run,
    )  # fmt: skip
