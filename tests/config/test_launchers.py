"""Where cells of a study run: names and values are checked before anything is begun."""

import pytest

from helpers.crossval import FLAGS, run
from helpers.documents import DOCUMENTS
from metasearch.config.study import SETTINGS, LauncherConfig
from metasearch.errors import ConfigError


def test_settings_may_stand_alone_or_together_and_values_may_have_spaces():
    together = LauncherConfig.parse("slurm", ["partition=gpu time=4:00:00 comment=two words", "gres=gpu:a100:1"])
    assert together == LauncherConfig(
        "slurm", {"partition": "gpu", "time": "4:00:00", "comment": "two words", "gres": "gpu:a100:1"}
    )
    assert LauncherConfig.parse(None, []) is None
    assert LauncherConfig.parse("local", []) == LauncherConfig()


def test_the_document_has_every_setting():
    keys = {key for keys in SETTINGS.values() for key in keys}
    assert {key for key in keys if f"`{key}`" not in DOCUMENTS["docs/clusters.md"]} == set()


def test_a_wrong_setting_ends_the_command_before_anything_is_written(tmp_path):
    flags = ["--launcher=slurm", "--launcher-set=cpu=2", "-o", tmp_path / "study"]
    assert "Did you mean 'cpus'?" in run(*FLAGS, *flags, code=2).stderr
    assert not (tmp_path / "study").exists()


@pytest.mark.parametrize(
    ("settings", "limit"),
    [({"time": "2"}, 120), ({"time": "1:30"}, 90), ({"time": "1:00:00", "before": "3600"}, 3600),
     ({"time": "1-0", "before": "90000"}, 86400), ({"time": "0-2:30", "before": "9000"}, 9000)],
)  # fmt: skip
def test_a_job_that_slurm_would_stop_at_its_start_is_refused(settings, limit):
    before = settings.get("before", "120")
    with pytest.raises(ConfigError, match=rf"before={before}: .* before its limit of {limit}; expected before below"):
        LauncherConfig("slurm", settings)
    for longer in ("3:00", "UNLIMITED", "0"):
        LauncherConfig("slurm", {"time": longer})
    LauncherConfig("slurm", {**settings, "before": str(limit - 1)})
