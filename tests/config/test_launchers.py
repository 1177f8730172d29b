"""Where cells of a study run: names and values are checked before anything is begun."""

from helpers.crossval import FLAGS, run
from helpers.documents import DOCUMENTS
from metasearch.config.study import SETTINGS, LauncherConfig, place_of


def test_settings_may_stand_alone_or_together_and_values_may_have_spaces():
    together = place_of("slurm", ["partition=gpu time=4:00:00 comment=two words", "gres=gpu:a100:1"])
    assert together == LauncherConfig(
        "slurm", {"partition": "gpu", "time": "4:00:00", "comment": "two words", "gres": "gpu:a100:1"}
    )
    assert place_of(None, []) is None
    assert place_of("local", []) == LauncherConfig()


def test_the_document_has_every_setting():
    keys = {key for keys in SETTINGS.values() for key in keys}
    assert {key for key in keys if f"`{key}`" not in DOCUMENTS["docs/clusters.md"]} == set()


def test_a_wrong_setting_ends_the_command_before_anything_is_written(tmp_path):
    flags = ["--launcher=slurm", "--launcher-set=cpu=2", "-o", tmp_path / "study"]
    assert "Did you mean 'cpus'?" in run(*FLAGS, *flags, code=2).stderr
    assert not (tmp_path / "study").exists()
