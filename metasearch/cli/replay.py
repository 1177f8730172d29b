"""`metasearch replay`: one outer step of a run again, and what it was made of."""

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from metasearch.cli import _complete, _options
from metasearch.errors import ConfigError, NonFiniteError

if TYPE_CHECKING:
    from metasearch.jobs.replay import Replayed, Taken


@click.command("replay", short_help="One outer step of a run again, alone.")
@click.argument("run", type=click.Path(path_type=Path), shell_complete=_complete.runs)
@click.option("--step", type=int, required=True, metavar="N", help="Outer step, from 1, as log.jsonl counts them.")
@_options.gradients(default=None, shown="those of the run")
@click.option("--both", is_flag=True, help="Take the gradient in both ways, and say how far they are apart.")
@click.option("--texts", is_flag=True, help="Print the texts of the episodes, not their ids alone.")
@_options.options_group(_options.trust)
@click.option("--json", "as_json", is_flag=True, help="Print it as one JSON object on stdout.")
def command(run: Path, step: int, engine: Any, both: bool, texts: bool, trust_remote_code: bool, as_json: bool) -> None:
    """Take outer step N of RUN again up to its gradient: loss, gradient norms, episodes, and what log.jsonl says of it.

    RUN is a folder of `metasearch train` or a cell of a study that trains, finished or not. Steps since the last
    checkpoint before N, or since the start, are taken again first. Nothing is written. Ends with code 4 where loss or
    gradient is not finite.

    \b
    Examples:
      metasearch replay runs/lareqa --step 12
      metasearch replay runs/lareqa --step 12 --both --texts
    """
    from metasearch.cli._progress import ProgressBar
    from metasearch.jobs.replay import replay
    from metasearch.training.allocator import keep_memory

    if both and engine:
        raise ConfigError("--both takes fast and reference; leave out --gradients")
    keep_memory()
    engines: list[Any] = ["fast", "reference"] if both else [engine] if engine else []
    with ProgressBar("replay") as bar:
        found = replay(run, step, engines, trust_remote_code, bar)
    if as_json:
        click.echo(json.dumps(_tree(run, found, texts), ensure_ascii=False))
    else:
        click.echo("\n".join(_lines(run, found, texts)))
    if problem := next((taken.problem for taken in found.taken if taken.problem), None):
        raise NonFiniteError(problem)


def _lines(run: Path, found: "Replayed", texts: bool) -> Iterator[str]:
    from metasearch.episodes.described import whole

    since = f"the checkpoint of step {found.began}" if found.began else "the starting encoder"
    yield f"outer step {found.step} of {found.total}, {found.phase}, of {run}; from {since}"
    for taken in found.taken:
        yield ""
        yield from _gradient(found, taken)
    if found.apart is not None:
        random = "; dropout is on, for which they draw other random numbers" if found.dropout else ""
        yield f"\n|fast - reference| / |reference| = {found.apart:.1e}{random}"
    for number, episode in enumerate(found.episodes, 1):
        yield f"\nepisode {number} of {len(found.episodes)}: {episode.arrangement}"
        yield from (f"  {line}" for line in whole(episode, texts))


def _gradient(found: "Replayed", taken: "Taken") -> Iterator[str]:
    rest = ", ".join(f"{name} {value:.6g}" for name, value in taken.terms.items() if name not in ("loss", "grad"))
    yield f"gradients: {taken.gradients}"
    yield f"  loss           {taken.terms['loss']:.6g}{f' ({rest})' if rest else ''}"
    yield f"  gradient norm  {taken.terms['grad']:.6g}"
    width = max(map(len, taken.norms))
    yield from (f"    {part.ljust(width)}  {norm:.6g}" for part, norm in taken.norms.items())
    wrong = f"no: {len(taken.unfinite)} parameters, the first {taken.unfinite[0]}" if taken.unfinite else "yes"
    yield f"  finite         {'no: the loss' if taken.problem and not taken.unfinite else wrong}"
    yield f"  log.jsonl      {_beside_the_log(found, taken)}"


def _beside_the_log(found: "Replayed", taken: "Taken") -> str:
    if found.logged is None:
        return "does not have this step"
    off = found.differing(taken)
    if not off:
        return "the same bits"
    shown = ", ".join(f"{name} by {value:.1e}" for name, value in off.items())
    why = f". Made elsewhere: {'; '.join(found.elsewhere)}" if found.elsewhere else ""
    own = "" if taken.gradients == found.own else f"; the run took {found.own} gradients"
    return f"differs, relatively: {shown}{own}{why}"


def _tree(run: Path, found: "Replayed", texts: bool) -> dict[str, Any]:
    from metasearch.episodes.described import whole

    taken = [
        {
            "gradients": each.gradients,
            "terms": _finite(each.terms),
            "norms": _finite(each.norms),
            "unfinite": list(each.unfinite),
            "differs": None if found.logged is None else _finite(found.differing(each)),
        }
        for each in found.taken
    ]
    episodes = [{"arrangement": str(each.arrangement), "lines": list(whole(each, texts))} for each in found.episodes]
    where = {"run": str(run), "step": found.step, "total": found.total, "phase": found.phase, "from": found.began}
    beside = {"logged": found.logged, "elsewhere": list(found.elsewhere), **_finite({"apart": found.apart})}
    return {**where, "taken": taken, **beside, "episodes": episodes}


def _finite(values: Mapping[str, float | None]) -> dict[str, float | None]:
    """Return values for JSON, which has no NaN."""
    return {name: None if value is None or not math.isfinite(value) else value for name, value in values.items()}
