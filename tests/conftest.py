"""Fixtures that several test files share."""

import copy
import functools
import gc
import importlib
import logging
import os
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from helpers.postgres import running as running_postgres

# Nothing that collection loads is garbage: the collector of garbage begins once all of it is there.
gc.disable()

# How long an example takes depends on what else the machine does; a first call into torch is slow anywhere. For more
# examples run pytest with --hypothesis-profile=many.
# In continuous integration the examples are always the same, so that what it refuses fails here, too, with CI=true.
# A fixture is made once for all examples of a test, which is no mistake here.
EACH = {"deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture]}
settings.register_profile("few", max_examples=10, derandomize="CI" in os.environ, **EACH)
settings.register_profile("many", max_examples=500, **EACH)
settings.load_profile("few")

# Two busy-waiting threads on cores that something else uses, too, make these small tensors a hundred times slower.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# No test, and no process that one starts, gets beyond this machine: what has its files here must not ask the network.
OFFLINE = Path(__file__).parent / "helpers" / "offline"
os.environ["PYTHONPATH"] = os.pathsep.join([str(OFFLINE), *filter(None, [os.environ.get("PYTHONPATH")])])
runpy.run_path(str(OFFLINE / "sitecustomize.py"), run_name="sitecustomize")

# What a killed process has written stays, waited for or not: only a crash of the machine would show whether it was.
os.fsync = lambda descriptor: None

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"


LONGEST = (
    "documents_run", "stored", "contributing", "installation", "one_figure", "scripts", "export_cli",
    "cell_jobs", "training_resume", "production", "startup", "processes_cli", "frozen", "structure",
    "tune", "pieces", "adapt", "tables", "crossval", "cards", "vocabulary", "saved_and_opened", "encoder_settings",
    "compressed_export", "saved_distillation", "compare", "postgresql", "distill_resume", "reload",
    "databases_cli", "index_kills", "cli", "stored_ranking", "distill_checks", "e5", "onnx_folder", "distillation",
    "page_browser", "report_browser",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files that take longest first: at the end, one process would wait for the other's last test."""
    order = {f"test_{name}.py": place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get(item.path.name, len(order)))


def pytest_collection_finish() -> None:
    """Take what is loaded for good out of what the collector of garbage walks through again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()
    if "torch" in sys.modules:  # where no test file has loaded it, no test is worth its 4 seconds
        copy_builtin_encoders()
        read_demo_once()
        build_graphs_once()


def copy_builtin_encoders() -> None:
    """Build a built-in encoder once for each seed and length, and give out copies: it is made hundreds of times."""
    for name in ("tiny", "mini", "mini_e5"):
        module = importlib.import_module(f"metasearch.encoders.builtin.{name}")
        module.build = copied(module.build)


def read_demo_once() -> None:
    """Read the data of the embedded benchmark once: they do not change, and most commands of tests read them."""
    benchmark = importlib.import_module("metasearch.data.benchmark")
    read, found = benchmark._read, {}

    @functools.wraps(read)
    def read_once(task: Any, path: Path, data: str | None) -> Any:
        if data is not None or path.parent != shipped_tasks:
            return read(task, path, data)
        key = (path, task.model_dump_json())
        if key not in found:
            found[key] = read(task, path, data)
        return found[key]

    shipped_tasks = importlib.import_module("metasearch.config.library").shipped()
    benchmark._read = read_once


def build_graphs_once() -> None:
    """Build the ONNX graph of an encoder once, which takes seconds, and give out copies."""
    module = importlib.import_module("metasearch.compress.onnx_folder")
    build, made = module.build_graph, {}

    @functools.wraps(build)
    def build_once(encoder: Any) -> Any:
        if encoder.fingerprint not in made:
            made[encoder.fingerprint] = build(encoder)
        return copy.deepcopy(made[encoder.fingerprint])

    module.build_graph = build_once


def copied(build: Callable) -> Callable:
    """Return a function of what another one made; `__wrapped__` is the other one."""
    made: dict = {}

    @functools.wraps(build)
    def build_copy(max_length: Any = None, seed: int = 0) -> Any:
        key = (max_length, seed)
        if key not in made:
            made[key] = build(max_length, seed)
        return copy.deepcopy(made[key])

    return build_copy


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Return the folder of the published data sets: `METASEARCH_DATA`, or `shared/data` beside the repository."""
    folder = Path(os.environ.get("METASEARCH_DATA") or BESIDE)
    if not folder.is_dir():
        pytest.skip(f"the published data sets are not here: set METASEARCH_DATA, or put them in {BESIDE}")
    return folder


@pytest.fixture(scope="session")
def postgres_server():
    """Return a server of PostgreSQL with pgvector (`helpers.postgres`)."""
    with running_postgres() as server:
        yield server


@pytest.fixture
def postgres(postgres_server):
    """Return the server without any table."""
    postgres_server.clear()
    return postgres_server


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a YAML file and returns its path."""

    def written(text: str | bytes, name: str = "small") -> Path:
        path = tmp_path / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return written


@pytest.fixture(autouse=True)
def package_logger() -> None:
    """Take back what the command of another test has made of the package's logger: no log depends on the order."""
    logger = logging.getLogger("metasearch")
    logger.handlers, logger.propagate = [], True
    logger.setLevel(logging.NOTSET)


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """Return a function that gives the lines of the log."""
    lines: list[str] = []
    handler, logger = logging.Handler(), logging.getLogger("metasearch")
    monkeypatch.setattr(handler, "emit", lambda record: lines.append(record.getMessage()))
    monkeypatch.setattr(logger, "handlers", [handler])
    logger.setLevel(logging.INFO)
    return lambda: lines
