"""What can be named and what it resolves to: tasks, modes, recipes. Never imports torch."""

from collections.abc import Sequence
from dataclasses import dataclass

from metasearch import registry
from metasearch.config import Recipe
from metasearch.data.arrangement import Arrangement
from metasearch.data.folds import Split, hold_out, split
from metasearch.data.library import Library, overrides
from metasearch.data.locate import locate
from metasearch.data.records import Data, RetrievalData, SimilarityData, kind_of, require_languages
from metasearch.data.stages import Distillation
from metasearch.data.task import PHASES, Mode, Phase, Task, resolve
from metasearch.episodes.episode import Embed
from metasearch.episodes.pairs import PairSampler
from metasearch.episodes.sampler import EpisodeSampler, SetSampler
from metasearch.episodes.triplets import TripletSampler
from metasearch.errors import ConfigError
from metasearch.metrics import Measure


@dataclass(frozen=True)
class Benchmark:
    """A task with its data read, one fold held out, and a transfer mode's arrangements.

    Attributes:
        task: the declaration.
        mode: the transfer mode, or None when nothing is trained.
        arrangements: of each phase; empty without a mode.
        data: all of it.
        split: train, dev and test of the fold.
        measures: what is reported.
        fold: which fold is held out.
    """

    task: Task
    mode: Mode | None
    arrangements: dict[Phase, list[Arrangement]]
    data: Data
    split: Split
    measures: tuple[Measure, ...]
    fold: int

    def part(self, name: str) -> Data:
        """Return `train`, `dev`, `test` or `all`; `ConfigError` where all of the task is test."""
        if name in ("train", "dev") and self.task.evaluation_only:
            raise ConfigError(f"task '{self.task.task}' has no {name} part: all of it is test; use --split test")
        return self.data if name == "all" else getattr(self.split, name)


def load_benchmark(
    task: str,
    mode: str | None = None,
    fold: int = 0,
    data: str | None = None,
    include: Sequence[str] = (),
    fold_seed: int | None = None,
) -> Benchmark:
    """Resolve a task by name and read its data.

    Args:
        task: such as `lareqa`.
        mode: a transfer mode such as `mono-bi-multi`; None when nothing is trained.
        fold: which fold to hold out.
        data: folder of the files; by default beside the task, or `METASEARCH_DATA`.
        include: folders with further tasks, modes and recipes.
        fold_seed: shuffle articles or rows with this seed before cutting folds, instead of the task's protocol.

    Raises:
        ConfigError: a name is unknown, the mode does not apply, the fold is out of range, or a fold seed is given for
            a task that comes split or is all test.
        DataError: the data is missing or damaged.
    """
    library = Library(include)
    declared = library.task(task)
    if fold_seed is not None:
        if declared.folds.method != "kfold":
            how = "comes split" if declared.folds.method == "given" else "is all test"
            raise ConfigError(f"task '{task}' {how}: there are no folds to cut with fold seed {fold_seed}")
        folds = declared.folds.model_copy(update={"shuffle": True, "seed": fold_seed})
        declared = declared.model_copy(update={"folds": folds})
    chosen = library.mode(mode) if mode else None
    arrangements = resolve(declared, chosen, library.modes()) if chosen else {}
    measures = tuple(Measure.parse(name, declared.kind) for name in declared.measures)
    reader = registry.load("readers", declared.reader)
    path = library.path("task", task)
    expected = reader.files(declared)
    if not expected and declared.kind == "translation":
        raise ConfigError(f"{path}: reader: '{declared.reader}' reads no translations; use 'tatoeba'")
    folder = locate(declared, path, expected, data)
    records: Data = reader.read(folder, declared)
    given = kind_of(records)
    if given != declared.kind:
        raise ConfigError(f"{path}: kind: '{declared.kind}', but reader '{declared.reader}' gives {given} data")
    if isinstance(records, RetrievalData) and declared.candidates == "sentence":
        records = records.sentences()
    if not declared.partial:
        require_languages(records, declared.languages, str(folder))
    return Benchmark(declared, chosen, arrangements, records, split(records, declared.folds, fold), measures, fold)


def load_recipe(name: str, assignments: Sequence[str] = (), include: Sequence[str] = ()) -> Recipe:
    """Return a recipe by name.

    Args:
        name: such as `maml-align`.
        assignments: values to put over it, such as `outer.lr=1e-4`.
        include: folders with further recipes.
    """
    return Library(include).recipe(name, overrides(assignments))


def load_distillation(name: str, assignments: Sequence[str] = (), include: Sequence[str] = ()) -> Distillation:
    """Return a recipe of several stages by name; arguments as those of `load_recipe`.

    Args:
        name: such as `compress`.
        assignments: values to put over it, such as `student.bottleneck=64` or `stages.contrast.outer.lr=1e-4`.
        include: folders with further recipes.
    """
    return Library(include).distillation(name, overrides(assignments))


def choose_recipe(
    mode: str,
    encoder: str,
    learner: str | None,
    recipe: str | None,
    assignments: Sequence[str] = (),
    include: Sequence[str] = (),
) -> Recipe:
    """Return the recipe of a run: the one named, else the learner's, else that of the mode's learner.

    A mode of three links is learned by `maml-align`, one of two by `maml`. An encoder that a recipe of the learner is
    tuned to (`maml-tiny`) gets that one.

    Raises:
        ConfigError: a name is unknown, or learner and recipe contradict each other.
    """
    library = Library(include)
    chosen = library.mode(mode)
    if learner is not None:
        registry.require("learners", learner)
    elif recipe is None:
        learner = "maml-align" if chosen.links == 3 else "maml"
    name = recipe or library.recipe_for(str(learner), encoder)
    if recipe is None and name not in library.names("recipe"):
        raise ConfigError(
            f"learner '{learner}' has no recipe of its own; name one with --recipe. If it is a stage's, see "
            "`metasearch ls distillations`"
        )
    found = library.recipe(name, overrides(assignments))
    if learner is not None and found.learner != learner:
        raise ConfigError(f"recipe '{name}' is for learner '{found.learner}', not '{learner}'")
    return found


def samplers(
    benchmark: Benchmark, recipe: Recipe, seed: int, valid: Data | None = None, embed: Embed | None = None
) -> dict[Phase, EpisodeSampler]:
    """Return the episode sampler of each phase: meta-train draws from train, meta-valid from dev.

    Args:
        benchmark: gives data and arrangements.
        recipe: says how to draw.
        seed: of the run.
        valid: the part of dev that meta-valid draws from; all of it by default.
        embed: vectors on the current encoder, for similar queries and graded negatives.

    Raises:
        DataError: the data is too small for the recipe.
    """
    parts = {"meta-train": benchmark.split.train, "meta-valid": valid or benchmark.split.dev}
    counts = {"meta-train": recipe.budget.meta_train, "meta-valid": recipe.budget.meta_valid}
    return {
        phase: EpisodeSampler(
            _sets(parts[phase], recipe, embed), benchmark.arrangements[phase], recipe.episodes, phase, seed
        )
        for phase in PHASES
        if counts[phase]
    }


def check_sizes(benchmark: Benchmark, recipe: Recipe) -> None:
    """Raise `DataError` when the data is too small for the recipe; needs no encoder."""
    samplers(benchmark, recipe, seed=0, valid=hold_out(benchmark.split.dev, recipe.budget.dev_holdout)[0])


def _sets(data: Data, recipe: Recipe, embed: Embed | None) -> SetSampler:
    if isinstance(data, RetrievalData):
        return TripletSampler(data, recipe.episodes, recipe.loss, embed)
    if isinstance(data, SimilarityData):
        return PairSampler(data, recipe.episodes)
    raise ConfigError("no episodes can be drawn of translations: they are for evaluation only")


def needs_vectors(recipe: Recipe) -> bool:
    """Say whether drawing episodes of a recipe takes vectors of the encoder."""
    return (recipe.episodes.queries, recipe.episodes.negatives) != ("random", "random")
