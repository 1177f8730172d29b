"""Data sets of the Hugging Face hub, downloaded to its cache or read from there."""

from pathlib import Path

from metasearch.errors import HubError, first_line

PREFIX = "hub:"
_TEXT = (".csv", ".tsv", ".jsonl", ".txt")
_FILES = ["*.parquet", *(f"*{suffix}{packed}" for suffix in _TEXT for packed in ("", ".gz", ".zst"))]


def is_hub_name(source: object) -> bool:
    """Return whether a source is a name such as `hub:mteb/nfcorpus`."""
    return isinstance(source, str) and source.startswith(PREFIX)


def fetch(name: str) -> Path:
    """Return the local path of `hub:ORG/NAME`, or of a file or folder in it: `hub:org/name/data/train.parquet`."""
    from huggingface_hub import snapshot_download  # takes a second, which other data need not wait for
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    org, _, rest = name.removeprefix(PREFIX).partition("/")
    dataset, _, inside = rest.partition("/")
    try:
        # Only the named part: a data set may have a folder for each of a thousand language pairs.
        wanted = [inside, *(f"{inside}/{name}" for name in _FILES)] if inside else _FILES
        folder = Path(snapshot_download(f"{org}/{dataset}", repo_type="dataset", allow_patterns=wanted))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        raise HubError(f"{name}: {first_line(error)}") from None
    if not (folder / inside).exists():
        raise HubError(f"{name}: data set {org}/{dataset} has no rows in '{inside}'")
    return folder / inside
