"""Where cells of a study run: names and values are checked before anything is begun."""

import pytest

from helpers.crossval import FLAGS, run
from metasearch.config.launchers import SETTINGS, LauncherConfig, place_of
from metasearch.errors import ConfigError


def test_settings_may_stand_alone_or_together_and_values_may_have_spaces():
    together = place_of("slurm", ["partition=gpu time=4:00:00 comment=two words", "gres=gpu:a100:1"])
    assert together == LauncherConfig(
        "slurm", {"partition": "gpu", "time": "4:00:00", "comment": "two words", "gres": "gpu:a100:1"}
    )
    assert place_of(None, []) is None
    assert place_of("local", []) == LauncherConfig()


@pytest.mark.parametrize(
    ("launcher", "written", "says"),
    [
        ("slurm", "partitoin=gpu", "unknown setting of the launcher 'slurm' 'partitoin'. Did you mean 'partition'?"),
        ("ray", "time=1", "unknown setting of the launcher 'ray' 'time'"),
        ("slurm", "cpus", "--launcher-set cpus: expected KEY=VALUE, such as cpus=4"),
        ("slurm", "cpus=0", "--launcher-set cpus=0: expected a number of cores such as 4"),
        ("ray", "memory=8", "--launcher-set memory=8: expected a number with M, G or T, such as 8G"),
        ("slurm", "gpus=a100:1", "--launcher-set gres=gpu:a100:1 names a type"),
        ("slurm", "gpus=1 gres=gpu:1", "gpus and gres both ask for GPUs"),
        ("slurm", "comment=a\nb", "expected a value without line breaks"),
        ("local", "cpus=2", "the launcher 'local' has no settings"),
        (None, "cpus=2", "--launcher-set cpus=2 goes with --launcher slurm or ray"),
        ("slrum", "", "unknown launcher 'slrum'. Did you mean 'slurm'?"),
    ],
)
def test_what_is_wrong_is_named(launcher, written, says):
    with pytest.raises(ConfigError) as error:
        place_of(launcher, [written] if written else [])
    assert says in str(error.value)


@pytest.mark.parametrize(("launcher", "key"), [(name, key) for name, keys in SETTINGS.items() for key in keys])
def test_the_document_has_every_setting(launcher, key):
    from helpers.documents import DOCUMENTS

    assert f"`{key}`" in DOCUMENTS["docs/clusters.md"]


def test_a_wrong_setting_ends_the_command_before_anything_is_written(tmp_path):
    flags = ["--launcher=slurm", "--launcher-set=cpu=2", "-o", tmp_path / "study"]
    assert "Did you mean 'cpus'?" in run(*FLAGS, *flags, code=2).stderr
    assert not (tmp_path / "study").exists()
