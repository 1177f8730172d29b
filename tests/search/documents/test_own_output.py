"""What metasearch wrote is no document, wherever it lies and however it is reached; what looks like it is one."""

import json
import shutil

import pytest

from helpers.indexes import made, write_index
from helpers.saved import save
from helpers.studies import Made, write_run, write_study
from metasearch.encoders.builtin import tiny
from metasearch.errors import DataError
from metasearch.evaluation.report.build import build, write
from metasearch.evaluation.study.read import read_study
from metasearch.search.documents.read import sources

arrow = pytest.importorskip("pyarrow", reason="needs the extra corpora")
parquet = pytest.importorskip("pyarrow.parquet")


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """Return a folder with what the commands write, each with a document put into it."""
    folder = tmp_path_factory.mktemp("outputs")
    write_index(folder / "help.index", made(6))
    write_run(folder / "run", Made(learner="maml"))
    study = write_study(folder / "study", folds=(0,), questions=4)
    write(build(read_study([study])), folder / "report")
    save([("one", "eins", "en", "de", "TED")], folder / "corpus")
    tiny.build().save(folder / "encoder")
    for each in list(folder.iterdir()):
        (each / "inside").mkdir()
        for name in ("README.md", "inside/notes.txt"):
            (each / name).write_text("A document.", encoding="utf-8")
    (folder / "ranking.txt").write_text("de:q1 Q0 d1 1 0.5 mini\nde:q1 Q0 d2 2 0.25 mini\n", encoding="utf-8")
    return folder


KINDS = {
    "corpus": "a parallel corpus", "encoder": "an encoder", "help.index": "an index", "report": "a report",
    "run": "a run", "study": "a study", "ranking.txt": "a TREC run",
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("way", ["below", "linked", "named"])
def test_what_metasearch_wrote_is_named_and_passed_over(name, way, outputs, tmp_path, caplog):
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.txt").write_text("text", encoding="utf-8")
    place = docs / name if way != "named" else outputs / name
    if way == "linked":
        place.symlink_to(outputs / name)
    elif way == "below":
        (shutil.copytree if (outputs / name).is_dir() else shutil.copy)(outputs / name, place)
    found = sources([docs, place] if way == "named" else [docs])
    assert [source.path for source in found] == [docs / "a.txt"]
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        f"skipped, written by metasearch: {place.as_posix()} ({KINDS[name]})"
    ]


def test_nothing_but_own_output_is_an_error(outputs):
    with pytest.raises(DataError, match="no documents"):
        sources([outputs / "run", outputs / "ranking.txt"])


@pytest.mark.parametrize("name", ["index.sqlite", "study.yaml", "config.yaml", "modules.json", "tables.json"])
def test_a_folder_with_a_file_of_the_same_name_is_read(name, tmp_path):
    content = json.dumps({"theme": "plain"})
    (tmp_path / name).write_text(content, encoding="utf-8")
    (tmp_path / "a.md").write_text("text", encoding="utf-8")
    assert [source.path.name for source in sources([tmp_path])] == ["a.md"]


def test_a_table_of_the_user_is_a_document(tmp_path):
    parquet.write_table(arrow.table({"text": ["Where is the key?"]}), tmp_path / "shop.parquet")
    assert [source.path.name for source in sources([tmp_path])] == ["shop.parquet"]
