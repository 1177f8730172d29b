"""The cases of `throughput.py`: each returns its rows for a shape."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from benchmarks.common.rows import Row
from benchmarks.mini.vocabulary import with_vocabulary
from benchmarks.speed import distillation_throughput as distilling
from benchmarks.speed.memory import MIB
from benchmarks.speed.race import Job, Race, race
from benchmarks.speed.shapes import SCALES, Setting, encoder_of, learn_tokenizer
from benchmarks.speed.students import SCALES as STUDENTS
from benchmarks.speed.students import large_student, read_pairs
from metasearch.config.library import load_distillation
from metasearch.config.roles import MaxLength
from metasearch.config.seeding import stream
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.load import load_encoder

STEPS_OF_A_ROUND = 4
"""Of distillation."""


@dataclass
class Session:
    """Settings of all cases of a run; `ways` limits the peers, `inner_steps` is for second order."""

    scale: str
    shape: str
    rounds: int
    threads: int
    data: str | None
    folder: Path
    ways: Sequence[str] | None = None
    inner_steps: int | None = None

    @cached_property
    def encoder(self) -> str:
        """Name or folder of the shape's encoder."""
        folder = self.folder / self.shape
        folder.mkdir(exist_ok=True)
        return encoder_of(self.scale, self.shape, folder, self.data)

    @property
    def apart(self) -> bool:
        """Whether each way has a process of its own."""
        return SCALES[self.scale].apart

    def setting(self, learner: str, **changes: object) -> Setting:
        """Return what a learner computes on this shape."""
        return Setting.of(self.scale, self.shape, self.encoder, learner, self.rounds, data=self.data, **changes)

    def jobs(self, setting: Setting, ways: Sequence[str]) -> dict[str, Job]:
        """Return the jobs of the wanted ways; the first is ours and always wanted."""
        ours, *peers = ways
        if SCALES[self.scale].shapes[self.shape].alone:
            peers = []
        chosen = [way for way in peers if self.ways is None or way in self.ways]
        return {way: Job(way, setting, self.threads) for way in (ours, *chosen)}


def maml(session: Session) -> list[Row]:
    """First-order MAML against the peers."""
    setting = session.setting("maml")
    jobs = session.jobs(setting, ("fast", "learn2learn", "authors"))
    return _raced("maml", session, setting, race(jobs, session.rounds, session.apart, session.folder))


def maml_align(session: Session) -> list[Row]:
    """MAML-Align in closed form against forms that keep all graphs of a meta-batch."""
    setting = session.setting("maml-align")
    jobs = session.jobs(setting, ("fast", "plain"))
    return _raced("maml-align", session, setting, race(jobs, session.rounds, session.apart, session.folder))


def second_order(session: Session) -> list[Row]:
    """Second-order MAML against learn2learn's, whose attention is eager."""
    size = SCALES[session.scale]
    steps = session.inner_steps or size.shapes[session.shape].second_order_steps
    assignments = ["options.first_order=false", *([f"options.inner_steps={steps}"] if steps else [])]
    setting = session.setting("maml", assignments=assignments, batch=size.second_order_batch)
    jobs = session.jobs(setting, ("fast", "learn2learn"))
    return _raced("second-order", session, setting, race(jobs, session.rounds, session.apart, session.folder))


def distillation(session: Session) -> list[Row]:
    """Stage 3 of recipe `compress` on a student with a whole table of XLM-R's size, against sentence-transformers.

    The table is 384 wide, as the teacher's vectors are.
    """
    if session.shape != "A1":
        return []
    size = STUDENTS[session.scale]
    stage = load_distillation("compress").stages["student"]
    corpus = read_pairs(Path(session.data) if session.data and session.scale == "full" else None)
    pairs = [corpus[i] for i in stream(0, "pairs").choice(len(corpus), size.pairs, replace=False).tolist()]
    teacher = load_encoder(size.encoder, MaxLength(text=stage.max_length), device="cpu")
    texts = [text for pair in corpus for text in pair.texts]
    assistant = with_vocabulary(teacher, learn_tokenizer(texts, size.vocabulary))
    student = large_student(assistant, size)
    frozen = Encoder(assistant.model, assistant.name, assistant.max_length)
    ends = [1 + STEPS_OF_A_ROUND * i for i in range(session.rounds + 1)]
    own, theirs, before = (np.array(s) for s in distilling.measure(stage, student, frozen, pairs, size.batch, ends))
    ours = own + before / stage.budget.epochs
    per_second = partial(_row, "distillation", session, rows_of_table=size.table, batch=size.batch)
    cpu = round(float(np.median(theirs[:, 1] / ours[:, 1])), 3)
    return [
        per_second("pairs/s", STEPS_OF_A_ROUND * size.batch / ours[:, 0]),
        per_second(f"times {distilling.PEER}", theirs[:, 0] / ours[:, 0], cpu=cpu),
    ]


CASES: dict[str, Callable[[Session], list[Row]]] = {
    "maml": maml,
    "maml-align": maml_align,
    "second-order": second_order,
    "distillation": distillation,
}


def _raced(case: str, session: Session, setting: Setting, outcome: Race) -> list[Row]:
    """Return episodes per second and memory of each way, and the ratios of ours to those of the others."""
    ours = np.array(outcome.seconds["fast"])
    facts = {"batch": setting.batch, "inner_steps": setting.recipe.options["inner_steps"]}
    rows = []
    for way, seconds in outcome.seconds.items():
        wall = np.array(seconds)[:, 0]
        rows.append(_row(case, session, f"episodes/s, {way}", setting.batch / wall, **facts))
        peaks = {key: round(mib, 1) for key, mib in outcome.memory[way].items()}
        rows.append(_row(case, session, f"peak MiB, {way}", [peaks["gradient"]], **facts, whole_step=peaks["step"]))
    for way, error in outcome.errors.items():
        theirs = np.array(outcome.seconds[way])
        cpu = round(float(np.median(theirs[:, 1] / ours[:, 1])), 3)
        same = {**facts, "gradient_error": float(f"{error:.2g}")}
        rows.append(_row(case, session, f"times {way}", theirs[:, 0] / ours[:, 0], **same, cpu=cpu))
        mine, others = (max(outcome.memory[name]["gradient"], 1 / MIB) for name in ("fast", way))
        rows.append(_row(case, session, f"memory over {way}", [mine / others], **same))
    return rows


def _row(case: str, session: Session, metric: str, values: Sequence[float], **facts: object) -> Row:
    """Return the median of some rounds between the lowest and the highest, with four digits."""
    found = {"value": float(np.median(values)), "low": min(values), "high": max(values)}
    rounded = {key: float(f"{value:.4g}") for key, value in found.items()}
    shared = {"rounds": session.rounds, "threads": session.threads, "scale": session.scale}
    return {"case": case, "shape": session.shape, "metric": metric, **rounded, **shared, **facts}
