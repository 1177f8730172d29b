"""A distillation in its run folder, stage after stage; a finished stage is never run again.

config.yaml      the resolved configuration; `metasearch resume` reads it
1-assistant/     a stage: log.jsonl, data.txt, report.md, model/, and checkpoint/ until it is finished
2-embedding/     ...
targets/         outputs of the frozen encoders
results.jsonl, queries/, facts.json, report.md, model/     as in `metasearch.runs.folder`
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from metasearch.config.distill_run import DistillConfig
from metasearch.config.distillation import Stage
from metasearch.data.benchmark import Benchmark, build
from metasearch.data.parallel.corpus import require_corpus
from metasearch.encoders.encoder import Encoder
from metasearch.errors import ConfigError
from metasearch.io import atomic_write
from metasearch.pipelines.cards import CARD, Dataset, Scores, describe_task, find_base, make_card
from metasearch.pipelines.distill.models import RoleEncoders
from metasearch.pipelines.distill.stage import build_stage_learner, read_source, run_stage, training_batches
from metasearch.pipelines.distill.target_cache import require_comparable
from metasearch.pipelines.run import Run, RunResult, silent
from metasearch.pipelines.scorer import Scorer, with_lengths
from metasearch.runs.callbacks import SILENT, Callback, OpenCallback
from metasearch.runs.folder import RunFolder
from metasearch.runs.markdown import by_language, fact_table, markdown, percent
from metasearch.runs.rows import MEAN, STAGE, Row
from metasearch.runs.torchrun_env import rank, require_divides
from metasearch.runs.versions import describe, describe_versions, versions
from metasearch.training.hardware import used
from metasearch.training.trainer import Outcome

log = logging.getLogger(__name__)


def begin(config: DistillConfig, folder: Path, open_callback: OpenCallback = silent) -> RunResult:
    """Run the chosen stages of a recipe in a new run folder.

    Names, options and tasks are checked before weights are loaded. Encoders, the data and steps of every stage and the
    free disk space are checked before the folder is made.

    Raises:
        MetasearchError: of every kind that `metasearch.errors` lists; finished work is saved.
    """
    return DistillRun(config, folder).execute(open_callback)


class DistillRun(Run[DistillConfig]):
    """Runs the stages of a distillation, and scores the encoder before the first and after each."""

    settings = DistillConfig

    @property
    def trusts_code(self) -> bool:
        """Whether the run was created with permission to run code that comes with its encoders."""
        return self.config.encoders.trust_remote_code

    def load_data(self) -> str:
        """Check options, roles and files, and load the tasks to evaluate on; each stage keeps its own fingerprint."""
        for _, name, stage in self.config.stages:
            require_divides(rank().count, stage.budget.shards, f"stages.{name}.budget.shards")
        self.config = resolved(self.config)
        self.roles = RoleEncoders(self.config, self.began.weights if self.began else None)
        self.benchmarks = load_benchmarks(self.config)
        return ""

    def load_encoders(self) -> Mapping[str, str]:
        """Load the encoders; all of them for a run without scores or steps."""
        if not self.files.begun:
            check_roles(self.config, self.roles)
        elif rank().count > 1:
            # Before the processes join: after that, transformers saves folders in the first one alone.
            self.roles.check()
        return self.roles.origins

    def validate(self) -> None:
        """Read every stage's data, and check the free disk space; writes nothing."""
        largest = 0
        for _, name, stage in self.config.stages:
            encoder = self.roles.stand_in(stage.trains, stage.max_length)
            largest = max(largest, encoder.size)
            training_batches(self.config, name, read_source(self.config, name, encoder), encoder)
        self.require_disk_space(largest)

    def follow(self) -> None:
        """Train all stages along with the first process."""
        for number, name, stage in self.config.stages:
            below = self._stage_files(number, name)
            if self.processes.broadcast_object(lambda: False):  # the first process says whether the stage is finished
                self.roles.take(stage.trains, below.model)
            else:
                self._train_stage(name, below, SILENT)

    def work(self, open_callback: OpenCallback) -> None:
        """Run the stages that are not finished, score after each, and report."""
        first, *_ = self.config.stages[0]
        for number, name, stage in self.config.stages:
            below = self._stage_files(number, name)
            finished = self.processes.broadcast_object(partial(getattr, below, "finished"))
            with open_callback(name) as callback:
                if finished:
                    self.roles.take(stage.trains, below.model)
                else:
                    # Later stages begin with trained weights, and so does the run once the first stage is finished.
                    if number == first:
                        untrained = self.roles.at(stage.trains, stage.max_length)
                        self._score(untrained, f"{stage.trains}, before", 0, callback)
                    self._run_stage(name, f"{number} {name}", below, callback)
                # After a finished stage, too: a crash may have come between its report and these scores.
                encoder = self.roles.at(stage.trains, stage.max_length)
                self._score(encoder, f"{number} {name}", number, callback)
        self.files.save_model(encoder.save, encoder.size)
        rows = self.files.results()
        facts = describe(self.config.model_dump(mode="json"), rows)
        atomic_write(self.files.model / CARD, _card(self.files, self.config, encoder, facts))
        cost = used(self.seconds, encoder.device)
        self.files.finish(whole_report(rows, self.config, encoder, facts, self.seconds), cost)

    def _stage_files(self, number: int, name: str) -> RunFolder:
        return RunFolder(self.files.path / f"{number}-{name}")

    def _train_stage(self, name: str, below: RunFolder, callback: Callback) -> tuple[Outcome, str]:
        """Train a stage to its end; return the outcome, and the stage's data in words."""
        outcome, described = run_stage(self.config, name, self.roles, below, callback, self.processes)
        if outcome.reason == "interrupted":
            self.stop(f"stopped after step {outcome.steps} of {below.path.name}; the checkpoint is saved")
        return outcome, described

    def _run_stage(self, name: str, label: str, below: RunFolder, callback: Callback) -> None:
        """Train a stage in its folder, add its dev score, and write its model and report."""
        below.path.mkdir(parents=True, exist_ok=True)
        config, stage = self.config, self.config.recipe.stages[name]
        outcome, described = self._train_stage(name, below, callback)
        # A crash before the stage's report leaves the dev score.
        if (STAGE, label) not in {(row["task"], row["learner"]) for row in self.files.results()}:
            what = {"task": STAGE, "learner": label, "recipe": config.recipe.recipe, "split": "dev"}
            score = {"measure": stage.monitor, "pool": "pairs", "language": MEAN, "before": outcome.baseline}
            best = {"value": outcome.best_score, "step": outcome.best_step, "steps": outcome.steps}
            self.files.add_results([{**what, **score, **best, "seed": config.seed, "versions": versions()}])
        trained = self.roles.at(stage.trains, stage.max_length)
        below.save_model(trained.save, trained.size)
        # The report last: by it the stage is finished, and its model is then taken instead of its checkpoint.
        below.finish(stage_report(config, name, outcome, described))

    def _score(self, encoder: Encoder, label: str, number: int, callback: Callback) -> None:
        """Add the scores on the tasks' test data, unless the run has them."""
        config = self.config
        facts = {"mode": None, "recipe": config.recipe.recipe, "stage": number, "seed": config.seed}
        for benchmark in self.benchmarks:
            parts = {"test": benchmark.split.test}
            Scorer(facts, callback).add(self.files, label, with_lengths(encoder, benchmark), benchmark, parts)


# Checks before the first step, so that no stage fails after others are done.


def resolved(config: DistillConfig) -> DistillConfig:
    """Return a configuration with all options of the chosen stages' learners; `ConfigError` if one is wrong."""
    recipe = config.recipe
    stages = dict(recipe.stages)
    for _, name, stage in config.stages:
        _, options, _ = build_stage_learner(stage, f"recipe '{recipe.recipe}': stages.{name}")
        stages[name] = stage.model_copy(update={"options": options.model_dump()})
    return config.model_copy(update={"recipe": recipe.model_copy(update={"stages": stages})})


def load_benchmarks(config: DistillConfig) -> list[Benchmark]:
    """Check texts and roles by name, and return the tasks to evaluate on; loads no weights."""
    recipe = f"recipe '{config.recipe.recipe}'"
    for _, name, stage in config.stages:
        if not config.texts.of(stage):
            raise ConfigError(f"{recipe}: stage '{name}' needs {stage.flag} FILES; --stages runs a part of the stages")
    read = {stage.flag for _, _, stage in config.stages}
    for kind, files in config.texts:
        if files and f"--{kind}" not in read:
            raise ConfigError(f"--{kind}: no selected stage of {recipe} uses it")
    if config.encoders.student and "student" not in config.used:
        raise ConfigError(f"--student: no selected stage of {recipe} trains it")
    for role in ("teacher", "assistant"):
        if getattr(config.encoders, role) and role not in config.used:
            log.warning("--%s does nothing: no selected stage of %s uses it", role, recipe)
    return [build(each) for each in config.evaluate]


def check_roles(config: DistillConfig, roles: RoleEncoders) -> None:
    """Load the encoders, and check that they and the corpora's files suit every stage."""
    for _, _, stage in config.stages:
        if stage.data == "parallel":
            # Before any weights are loaded: a missing file shows at once.
            require_corpus([Path(path) for path in config.texts.corpus], stage.corpus)
    roles.check()
    for _, name, stage in config.stages:
        _check_length(name, stage, roles)
        learner, options, wanted = build_stage_learner(stage, f"stage '{name}'")
        trained = roles.stand_in(stage.trains, stage.max_length)
        learner.check_encoder(options, trained)
        if wanted and stage.against:
            require_comparable(roles.stand_in(stage.against, stage.max_length), trained, wanted.output)


def _check_length(name: str, stage: Stage, roles: RoleEncoders) -> None:
    """Raise `ConfigError` if overlong texts cannot be detected, because the encoder truncates them first."""
    wanted = stage.corpus.max_tokens
    reads = roles.stand_in(stage.trains, max(wanted, 2) + 1).limit("text")  # a length is at least 3
    if reads <= wanted:
        raise ConfigError(
            f"stage '{name}': corpus.max_tokens={wanted}: the {stage.trains} reads {reads} tokens, so longer texts "
            "cannot be detected; choose a smaller number"
        )


# Reports and the card.


def stage_report(config: DistillConfig, name: str, outcome: Outcome, described: str) -> str:
    """Return what a finished stage did, on the data so described."""
    stage = config.recipe.stages[name]
    facts = {
        "what": stage.description,
        "learner": f"{stage.learner}: the {stage.trains}" + (f" from the {stage.against}" if stage.against else ""),
        "data": described,
        "steps": f"{outcome.steps}, weights of step {outcome.best_step} kept ({outcome.ended})",
        f"dev {stage.monitor}": " → ".join(_dev(stage.monitor, v) for v in (outcome.baseline, outcome.best_score)),
        "versions": describe_versions(versions()),
    }
    return f"# Stage {name} of {config.recipe.recipe}\n\n{fact_table('stage', facts)}\n"


def whole_report(
    rows: Sequence[Row], config: DistillConfig, encoder: Encoder, facts: Mapping[str, str], seconds: float
) -> str:
    """Return all stages' dev scores, the tasks' scores after each, and run facts."""
    parts = [f"# {config.recipe.recipe}", _stages(rows, config)]
    for task in (each.task.name for each in config.evaluate):
        own = [row for row in rows if row["task"] == task]
        parts.append(f"## {task}\n\n{_by_group(own) or by_language(own, 'test')}")
    count = encoder.parameter_count
    facts = dict(facts) | {
        "model": f"{count:,} parameters, {4 * count / 2**20:.1f} MiB in float32, {2 * count / 2**20:.1f} in float16",
        "time": f"{seconds:.0f} s since the start or the last resume, evaluation included",
    }
    return "\n\n".join([*parts, fact_table("run", facts)]) + "\n"


def _by_group(rows: Sequence[Row]) -> str:
    """Return stages by language group for a translation task, means over both directions; "" for other tasks."""
    both = [row for row in rows if row["pool"] == "both"]
    cells = {(row["learner"], row["measure"], row["language"]): row["value"] for row in both}
    of_groups = {
        row["language"]: f"{row['language']} ({row['found']} of {row['listed']})" for row in both if "found" in row
    }
    columns = [*of_groups, MEAN]
    heads = [of_groups.get(column, column) for column in columns]
    lines = [
        [learner, measure, *(percent(cells[learner, measure, column]) for column in columns)]
        for learner, measure in dict.fromkeys((row["learner"], row["measure"]) for row in both)
    ]
    return markdown(["stage", "measure", *heads], lines, left=2) if lines else ""


def _stages(rows: Sequence[Row], config: DistillConfig) -> str:
    """Return a table with each stage's dev scores."""
    by_label = {row["learner"]: row for row in rows if row["task"] == STAGE}
    lines = []
    for number, name, stage in config.stages:
        row = by_label[f"{number} {name}"]
        scores = [_dev(stage.monitor, row[key]) for key in ("before", "value")]
        step = f"{row['step']} of {row['steps']}"
        lines.append([f"{number} {name}", stage.trains, stage.against or "", stage.monitor, *scores, step])
    return markdown(["stage", "trains", "against", "dev score", "before", "best", "at step"], lines, left=4)


def _dev(monitor: str, value: float | None) -> str:
    """Return a formatted dev score: a loss unchanged, everything else times 100."""
    return f"{-value:.4f}" if monitor == "loss" and value is not None else percent(value)


def _card(files: RunFolder, config: DistillConfig, encoder: Encoder, facts: Mapping[str, str]) -> str:
    """Return the distilled model's card with facts of its run, after its scores are in the results."""
    rows, (number, name, last) = files.results(), config.stages[-1]
    tasks = [each.task for each in config.evaluate]
    own = [row for row in rows if row["task"] != STAGE]
    return make_card(
        encoder,
        tuple(find_base(role, named) for role in config.used if (named := getattr(config.encoders, role)) is not None),
        [f"One seed ({config.seed}): a distillation with another may be better or worse."],
        command="distill",
        recipe=config.recipe,
        facts=facts,
        title=f"{last.trains} of {config.recipe.recipe}",
        summary=f"A sentence encoder distilled by metasearch: the {last.trains} after the stages "
        f"{', '.join(each for _, each, _ in config.stages)}. {config.recipe.description}.",
        data=[*_describe_corpora(files, config), *(describe_task("scored on", each, rows) for each in tasks)],
        scores=Scores(own, f"{number} {name}", f"{config.stages[0][2].trains}, before") if own else None,
        tags=("distillation",),
    )


def _describe_corpora(files: RunFolder, config: DistillConfig) -> Iterator[Dataset]:
    """Yield each stage's data, by file name without folder."""
    for number, name, stage in config.stages:
        path = files.path / f"{number}-{name}" / "data.txt"
        found = path.read_text(encoding="utf-8").strip() if path.is_file() else ""
        fingerprint, _, description = found.partition(" ")
        names = ", ".join(Path(each).name for each in config.texts.of(stage))
        yield Dataset(f"stage {name}", names, description, fingerprint=fingerprint)
