"""Reads model cards, and publishes a model on a model hub: all files in one commit, or none. Never imports torch.

`HfApi.upload_folder` may spread a folder over several commits, so the commit is made by `HfApi.create_commit`.
"""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any

from httpx2 import HTTPError
from huggingface_hub import CommitOperationAdd, HfApi, ModelCard, constants, get_token
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, OfflineModeIsEnabled
from huggingface_hub.utils._validators import validate_repo_id
from safetensors import safe_open

from metasearch.config.extras import LOADER
from metasearch.errors import ConfigError, DataError, EncoderError, HubError, MetasearchError, first_line
from metasearch.io import read_bytes
from metasearch.runs.folder import CONFIG, SUMS, require_unchanged
from metasearch.runs.markdown import markdown
from metasearch.runs.signals import interrupted

CARD = "README.md"
UNKNOWN = "unknown"
"""Licence of a model until its owner states one; model hubs know the word."""
MAIN = "main"
MODULES = "modules.json"
GRAPH = "metasearch.json"
"""In a folder with an ONNX graph, which has no modules."""
_NAMES = (
    CARD, SUMS, "LICENSE*", "LICENCE*", "NOTICE*", MODULES, "config.json",
    "config_sentence_transformers.json", "sentence_*_config.json", "data_config.json", "generation_config.json",
    "preprocessor_config.json", "tokenizer*.json", "special_tokens_map.json", "added_tokens.json", "vocab.json",
    "vocab.txt", "merges.txt",
    "*.model", "*.spm", "*.safetensors", "*.safetensors.index.json", "*.onnx", "*.onnx_data",
    "neutral.json", GRAPH, LOADER,
)  # fmt: skip
"""File names in models of any family, and files that metasearch writes beside them."""
_AGAIN = "Run the same command again: it sends only what is missing"
_IDENTIFIER = re.compile(r"[a-z0-9][a-z0-9.+-]{1,63}")


# Cards.


def load_card(path: Path) -> ModelCard:
    """Return a card; `DataError` if it cannot be read as one. Uses no network."""
    try:
        # ModelCard.load would look for a missing file on the hub.
        return ModelCard(read_bytes(path).decode("utf-8-sig"))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None
    except Exception as error:  # the YAML library and the card raise errors of their own
        raise DataError(f"{path}: no model card: its header cannot be read: {first_line(error)}") from None


def missing_card(folder: Path) -> str:
    """Return the error text for a model without a card."""
    how = "write the file: the lines '---', 'license: ID' and '---', and below them a description of the model"
    return f"{folder} has no {CARD}, its model card; {how}"


def read_title(path: Path) -> str:
    """Return the first heading of a card, or an empty text; `DataError` as `load_card`."""
    found = re.search(r"^# +(.+?) *$", load_card(path).text, re.M)
    return found[1] if found else ""


def read_licence(path: Path) -> str:
    """Return the licences that a card states; `unknown` if there are none or the card is damaged."""
    try:
        stated = load_card(path).data.get("license") if path.is_file() else None
    except MetasearchError:
        return UNKNOWN
    named = stated if isinstance(stated, list) else [stated]
    return ", ".join(each for each in named if isinstance(each, str) and each) or UNKNOWN


def require_identifier(licence: str) -> None:
    """Raise `ConfigError` for text that cannot be a licence identifier of model hubs."""
    if not _IDENTIFIER.fullmatch(licence):
        near = re.sub(r"[\s_]+", "-", licence.strip().lower())
        hint = f" Did you mean '{near}'?" if _IDENTIFIER.fullmatch(near) else ""
        raise ConfigError(
            f"licence '{licence}': expected an identifier of model hubs, such as apache-2.0 or cc-by-sa-4.0.{hint}"
        )


# Push.


@dataclass(frozen=True)
class PushPlan:
    """A model, and where it is to be published; `sizes` has the bytes of each file to send, by its path."""

    folder: Path
    sizes: dict[str, int]
    skipped: tuple[str, ...]
    name: str
    private: bool
    revision: str
    endpoint: str
    title: str
    licence: str

    @property
    def address(self) -> str:
        """Web address of the model."""
        return f"{self.endpoint}/{self.name}"

    def tree(self) -> dict[str, Any]:
        """Return the plan as JSON."""
        facts = {key: getattr(self, key) for key in ("name", "address", "revision", "private", "title", "licence")}
        files = [{"name": name, "bytes": size} for name, size in self.sizes.items()]
        sent = {"files": files, "bytes": sum(self.sizes.values()), "skipped": list(self.skipped)}
        return {**facts, "model": str(self.folder), **sent}

    def shown(self) -> str:
        """Return the plan in Markdown."""
        lines = [[name, f"{size:,}"] for name, size in self.sizes.items()]
        lines.append([f"{len(lines)} files", f"{sum(self.sizes.values()):,}"])
        facts = [
            ["to", f"{self.address}, branch {self.revision}"],
            ["visible to", f"{'its owner' if self.private else 'everybody'}, if the repository is new"],
            ["card", self.title or "without a title"],
            ["licence", self.licence],
        ]
        return f"{markdown(['file', 'bytes'], lines)}\n\n{markdown(['push', ''], facts, left=2)}"


@dataclass(frozen=True)
class PushResult:
    """The result of a push; `others` are the branch's files that do not belong to the model, and stay."""

    address: str
    commit: str
    changed: bool
    others: tuple[str, ...]


def plan_push(folder: Path, name: str, private: bool = False, revision: str = MAIN) -> PushPlan:
    """Return what would be sent where, after checking the model; uses no network.

    `folder` is a model or a run with one.
    """
    _require_name(name)
    model = find_model(folder)
    modules = _module_folders(model)
    paths = sorted(path for path in model.rglob("*") if path.is_symlink() or not path.is_dir())
    names = [path.relative_to(model).as_posix() for path in paths]
    sent = [each for each in names if _is_sent(model / each, each, modules)]
    _require_model(model, sent)
    sizes = {each: (model / each).stat().st_size for each in sent}
    card, skipped = model / CARD, tuple(each for each in names if each not in sizes)
    return PushPlan(
        model, sizes, skipped, name, private, revision, constants.ENDPOINT, read_title(card), read_licence(card)
    )


def push(plan: PushPlan) -> PushResult:
    """Publish a model as planned; the token comes from `HF_TOKEN` or `hf auth login`, the hub from `HF_ENDPOINT`."""
    token = get_token()
    if token is None:
        raise HubError(
            f"no token for {plan.endpoint}: set HF_TOKEN to a token with write access, or run: hf auth login"
        )
    with _one_line_errors(plan, token):
        return _push(HfApi(endpoint=plan.endpoint, token=token), plan)


def _push(api: HfApi, plan: PushPlan) -> PushResult:
    try:
        load_card(plan.folder / CARD).validate()
    except ValueError as error:
        raise ConfigError(f"{plan.endpoint} refuses the card: {' '.join(str(error).split())}") from None
    api.create_repo(plan.name, private=plan.private, exist_ok=True)
    if plan.private and not api.model_info(plan.name).private:
        raise HubError(
            f"{plan.address} is public, but --private was given; nothing was sent. Make it private on the hub, or "
            "choose another name"
        )
    if plan.revision != MAIN:
        api.create_branch(plan.name, branch=plan.revision, exist_ok=True)
    before = api.model_info(plan.name, revision=plan.revision)
    made = api.create_commit(
        plan.name,
        [CommitOperationAdd(name, plan.folder / name) for name in plan.sizes],
        commit_message=f"{plan.title or plan.name}, by metasearch push",
        revision=plan.revision,
        parent_commit=before.sha,
    )
    now = {each.rfilename for each in api.model_info(plan.name, revision=made.oid).siblings or ()}
    if missing := [name for name in plan.sizes if name not in now]:
        raise HubError(
            f"{plan.address} has the model without {', '.join(missing)}: a .gitignore there may exclude it. Delete "
            "the .gitignore, then push again"
        )
    others = sorted(now - plan.sizes.keys() - {".gitattributes"})
    return PushResult(plan.address, made.oid, made.oid != before.sha, tuple(others))


@contextmanager
def _one_line_errors(plan: PushPlan, token: str) -> Iterator[None]:
    """Turn errors of the network and the hub into one line each, without the token."""
    try:
        yield
    except KeyboardInterrupt:
        raise interrupted(f"stopped. {_AGAIN}") from None
    except OfflineModeIsEnabled:
        raise HubError(f"HF_HUB_OFFLINE is set, so {plan.endpoint} cannot be reached") from None
    except MetasearchError:
        raise
    except (HTTPError, OSError, RuntimeError) as error:
        # An upload wraps the errors of the network.
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, HTTPError | OSError):
            cause = cause.__cause__
        if cause is None:
            raise
        unreachable = f"{plan.endpoint} cannot be reached ({first_line(cause)})"
        text = _refusal(cause, plan) if isinstance(cause, HfHubHTTPError) else unreachable
        raise HubError(" ".join(f"{text}. {_AGAIN}".replace(token, "***").split())) from None


def _refusal(error: HfHubHTTPError, plan: PushPlan) -> str:
    code = error.response.status_code
    said = f" (it says: {error.server_message})" if error.server_message else ""
    known = {
        401: f"{plan.endpoint} does not know the token{said}; set HF_TOKEN, or run: hf auth login",
        403: f"the token may not write to {plan.address}{said}",
        404: f"{plan.address}: no such repository, owner or branch {plan.revision}{said}",
        409: f"{plan.address} was changed in the meantime{said}",
        412: f"{plan.address} was changed in the meantime{said}",
        429: f"{plan.endpoint} limits the rate of requests{said}; wait a while",
    }
    return known.get(code, f"{plan.endpoint} answers {code}{said}")


def find_model(folder: Path) -> Path:
    """Return the model folder that a path names: itself, or a run's model."""
    return folder / "model" if (folder / CONFIG).is_file() else folder


def _require_name(name: str) -> None:
    try:
        validate_repo_id(name)
    except HFValidationError as error:
        raise ConfigError(f"'{name}' is no name on a hub: {str(error).splitlines()[0]}") from None
    if "/" not in name:
        raise ConfigError(f"'{name}' has no owner; write OWNER/{name}")


def _module_folders(folder: Path) -> set[str]:
    """Return the folders of a model's modules; `EncoderError` if it is no model."""
    path = folder / MODULES
    if not folder.is_dir():
        raise EncoderError(f"{folder}: no such folder; name the folder of a model, such as runs/shop/model")
    if (folder / GRAPH).is_file():
        return {"", "onnx"}
    if not path.is_file():
        raise EncoderError(f"{folder} is not a sentence-transformers model: it has no {MODULES}")
    try:
        return {str(each["path"]) for each in json.loads(read_bytes(path))} | {"", "onnx"}
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise EncoderError(f"{path}: no list of modules: {first_line(error)}") from None


def _is_sent(path: Path, name: str, folders: set[str]) -> bool:
    """Return whether a file belongs to the model, by its name and folder."""
    place = PurePosixPath(name)
    # A link may point to a file outside of the model.
    inside = not path.is_symlink() and place.parent.as_posix().removeprefix(".") in folders
    return inside and any(fnmatch(place.name, pattern) for pattern in _NAMES)


def _require_model(folder: Path, names: Sequence[str]) -> None:
    """Raise an error where the card or the weights are missing or damaged, or files changed since they were written."""
    if CARD not in names:
        raise EncoderError(missing_card(folder))
    if not any(name.endswith((".safetensors", ".onnx")) for name in names):
        raise EncoderError(f"{folder} has no weights: no *.safetensors and no *.onnx in it")
    for name in names:
        if name.endswith(".safetensors"):
            try:
                with safe_open(folder / name, framework="numpy") as file:
                    file.keys()
            except Exception as error:  # the library has an error of its own
                raise EncoderError(f"{folder / name}: damaged weights: {first_line(error)}") from None
    require_unchanged(folder)
    run = folder.absolute().parent
    if folder.absolute().name == "model" and (run / CONFIG).is_file():
        require_unchanged(run)
