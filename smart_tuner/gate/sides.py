"""Engines out of a store, ready to be measured: only files whose digests are known."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from smart_tuner.engine.build import MODEL_FILE, BuildRequest, Engine
from smart_tuner.errors import UserInputError
from smart_tuner.gate.archive import REFERENCES, sources_digest
from smart_tuner.gate.measure import Side
from smart_tuner.gate.store import damaged
from smart_tuner.model.files import file_digest
from smart_tuner.precision.store import without_precision
from smart_tuner.route.build_route import BuildRoute
from smart_tuner.validate.constraint import constraint_from_json

if TYPE_CHECKING:
    from pathlib import Path

    from smart_tuner.gate.documents import Artefact, Entry
    from smart_tuner.gate.store import Kept, Store
    from smart_tuner.model.workload import Workload
    from smart_tuner.study.setup.plan import Plan
    from smart_tuner.trial.options import EvaluatorOptions


def taken_out(kept: Kept, store: Store, place: Path, home: Path | None = None) -> Path:
    """Copy an entry's engines and sources, each file checked against its digest as it is copied.

    What is measured are the copies: nobody can exchange them between the check and the use.

    Args:
        kept: The entry.
        store: Its store.
        place: Gets ``candidate``, ``default``, ``references`` and ``sources``; made if missing.
        home: Where the sources lie; by default where the store keeps them.

    Raises:
        UserInputError: A file is missing or was changed.
    """
    entry = kept.entry
    folders = (f"{entry.candidate.folder}/", f"{entry.default.folder}/", f"{REFERENCES}/")
    for name, digest in entry.files.items():
        if name.startswith(folders):
            _copy(kept.folder, name, digest, place)
    home = home or store.source(sources_digest(entry.sources))
    for name, digest in entry.sources.items():
        _copy(home, name, digest, place / "sources")
    return place


@dataclass(frozen=True, slots=True)
class TakenOut:
    """An entry copied out of its store.

    Attributes:
        entry: The entry.
        place: Where the copies lie.
        workload: What is measured.
        options: How processes are started and outputs judged.
    """

    entry: Entry
    place: Path
    workload: Workload
    options: EvaluatorOptions

    def side(self, name: str, artefact: Artefact) -> Side:
        """One archived engine.

        Args:
            name: What people call it.
            artefact: The engine.
        """
        entry, place = self.entry, self.place
        model = place / "sources" / entry.model_file if entry.model_file else place
        settings = dict(artefact.route)
        if f"{artefact.folder}/{MODEL_FILE}" in entry.files:
            # The network was rewritten once: what shipped is built, and nothing rewritten again.
            model = place / artefact.folder / MODEL_FILE
            settings = without_precision(settings)
        request = BuildRequest(
            model=model,
            route=BuildRoute(tuple(settings.items())),
            base=entry.base,
            shapes=tuple(point.shapes for point in self.workload.points),
        )
        if entry.sources:
            return Side(name, request, None, self.options)
        relative = f"{artefact.folder}/{artefact.file}"
        engine = Engine(
            path=place / relative,
            sha256=entry.files.get(relative, ""),
            fingerprint=artefact.fingerprint,
            request=request,
            build_seconds=0.0,
            size_bytes=artefact.size_bytes,
        )
        return Side(name, request, engine, self.options)


def options_of(entry: Entry, plan: Plan) -> EvaluatorOptions:
    """How engines of an entry are run and judged: its own base and accuracy, today's limits.

    Raises:
        UserInputError: The entry's accuracy is damaged.
    """
    own = plan.options_with(constraint_from_json(dict(entry.accuracy)))
    return replace(own, base=dict(entry.base))


def _copy(home: Path, name: str, digest: str, place: Path) -> None:
    source, target = home / name, place / name
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        if source.is_symlink():
            raise UserInputError(damaged(home, name))
        shutil.copyfile(source, target)
    except OSError:
        raise UserInputError(damaged(home, name)) from None
    if file_digest(target) != digest:
        raise UserInputError(damaged(home, name))
