"""What a folder is, and whether it is sound."""

from collections.abc import Iterator
from pathlib import Path

from metasearch.data.prepared.corpus import PreparedCorpus
from metasearch.data.prepared.manifest import Manifest, is_prepared
from metasearch.errors import ConfigError, MetasearchError, RunFolderError
from metasearch.export.facts import FILE as FACTS
from metasearch.export.facts import read_facts
from metasearch.export.onnx_encoder import OnnxEncoder
from metasearch.index.index import Index
from metasearch.index.manifest import FILE as MANIFEST
from metasearch.index.manifest import Manifest as IndexManifest
from metasearch.jobs.crossval.folder import StudyFolder
from metasearch.jobs.doctor.finding import Finding, Section, bad, checked, note
from metasearch.jobs.doctor.run import going_on, model, run, stage
from metasearch.jobs.resume import kind_of
from metasearch.runs.folder import RunFolder
from metasearch.study.read import STUDY_FILE, study_of

_KINDS = {
    "train": "a run of metasearch train",
    "distill": "a distillation",
    "score": "an encoder scored as it is",
    "study": "a study",
}
_ENCODER = ("modules.json", "config.json", "adapter_config.json")
_TOKENIZER = ("tokenizer.json", "tokenizer_config.json")


def sections_of(folder: Path, trust_remote_code: bool = False) -> Iterator[Section]:
    """Yield what a folder is, with the findings about it; of several runs side by side, a section each.

    Args:
        folder: to be looked at; nothing in it changes.
        trust_remote_code: run code that comes with an encoder, without which it cannot be loaded.
    """
    if _has(folder, ("config.yaml", STUDY_FILE)):
        yield _configured(folder, trust_remote_code)
    elif _has(folder.parent, ("config.yaml",)) and (folder / "data.txt").is_file():
        found = list(stage(folder, trust_remote_code))
        if not RunFolder(folder).finished:
            found.append(note("distillation", going_on(folder.parent)))
        yield Section(f"{folder}: a stage of the distillation {folder.parent}", found)
    elif is_prepared(folder):
        yield Section(f"{folder}: a prepared corpus", [_corpus(folder)])
    elif _has(folder, (MANIFEST,)):
        yield Section(f"{folder}: an index", [_index(folder)])
    elif _has(folder, (*_ENCODER, FACTS)):
        yield _encoder(folder, trust_remote_code)
    elif _has(folder, _TOKENIZER):
        yield Section(f"{folder}: a tokenizer", [checked("words", lambda: _tokenizer(folder))])
    elif runs := sorted(path for path in folder.glob("*") if _has(path, ("config.yaml", STUDY_FILE))):
        shown = Finding("runs", ", ".join(path.name for path in runs))
        yield Section(f"{folder}: runs side by side", [shown])
        for path in runs:
            yield _configured(path, trust_remote_code)
    else:
        yield Section(f"{folder}: not known", [bad("folder", _unknown(folder))])


def _configured(folder: Path, trust_remote_code: bool) -> Section:
    """Return the findings about a folder with a configuration: a run of any kind, or a study."""
    try:
        kind = kind_of(folder)
    except MetasearchError as error:
        return Section(f"{folder}: not known", [bad("config.yaml", error)])
    if kind == "study":
        return Section(f"{folder}: {_KINDS[kind]}", list(_study(folder, trust_remote_code)))
    of_study = study_of(folder)
    title = f"{folder}: {_KINDS[kind]}{f', a cell of the study {of_study.name}' if of_study else ''}"
    return Section(title, list(run(folder, kind, trust_remote_code)))


def _study(folder: Path, trust_remote_code: bool) -> Iterator[Finding]:
    """Yield what is wrong in the cells of a study, and a line for each cell that is sound."""
    study = StudyFolder(folder)
    try:
        stored = study.stored()
    except MetasearchError as error:
        yield bad(STUDY_FILE, error)
        return
    cells = [*stored.made, *stored.cells]
    yield Finding(STUDY_FILE, f"readable, {len(cells)} cells")
    for name in cells:
        place = study.at(name)
        if not _has(place, ("config.yaml",)):
            yield note(f"cells/{name}", "not begun")
            continue
        found = _configured(place, trust_remote_code).findings
        wrong = [each for each in found if each.state == "bad"]
        yield from (Finding(f"cells/{name}/{each.about}", each.found, each.state, each.code) for each in wrong)
        if not wrong:
            yield Finding(f"cells/{name}", "finished") if study.done(name) else note(f"cells/{name}", "not finished")
    if (folder / "results.jsonl").is_file():
        yield checked("results.jsonl", lambda: f"{len(RunFolder(folder).results())} scores")
    unfinished = sum(not study.done(name) for name in cells)
    if unfinished:
        yield note("report.md", f"{unfinished} of {len(cells)} cells are not finished; {going_on(folder)}")
    else:
        yield Finding("report.md", "finished") if study.report.is_file() else note("report.md", going_on(folder))


def _tokenizer(folder: Path) -> str:
    from transformers import AutoTokenizer

    try:
        return f"{len(AutoTokenizer.from_pretrained(str(folder), local_files_only=True)):,}"
    except Exception as error:  # the library raises anything from OSError to bare Exception
        raise RunFolderError(f"{folder}: the tokenizer cannot be loaded: {error}") from error


def _encoder(folder: Path, trust_remote_code: bool) -> Section:
    if (folder / FACTS).is_file():
        return Section(f"{folder}: an export to ONNX", [_graph(folder)])
    return Section(f"{folder}: an encoder", [model(folder, "weights", trust_remote_code)])


def _graph(folder: Path) -> Finding:
    """Return what a graph is, all of its files loaded; without onnxruntime, which is optional, how to get that."""
    facts = checked("metasearch.json", lambda: read_facts(folder).precision)
    if facts.state == "bad":
        return facts
    try:
        encoder = OnnxEncoder(folder)
    except ConfigError as error:
        return note("graph", f"not loaded: {error}")
    except MetasearchError as error:
        return bad("graph", error)
    return Finding("graph", f"{encoder.dimension()} dimensions, {facts.found}; made of '{encoder.name}'")


def _unknown(folder: Path) -> RunFolderError:
    """Return why a folder is nothing that metasearch writes, with what is near or what is in it."""
    try:
        kind_of(folder)
    except RunFolderError as error:
        if not folder.is_dir():
            return error
    held = ", ".join(sorted(path.name for path in folder.iterdir())[:6]) or "nothing"
    return RunFolderError(
        f"{folder} is no run, distillation, study, encoder, tokenizer, index or prepared corpus; it holds {held}"
    )


def _has(folder: Path, names: tuple[str, ...]) -> bool:
    return any((folder / name).is_file() for name in names)


def _corpus(folder: Path) -> Finding:
    """Return what a prepared corpus has, all shards compared with their hashes."""
    if not (folder / MANIFEST).exists():
        return note(
            "preparation", "it is not finished; the command of metasearch prepare, given again, goes on with it"
        )

    def found() -> str:
        corpus = PreparedCorpus(folder, Manifest.read(folder))
        tokens = corpus.manifest.asked.tokens
        return f"{len(corpus):,} pairs in {len(corpus.shards)} shards, all files sound; tokens of '{tokens.encoder}'"

    return checked("files", found)


def _index(folder: Path) -> Finding:
    """Return what an index has, all files compared with their hashes."""

    def found() -> str:
        index = Index.open(folder)
        index.verify()
        return (
            f"{index.places:,} passages of {index.files:,} documents, all files sound; encoder '{index.kind.encoder}'"
        )

    try:
        begun = IndexManifest.read(folder).locations is None
    except MetasearchError as error:
        return bad("files", error)
    if begun:
        return note("index", "it is not finished; the command of metasearch index, given again, goes on with it")
    return checked("files", found)
