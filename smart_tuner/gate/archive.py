"""A finished study, put into a store: engines, timing caches, manifest, report, references."""

from __future__ import annotations

import hashlib
import secrets
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from smart_tuner.engine.backend import files_read_again
from smart_tuner.engine.build import LOADER_FILE
from smart_tuner.errors import EnvironmentNotFit
from smart_tuner.gate.documents import SCHEMA_VERSION, Artefact, Entry
from smart_tuner.gate.facts import facts_key
from smart_tuner.gate.store import ENTRY_FILE, PARTIAL, SOURCES, new_id, utc_now
from smart_tuner.model.files import file_digest, write_json
from smart_tuner.study.proof.result import Verdict
from smart_tuner.study.proof.winner import read_manifest
from smart_tuner.study.session import DECIDED
from smart_tuner.validate.constraint import constraint_to_json

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from smart_tuner.engine.build import Engine
    from smart_tuner.gate.facts import Facts
    from smart_tuner.gate.store import Store
    from smart_tuner.study.files.folder import StudyFolder
    from smart_tuner.study.proof.result import TuneResult
    from smart_tuner.study.setup.plan import Plan
    from smart_tuner.validate.constraint import AccuracyConstraint

CANDIDATE, DEFAULT, REFERENCES, STUDY = "candidate", "default", "references", "study"


@dataclass(frozen=True, slots=True)
class Finished:
    """A study that came to its verdict.

    Attributes:
        plan: What was decided beforehand.
        folder: The study.
        result: Its verdict.
        default: An engine of the base with no route.
        constraint: The accuracy constraint, every epsilon a number.
    """

    plan: Plan
    folder: StudyFolder
    result: TuneResult
    default: Engine
    constraint: AccuracyConstraint


def prepare_entry(name: str, facts: Facts, finished: Finished, place: Path) -> Entry:
    """Lay an entry out in a folder, ready to be put into a store.

    Args:
        name: What is tuned.
        facts: What the engine depends on.
        finished: The study.
        place: The folder to fill; made here.

    Raises:
        EnvironmentNotFit: Something cannot be written.
    """
    now, key = utc_now(), facts_key(facts)
    plan = finished.plan
    try:
        place.mkdir(parents=True)
        default = _copy_engine(finished.default, place / DEFAULT)
        ships = finished.result.verdict is Verdict.WINNER
        candidate = _copy_winner(finished.folder.winner, place / CANDIDATE) if ships else default
        shutil.copytree(finished.folder.references, place / REFERENCES)
        _copy_study(finished.folder, place / STUDY)
        files = files_read_again(plan.settings.backend, plan.model.path)
        sources = {str(path.relative_to(plan.model.path.parent)): path for path in files}
        digests = {relative: file_digest(path) for relative, path in sources.items()}
    except OSError as error:
        msg = f"{place}: cannot be written ({error.strerror or error}); free or allow that folder."
        raise EnvironmentNotFit(msg) from error
    return Entry(
        schema_version=SCHEMA_VERSION,
        id=new_id(name, key, now),
        name=name,
        created=now.isoformat(timespec="microseconds"),
        key=key,
        facts=facts,
        sentence=finished.result.sentence,
        candidate=candidate,
        default=default,
        base={**plan.base, **finished.folder.read_settings().get(DECIDED, {})},
        accuracy=constraint_to_json(finished.constraint),
        sources=digests,
        model_file=plan.model.path.name if digests else None,
        provisional=finished.result.provisional,
        files={
            str(path.relative_to(place)): file_digest(path)
            for path in sorted(place.rglob("*"))
            if path.is_file()
        },
    )


def put(store: Store, entry: Entry, place: Path, model: Path) -> Path:
    """Let a prepared entry appear in its store, whole.

    Args:
        store: The store.
        entry: The entry.
        place: Its folder, filled by ``prepare_entry``.
        model: The model file; source files lie beside it.

    Raises:
        EnvironmentNotFit: The store cannot be written to.
    """
    making = store.entries / f".{entry.id}{PARTIAL}"
    final = store.entries / entry.id
    with store.changing():
        if entry.sources:
            _put_sources(store, entry.sources, model.parent)
        shutil.copytree(place, making)
        write_json(making / ENTRY_FILE, entry.model_dump())
        making.rename(final)
    return final


def sources_digest(sources: Mapping[str, str]) -> str:
    """Name of the folder that holds some source files."""
    text = "\n".join(f"{digest} {name}" for name, digest in sorted(sources.items()))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _put_sources(store: Store, sources: Mapping[str, str], home: Path) -> None:
    digest = sources_digest(sources)
    final = store.source(digest)
    if final.is_dir():
        return
    making = store.root / SOURCES / f".{digest[:16]}-{secrets.token_hex(3)}{PARTIAL}"
    for relative in sources:
        target = making / relative
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(home / relative, target)
    making.rename(final)


def _copy_engine(engine: Engine, folder: Path) -> Artefact:
    """Copy an engine that was built just now."""
    folder.mkdir()
    shutil.copyfile(engine.path, folder / engine.path.name)
    if engine.timing_cache is not None and engine.timing_cache.is_file():
        shutil.copyfile(engine.timing_cache, folder / engine.timing_cache.name)
    if engine.loader:
        (folder / LOADER_FILE).write_text(engine.loader, encoding="utf-8")
    return Artefact(
        folder=folder.name,
        file=engine.path.name,
        route=list(engine.request.route.settings),
        fingerprint=engine.fingerprint,
        size_bytes=engine.size_bytes,
    )


def _copy_winner(winner: Path, folder: Path) -> Artefact:
    """Copy the folder that the study ships, the measured file in it."""
    manifest: Mapping[str, Any] = read_manifest(winner)
    shutil.copytree(winner, folder)
    engine = manifest["engine"]
    words = str(manifest["route"]).split()
    return Artefact(
        folder=folder.name,
        file=str(engine["file"]),
        route=[_setting(word) for word in words],
        fingerprint=str(engine["fingerprint"]),
        size_bytes=engine.get("size_bytes"),
    )


def _setting(word: str) -> tuple[str, str]:
    name, _, value = word.removeprefix("-").partition("=")
    return name, value


def _copy_study(study: StudyFolder, folder: Path) -> None:
    """What people read later; trials' logs and builds stay behind."""
    folder.mkdir()
    wanted = ("study.toml", "platform.json", "result.json", "report.md", "trials.jsonl")
    for path in (study.root / name for name in (*wanted, "report.html")):
        if path.is_file():
            shutil.copyfile(path, folder / path.name)
