"""`metasearch train`: an encoder is meta-trained in a run folder, and scored before and after."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from metasearch.config.recipe import ZERO_SHOT, Recipe
from metasearch.config.roles import public_name
from metasearch.config.run import RunConfig
from metasearch.config.task import resolve
from metasearch.data.benchmark import Benchmark, build
from metasearch.data.folds import hold_out
from metasearch.data.records import Data, grouped, texts_of
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.neutral import ProjectedEncoder, append, require_none
from metasearch.encoders.protocols import CachedEncoder
from metasearch.episodes.samplers import check_sizes
from metasearch.errors import DataError
from metasearch.evaluation.study.read import find_study
from metasearch.io import atomic_write
from metasearch.pipelines import factory
from metasearch.pipelines.cards import CARD, Scores, describe_task, find_base, make_card
from metasearch.pipelines.frozen import with_adapter
from metasearch.pipelines.neutral import log_projection, neutralise, train_projection
from metasearch.pipelines.run import ENCODER, Run
from metasearch.pipelines.score import find_score_cache
from metasearch.pipelines.scorer import Scorer
from metasearch.runs.callbacks import SILENT, Callback, CallbackGroup, OpenCallback, RunLog
from metasearch.runs.folder import RunFolder
from metasearch.runs.markdown import by_language, fact_table
from metasearch.runs.rows import MEAN, Row
from metasearch.runs.torchrun_env import rank, require_divides
from metasearch.runs.versions import describe
from metasearch.training.checkpoint import CheckpointStore
from metasearch.training.hardware import used
from metasearch.training.trainer import Outcome


class TrainRun(Run[RunConfig]):
    """Meta-trains an encoder on a task, and scores it on dev and test beside zero-shot."""

    settings = RunConfig

    def load_data(self) -> str:
        """Check that recipe, data and number of processes match, and load the benchmark."""
        require_divides(rank().count, self.config.recipe.budget.shards, "budget.shards")
        self.config = self.config.model_copy(update={"recipe": factory.resolved(self.config.recipe)})
        config, compute = self.config, self.config.compute
        arrangements = resolve(config.data.task, config.mode)
        self.benchmark = build(config.data, arrangements).trained_on(config.recipe.translate)
        factory.check_fit(config.recipe, self.benchmark, compute.precision, compute.checkpointing)
        check_sizes(self.benchmark, config.recipe, config.seed)
        return self.benchmark.data.fingerprint

    def load_encoders(self) -> Mapping[str, str]:
        """Load the encoder to train."""
        self.encoder = factory.load_task_encoder(
            self.config.encoder, self.benchmark, self.config.compute.device, self.config.seed
        )
        return {ENCODER: self.encoder.origin}

    def validate(self) -> None:
        """Check the encoder's projection and the disk space."""
        if self.config.recipe.neutralise:
            require_none(self.encoder)
        self.require_disk_space(self.encoder.size)

    def follow(self) -> None:
        """Train along with the first process."""
        self._prepare_encoder()
        outcome = self._fit()
        if outcome.reason == "interrupted":
            self.stop(f"stopped after outer step {outcome.steps}")

    def work(self, open_callback: OpenCallback) -> None:
        """Score zero-shot, train, save, score again and report."""
        with open_callback(self.config.recipe.learner) as callback:
            self._work(callback)

    def _work(self, callback: Callback) -> None:
        recipe, files, benchmark = self.config.recipe, self.files, self.benchmark
        # Before training, which changes the encoder in place.
        self._add_scores(ZERO_SHOT, {"step": 0}, callback, cache=find_score_cache(files.path))
        self._prepare_encoder(callback)
        encoder = self.encoder
        dev = factory.DevEvaluator(encoder, benchmark, recipe, self.config.compute.precision)
        # Without a projection the dev score of step 0 is that of zero-shot, and is not computed again.
        known = None if recipe.neutralise else monitored(files.results(), benchmark.task.monitor)[ZERO_SHOT, "dev"]
        outcome = self._fit(
            store=CheckpointStore(files.path),
            callback=CallbackGroup(RunLog(files), callback),
            baseline=known,
            dev=dev,
        )
        # The model of a run that was stopped can be used, too.
        files.save_model(encoder.save, encoder.size)
        if outcome.reason == "interrupted":
            unfitted = recipe.neutralise and recipe.neutralise.when == "after"
            what = "model (before its projection is fitted)" if unfitted else "model"
            self.stop(f"stopped after outer step {outcome.steps}; {what} and checkpoint are saved")
        # The last dev score has the vectors of the best weights if these are the last ones, and in float32.
        latest = outcome.best_step == outcome.steps and self.config.compute.precision == "float32"
        trained = (dev.vectors if latest else None) or CachedEncoder(encoder)
        self._score_trained(outcome, trained, callback)
        rows = files.results()
        described = describe(self.config.model_dump(mode="json"), rows)
        if benchmark.translations:
            described["translations"] = str(benchmark.translations)
        described["tokens"] = _describe_lengths(encoder, benchmark.data)
        described["outer steps"] = f"{outcome.steps} ({outcome.ended})"
        atomic_write(files.model / CARD, _card(files, self.config, encoder, described))
        cost = used(self.seconds, encoder.device) | {"steps": outcome.steps}
        cost |= _describe_translations(benchmark) | _mean_kd_share(files)
        described["time"] = f"{cost['seconds']:.0f} s since the start or the last resume, evaluation included"
        described["data"] = f"{benchmark.data.describe()}, fingerprint {benchmark.data.fingerprint}"
        files.finish(report(rows, recipe, benchmark, described), cost)

    def _prepare_encoder(self, callback: Callback = SILENT) -> None:
        """Append the projection through which the recipe trains, and the adapter that it trains, if it has them."""
        stage = self.config.recipe.neutralise
        if stage and stage.when == "before":
            neutralise(self.encoder, self.benchmark, stage, callback)
        study = find_study(self.files.path)
        place = study / "vectors" if study else None
        # Train has what was translated.
        parts = (self.benchmark.data, self.benchmark.split.train)
        self.encoder = with_adapter(self.encoder, self.config.recipe.adapter is not None, parts, place, callback)

    def _fit(self, **first: Any) -> Outcome:
        """Train to the end; store, callback and dev scores belong to the `first` process."""
        config, compute = self.config, self.config.compute
        self.learner = factory.make_learner(config.recipe, self.encoder)
        how: dict[str, Any] = {"seed": config.seed, "max_steps": config.max_steps, "processes": self.processes, **first}
        how |= {"precision": compute.precision, "checkpointing": compute.checkpointing}
        return factory.fit(self.learner, self.benchmark, config.recipe, resume=True, **how)

    @cached_property
    def _facts(self) -> Row:
        config = self.config
        facts = {"encoder": config.encoder.name, "fold_seed": config.data.fold_seed, "seed": config.seed}
        return facts | {"mode": str(config.mode), "recipe": config.recipe.recipe} | self._translation_facts()

    def _translation_facts(self) -> Row:
        """Return the fingerprint of the translations in train; `DataError` if the run began with others."""
        if self.benchmark.translations is None:
            return {}
        now = self.benchmark.translations.fingerprint
        before = next((row["translated"] for row in self.files.results() if row.get("translated", now) != now), None)
        if before:
            raise DataError(
                f"{self.files.path}: the translations have changed since the run was created (fingerprint {before}, "
                f"now {now}); cannot resume with other translations"
            )
        return {"translated": now}

    @cached_property
    def _parts(self) -> dict[str, Data]:
        split = self.benchmark.split
        return {"dev": hold_out(split.dev, self.config.recipe.budget.dev_holdout)[1], "test": split.test}

    def _add_scores(self, learner: str, facts: Row, callback: Callback, *how: Any, **more: Any) -> None:
        scorer = Scorer(self._facts | facts, callback)
        scorer.add(self.files, learner, self.encoder, self.benchmark, self._parts, *how, **more)

    def _score_trained(self, outcome: Outcome, trained: CachedEncoder, callback: Callback) -> None:
        """Score the trained encoder, and again with a projection that is fitted after training; then save that."""
        recipe, encoder, benchmark = self.config.recipe, self.encoder, self.benchmark
        facts: Row = {"step": outcome.best_step}
        # From `trained`, its vectors: with and without the projection each text of a part is encoded once.
        self._add_scores(recipe.learner, facts, callback, trained.part)
        stage = recipe.neutralise
        if stage and stage.when == "after":
            neutral = train_projection(encoder, benchmark, stage, callback, trained.part("train"))
            log_projection(neutral, benchmark, stage)
            self._add_scores(
                recipe.delivers, facts, callback, lambda part: ProjectedEncoder(trained.part(part), neutral)
            )
            append(encoder, neutral)
            self.files.save_model(encoder.save, encoder.size)


def _describe_lengths(encoder: Encoder, data: Data) -> str:
    """Return the most tokens of a text in each role, and how many texts are longer, in words."""
    found = []
    for role, texts in grouped(texts_of(data), lambda each: each.role).items():
        cut = int(encoder.is_truncated([each.text for each in texts], role).sum())
        found.append(f"{public_name(role)}: at most {encoder.limit(role)}, {cut} of {len(texts)} texts truncated")
    return "; ".join(found)


def _describe_translations(benchmark: Benchmark) -> Row:
    """Return the facts of the translations in train for `facts.json`."""
    done = benchmark.translations
    if done is None:
        return {}
    asked = {"by": done.block.by, "source": done.block.source, "into": list(done.block.into)}
    counts = {"rows": done.rows, "left_out": done.left_out, "own_left_out": done.own}
    return {"translated": {**asked, **counts, "fingerprint": done.fingerprint}}


def _mean_kd_share(files: RunFolder) -> Row:
    """Return the mean share of the distillation term in MAML-Align's task loss, over all steps of the log."""
    shares = [event["kd_share"] for event in files.events() if "kd_share" in event]
    return {"kd_share": sum(shares) / len(shares)} if shares else {}


# The report and the card.


def report(rows: Sequence[Row], recipe: Recipe, benchmark: Benchmark, facts: Mapping[str, str]) -> str:
    """Return the scores before and after training, by language, and the facts of the run, in Markdown."""
    monitor, scores = benchmark.task.monitor, monitored(rows, benchmark.task.monitor)
    verdicts = []
    for split in ("dev", "test"):
        before, after = 100 * scores[ZERO_SHOT, split], 100 * scores[recipe.delivers, split]
        verdicts.append(f"- {split}: {monitor} {before:.2f} → {after:.2f} ({after - before:+.2f})")
    parts = [f"# {recipe.learner} on {benchmark.task.name}", "\n".join(verdicts)]
    parts += [by_language(rows, "test"), by_language(rows, "dev"), fact_table("run", facts)]
    return "\n\n".join(parts) + "\n"


def monitored(rows: Sequence[Row], monitor: str) -> dict[tuple[str, str], float]:
    """Return the mean of a measure by learner and split, in the first pool that was scored."""
    means: dict[tuple[str, str], float] = {}
    for row in rows:
        if (row["measure"], row["language"]) == (monitor, MEAN):
            means.setdefault((row["learner"], row["split"]), row["value"])
    return means


def _card(files: RunFolder, config: RunConfig, encoder: Encoder, facts: Mapping[str, str]) -> str:
    """Return the trained model's card with facts of its run, after its scores are in the results."""
    rows, recipe, label = files.results(), config.recipe, config.recipe.delivers
    base = find_base("base", config.encoder.name, next((str(row["weights"]) for row in rows if "weights" in row), ""))
    task = config.data.task
    languages = tuple(task.languages)
    if recipe.translate and task.translate:
        languages = (*languages, *sorted(task.trained_languages - set(languages)))
    limits = [f"One seed ({config.seed}) and one fold ({config.data.fold}): another training may gain less, or lose."]
    if any(row.get("seeded") for row in rows):
        limits.insert(0, "Its weights began as random numbers: it is for trials, and useless for search.")
    return make_card(
        encoder,
        (base,),
        limits,
        command="train",
        recipe=recipe,
        facts=facts,
        title=f"{label} on {task.name}",
        summary=f"A sentence encoder for search across {len(languages)} languages, trained by metasearch: {label} from "
        f"{base.name}, in mode {config.mode}, on {task.name} ({task.description.rstrip('.')}).",
        data=(describe_task("trained and scored on", task, rows),),
        languages=languages,
        scores=Scores(rows, label, ZERO_SHOT),
        tags=("meta-learning",),
    )
