"""What ships, and how a user's own declarations stand beside it (MAML-Align paper, Table 4 and appendix C.3)."""

import pytest

from helpers.declarations import RECIPE, TASK
from metasearch.config import registry
from metasearch.config.library import Library
from metasearch.config.measure import Measure
from metasearch.config.roles import MaxLength
from metasearch.config.run import EncoderConfig
from metasearch.config.task import PHASES, Task, resolve
from metasearch.errors import ConfigError

LIBRARY = Library()
RETRIEVAL = ("lareqa", "demo")
SIMILARITY = ("stsb", "demo-sts")
MONOLINGUAL = ("en_en", "ar_ar", "es_es")
CROSS_LINGUAL = ("ar_en", "es_en", "tr_en")


def chains(task, mode, phase="meta-train"):
    arrangements = resolve(LIBRARY.task(task), LIBRARY.mode(mode), LIBRARY.modes())
    return [str(arrangement) for arrangement in arrangements[phase]]


@pytest.mark.parametrize("name", LIBRARY.names("task"))
def test_a_shipped_task_loads_names_a_reader_and_measures_that_exist_and_can_be_declared_again(name):
    task = LIBRARY.task(name)
    assert task.reader in registry.names("readers")
    assert [str(Measure.parse(measure, task.kind)) for measure in task.measures] == task.measures
    assert any(mode.arrangements(task) for mode in LIBRARY.modes()) != task.evaluation_only
    assert Task.model_validate(task.model_dump(mode="json", exclude_none=True)) == task


@pytest.mark.parametrize("task", RETRIEVAL)
@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("mono-mono", ["el_el -> ar_ar", "hi_hi -> de_de"]),
        ("mono-bi", ["el_el -> el_ar", "hi_hi -> hi_de"]),
        ("mono-multi", ["el_el -> el_{ar,el}", "hi_hi -> hi_{de,hi}"]),
        ("bi-multi", ["el_ar -> el_{ar,el}", "hi_de -> hi_{de,hi}"]),
        ("mono-bi-multi", ["el_el -> el_ar -> el_{ar,el,hi}", "hi_hi -> hi_de -> hi_{ar,de,hi}"]),
    ],
)
def test_retrieval_has_the_arrangements_of_table_4_in_both_phases(task, mode, expected):
    assert chains(task, mode, "meta-train") == chains(task, mode, "meta-valid") == expected


@pytest.mark.parametrize("task", RETRIEVAL)
def test_mixt_has_all_eight_arrangements_of_two_links_and_trans_goes_from_mono_bi_to_bi_multi(task):
    simple = [chain for mode in ("mono-mono", "mono-bi", "mono-multi", "bi-multi") for chain in chains(task, mode)]
    for phase in PHASES:
        assert chains(task, "mixt", phase) == simple
    assert len(set(simple)) == 4 * 2
    assert chains(task, "trans", "meta-train") == chains(task, "mono-bi")
    assert chains(task, "trans", "meta-valid") == chains(task, "bi-multi")


@pytest.mark.parametrize("task", SIMILARITY)
def test_similarity_has_all_ordered_pairs_of_languages_and_each_monolingual_with_each_cross_lingual_pair(task):
    expected = {f"{x} -> {y}" for x in MONOLINGUAL for y in MONOLINGUAL if x != y}
    assert set(chains(task, "mono-mono")) == expected
    assert len(chains(task, "mono-mono")) == 3 * 2
    assert set(chains(task, "mono-bi")) == {f"{x} -> {y}" for x in MONOLINGUAL for y in CROSS_LINGUAL}
    assert len(chains(task, "mono-bi")) == 3 * 3


def test_a_mode_that_similarity_does_not_have_is_refused_with_those_it_has():
    mode = "mono-multi"
    with pytest.raises(ConfigError) as caught:
        chains("stsb", mode)
    assert str(caught.value) == (
        f"mode '{mode}' has no arrangement for task 'stsb' (modes of stsb: mono-bi, mono-bi-multi, mono-mono)"
    )


@pytest.mark.parametrize(
    ("task", "max_length", "measures"),
    [
        ("lareqa", {"question": 96, "candidate": 256}, ["map@20", "map"]),
        ("stsb", {"text": 100}, ["pearson", "spearman"]),
    ],
)
def test_the_papers_benchmarks_have_its_lengths_measures_and_five_folds(task, max_length, measures):
    declared = LIBRARY.task(task)
    assert declared.max_length.model_dump(exclude_unset=True) == max_length
    assert (declared.measures, declared.monitor) == (measures, measures[0])
    assert (declared.folds.method, declared.folds.k, declared.folds.shuffle) == ("kfold", 5, False)


def test_a_folder_of_the_users_own_adds_a_task_a_mode_and_a_recipe(write, tmp_path):
    write(TASK, "fjord")
    write("mode: north\ndescription: d\nmeta_train: [mono -> bi]\nmeta_valid: [mono -> bi]\n", "modes/north")
    write(RECIPE, "recipes/small")
    library = Library([tmp_path])
    assert library.task("fjord").languages == ["no", "de"]
    assert library.mode("north").arrangements(library.task("fjord"))
    assert library.recipe("small").episodes.k == 2
    assert library.names("task") == sorted([*LIBRARY.names("task"), "fjord"])
    assert library.path("task", "fjord") == tmp_path / "fjord.yaml"


def test_a_file_in_the_working_directory_is_found_by_its_name(write, tmp_path, monkeypatch):
    write(TASK, "fjord")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"^unknown task 'fjord'; .* fjord\.yaml, write: fjord --include \.$"):
        LIBRARY.task("fjord")


@pytest.mark.parametrize(("kind", "name"), [("task", "demo"), ("mode", "modes/mixt"), ("recipe", "recipes/maml")])
def test_a_folder_of_the_users_own_may_not_redefine_a_name(write, tmp_path, kind, name):
    path = write("", name)
    with pytest.raises(ConfigError, match=f"^{path}: {kind} '{path.stem}' is declared already in .*{name}.yaml$"):
        Library([tmp_path])


def test_files_may_name_roles_query_and_document():
    assert MaxLength.model_validate({"query": 5, "document": 9}) == MaxLength(question=5, candidate=9)
    assert EncoderConfig.of("tiny", prompts={"query": "q: "}).prompts == {"question": "q: "}
    with pytest.raises(ValueError, match="'query' and 'question' are the same; omit one"):
        MaxLength.model_validate({"query": 5, "question": 5})
