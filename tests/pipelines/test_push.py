"""`metasearch push` against a hub on this machine: what goes, what does not, and what is said when something fails."""

import hashlib
import json
import time
import urllib.request
from types import SimpleNamespace

import huggingface_hub.utils._http as hub_http
import numpy as np
import pytest
from huggingface_hub import constants
from safetensors.numpy import save_file

from helpers import hub as hubs
from helpers.commands import metasearch
from metasearch.encoders.load import load_encoder
from metasearch.runs.folder import SUMS, write_checksums

NAME = "me/search"
CARD = "---\nlicense: cc0-1.0\n---\n# A small model\n"


@pytest.fixture
def model(tmp_path):
    """The folder of a model of some random numbers, large enough to be uploaded apart from the commit."""
    folder = tmp_path / "model"
    (folder / "1_Pooling").mkdir(parents=True)
    weights = {"words": np.random.default_rng(0).random((hubs.LARGE // 64, 32), np.float32)}
    save_file(weights, folder / "model.safetensors")
    modules = [{"idx": 0, "name": "0", "path": ""}, {"idx": 1, "name": "1", "path": "1_Pooling"}]
    for name, text in {
        "modules.json": json.dumps(modules), "config.json": "{}", "tokenizer.json": "{}", "README.md": CARD,
        "1_Pooling/config.json": '{"pooling_mode": "mean"}',
    }.items():  # fmt: skip
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A real model with a card."""
    folder = tmp_path_factory.mktemp("saved") / "model"
    load_encoder("tiny").save(folder)
    (folder / "README.md").write_text(CARD, encoding="utf-8")
    return folder


@pytest.fixture
def hub(monkeypatch):
    """A hub, and a user who may write to it."""
    with hubs.running() as found:
        monkeypatch.setattr(constants, "ENDPOINT", found.endpoint)
        # The other way to upload, by chunks of a server of its own, is chosen by the hub's library where it may.
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        unhurried = {**vars(time), "sleep": lambda seconds: None}
        monkeypatch.setattr(hub_http, "time", SimpleNamespace(**unhurried))
        monkeypatch.setenv("HF_TOKEN", hubs.TOKEN)
        yield found
    hub_http.close_session()


def push(*args, code=0):
    result = metasearch("push", *args, code=code)
    assert hubs.TOKEN not in result.output
    return result


def content(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def said(result):
    """Return the last line on stderr, which is the error."""
    return result.stderr.splitlines()[-1]


def test_without_yes_it_shows_what_would_go_and_asks_nobody(hub, model):
    shown = push(model, NAME, "--private").stdout
    sizes = {name: len(found) for name, found in content(model).items()}
    lines = [[cell.strip() for cell in line.split("|")[1:3]] for line in shown.splitlines() if "|" in line]
    assert all([name, f"{size:,}"] in lines for name, size in sizes.items())
    assert f"| {len(sizes)} files " in shown
    assert f"{sum(sizes.values()):,}" in shown
    for fact in (
        f"{hub.endpoint}/{NAME}, branch main",
        "its owner, if the repository is new",
        "A small model",
        "cc0-1.0",
    ):
        assert fact in shown
    assert "Nothing was sent. Add --yes" in shown
    assert hub.asked == []


def test_with_yes_every_file_arrives_byte_for_byte(hub, saved):
    model = saved
    done = json.loads(push(model, NAME, "--yes", "--json").stdout)
    arrived = hub.files(NAME)
    assert {name: arrived[name] for name in content(model)} == content(model)
    assert arrived.keys() - content(model).keys() == {".gitattributes"}
    assert done["pushed"]["changed"]
    assert done["plan"]["bytes"] == sum(map(len, content(model).values()))
    assert not hub.repositories[NAME]["private"]
    # Larger than a part: it came in two.
    assert {key[1] for key in hub.parts} == PARTS
    asked = urllib.request.Request(
        f"{hub.endpoint}/{NAME}/resolve/main/model.safetensors", headers={"Authorization": f"Bearer {hubs.READER}"}
    )
    with urllib.request.urlopen(asked) as fetched:
        assert fetched.read() == (model / "model.safetensors").read_bytes()


PARTS = {1, 2}


def test_what_is_there_already_is_not_sent_again(hub, model):
    push(model, NAME, "--yes")
    before = dict(hub.uploads)
    assert "nothing is new" in push(model, NAME, "--yes").stdout
    (model / "README.md").write_text(CARD + "\nMore.\n", encoding="utf-8")
    assert f"pushed: {hub.endpoint}/{NAME}" in push(model, NAME, "--yes").stdout
    assert hub.uploads == before
    assert hub.files(NAME)["README.md"].endswith(b"More.\n")


def test_private_is_not_sent_to_a_repository_that_everybody_can_read(hub, model):
    hub.make(NAME)
    assert "is public, but --private was given; nothing was sent" in said(
        push(model, NAME, "--private", "--yes", code=9)
    )
    assert hub.files(NAME) == {}


def test_files_that_are_no_part_of_a_model_are_named_and_not_sent(hub, model, tmp_path):
    own = content(model)
    (tmp_path / "secret").write_text("x", encoding="utf-8")
    (model / "vocab.txt").symlink_to(tmp_path / "secret")
    for name in (".git/config", "checkpoint/model.safetensors", ".env", "log.jsonl", "train.py", "pytorch_model.bin"):
        (model / name).parent.mkdir(exist_ok=True)
        (model / name).write_bytes(b"x")
    names = ".env, .git/config, checkpoint/model.safetensors, log.jsonl, pytorch_model.bin, train.py, vocab.txt"
    planned = push(model, NAME, "--json")
    assert f"files not sent: {names}" in planned.stderr
    assert json.loads(planned.stdout)["plan"]["skipped"] == names.split(", ")
    push(model, NAME, "--yes")
    assert hub.files(NAME).keys() == {*own, ".gitattributes"}


def spoil(path, content):
    def change(model):
        (model / path).write_bytes(content)

    return change


def remove(path):
    def change(model):
        (model / path).unlink()

    return change


def seal(model):
    hashed = hashlib.sha256(b"another card").hexdigest()
    (model / SUMS).write_text(f"{hashed}  README.md\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (remove("modules.json"), 6, "is not a sentence-transformers model: it has no modules.json"),
        (spoil("modules.json", b"[1"), 6, "modules.json: no list of modules"),
        (remove("README.md"), 6, "has no README.md, its model card"),
        (spoil("README.md", b"---\n[\n---\n"), 3, "README.md: no model card: its header cannot be read"),
        (remove("model.safetensors"), 6, "has no weights"),
        (spoil("model.safetensors", b"\x10\0\0\0\0\0\0\0{"), 6, "model.safetensors: damaged weights"),
        (seal, 5, "README.md: checksum mismatch"),
    ],
)  # fmt: skip
def test_what_is_no_sound_model_is_refused_before_anybody_is_asked(hub, model, change, code, message):
    change(model)
    assert message in said(push(model, NAME, "--yes", code=code))
    assert hub.asked == []


def test_a_run_stands_for_its_model_and_must_be_as_it_was_written(hub, model, tmp_path):
    run = model.parent
    (run / "config.yaml").write_text("config: {}\n", encoding="utf-8")
    (run / "results.jsonl").write_text("{}\n", encoding="utf-8")
    write_checksums(run, "report")
    (model / "README.md").write_text(CARD + "Better.\n", encoding="utf-8")
    push(run, NAME)
    (run / "results.jsonl").write_text("[]\n", encoding="utf-8")
    assert "results.jsonl: checksum mismatch" in said(push(run, NAME, code=5))
    assert "results.jsonl: checksum mismatch" in said(push(model, NAME, code=5))


@pytest.mark.parametrize(
    ("step", "status", "what"),
    [
        ("POST /api/repos/create", 401, "does not know the token"),
        ("POST /api/repos/create", 403, "may not write to"),
        ("POST .*/preupload/main", 404, "no such repository, owner or branch main"),
        ("PUT /large/.*", 403, "may not write to"),
        ("PUT /large/.*", 0, "cannot be reached"),
        ("POST .*/commit/main", 412, "was changed in the meantime"),
        ("POST .*/commit/main", 0, "cannot be reached"),
        ("GET .*", 500, "answers 500"),
        ("GET .*", 429, "limits the rate of requests"),
    ],
)
def test_a_refusal_of_the_hub_is_one_line_and_the_same_command_goes_on(hub, model, step, status, what):
    hub.refuse[step] = status
    result = push(model, NAME, "--yes", code=9)
    assert what in said(result)
    assert "Run the same command again: it sends only what is missing" in said(result)
    assert len([line for line in result.stderr.splitlines() if "error" in line]) == 1
    hub.refuse.clear()
    push(model, NAME, "--yes")
    assert content(model).items() <= hub.files(NAME).items()
    assert set(hub.uploads.values()) == {1}


def test_a_token_that_may_only_read_or_is_none_is_refused(hub, model, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", hubs.READER)
    assert "the token may not write to" in said(push(model, NAME, "--yes", code=9))
    monkeypatch.setenv("HF_TOKEN", "hf_nobodys")
    result = push(model, NAME, "--yes", code=9)
    assert "does not know the token" in said(result)
    assert "hf_nobodys" not in result.output
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(model / "no-login"))
    assert "no token for" in said(push(model, NAME, "--yes", code=9))
