"""The winner of a study, read for handing it on."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smart_tuner.engine.backend import load_backend
from smart_tuner.errors import EnvironmentNotFit, NoWinner, UserInputError
from smart_tuner.knobs.database import KnobDatabase
from smart_tuner.knobs.read import bundled_database
from smart_tuner.knobs.tensorrt_form import SOURCE
from smart_tuner.model.load import load_model
from smart_tuner.model.public import locate_model
from smart_tuner.model.store import read_workload
from smart_tuner.precision.store import without_precision
from smart_tuner.study.files.folder import StudyFolder
from smart_tuner.study.proof.manifest import MANIFEST
from smart_tuner.study.proof.result import read_result
from smart_tuner.study.proof.winner import read_manifest, shipped_gain, shipped_model

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from smart_tuner.model.workload import Workload

TENSORRT, RTX, ONNXRUNTIME = "tensorrt", "tensorrt_rtx", "onnxruntime"


@dataclass(frozen=True, slots=True)
class Winner:
    """What a study ships.

    Attributes:
        folder: The study.
        document: ``study.toml``.
        manifest: ``winner/manifest.json``; its files were checked against their digests.
        workload: Model and points.
    """

    folder: StudyFolder
    document: Mapping[str, Any]
    manifest: Mapping[str, Any]
    workload: Workload

    @property
    def engine(self) -> Path:
        """The engine file."""
        return self.folder.winner / str(self.manifest["engine"]["file"])

    @property
    def timing_cache(self) -> Path | None:
        """The timings of kernels that the winner's build ended with, if the study kept them."""
        name = self.manifest["engine"].get("timing_cache")
        return self.folder.winner / str(name) if name in self.manifest["files"] else None

    @property
    def runtime(self) -> str:
        """``tensorrt``, ``tensorrt_rtx``, ``onnxruntime``, or whatever the backend says."""
        return self._runtime()[0]

    @property
    def version(self) -> str:
        """Version of the runtime, e.g. ``11.1.0``."""
        return self._runtime()[1]

    @property
    def major(self) -> int:
        """Major version of the runtime; 0 if it has none."""
        found = re.match(r"\d+", self.version)
        return int(found[0]) if found else 0

    def _runtime(self) -> tuple[str, str]:
        name, _, version = str(self.manifest["platform"]["backend_version"]).partition(" ")
        # Packages of one runtime for several kinds of devices, such as onnxruntime-gpu.
        is_session = name.startswith(ONNXRUNTIME)
        return ONNXRUNTIME if is_session else name.lower().replace("-", "_"), version

    @property
    def is_plan(self) -> bool:
        """Whether the engine is a plan of TensorRT or TensorRT-RTX."""
        return self.runtime in {TENSORRT, RTX}

    @property
    def base(self) -> Mapping[str, str]:
        """The production configuration."""
        base = {str(name): str(value) for name, value in self.manifest["base"].items()}
        return without_precision(base)

    @property
    def route(self) -> Mapping[str, str]:
        """Value by knob name; the precision of regions is in the model that ships."""
        tokens = str(self.manifest["route"]).split(" ")
        pairs = (token.removeprefix("-").partition("=") for token in tokens if token)
        return without_precision({name: value for name, _, value in pairs})

    @property
    def settings(self) -> Mapping[str, str]:
        """Base and route together."""
        return {**self.base, **self.route}

    @property
    def model(self) -> Path:
        """The ONNX file that was compiled: the one that ships, where regions are lowered."""
        return shipped_model(self.folder, self.manifest) or self.original

    @property
    def original(self) -> Path:
        """The user's own ONNX file."""
        return self.workload.model.path

    @property
    def gain(self) -> str:
        """The route gain, in words."""
        return str(shipped_gain(self.manifest))

    @property
    def platform(self) -> str:
        """Where this holds, in words."""
        where = self.manifest["platform"]
        return f"{where['backend_version']} on {where['device']}, {where['driver']}"


def read_winner(study: Path) -> Winner:
    """Read the winner of a study.

    Raises:
        NoWinner: The study ships nothing.
        UserInputError: There is no study, it is damaged, or the model is gone or another one.
    """
    folder = StudyFolder(study.expanduser().absolute())
    document = folder.read_settings()
    if not (folder.winner / MANIFEST).is_file():
        _no_winner(folder)
    manifest = read_manifest(folder.winner)
    try:
        model = load_model(locate_model(Path(document["settings"]["model"])).expanduser())
        winner = Winner(folder, document, manifest, read_workload(model, folder.references))
        _ = winner.settings, winner.gain, winner.platform, winner.runtime
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        msg = f"{folder.winner / MANIFEST} is damaged ({error!r}): ship anew with `tune`."
        raise UserInputError(msg) from None
    if manifest["model"].get("sha256") != model.sha256:
        msg = f"The winner was tuned for another model than {model.path} now is: restore it."
        raise UserInputError(msg)
    return winner


def _no_winner(folder: StudyFolder) -> None:
    """Say why there is nothing to hand on.

    Raises:
        NoWinner: Always.
    """
    if folder.result_file.is_file():
        msg = f"{folder.root} ships nothing: {read_result(folder.result_file).sentence}"
    else:
        msg = f"{folder.root} has no verdict yet: `smart-tuner status` says how far it is."
    raise NoWinner(msg)


@dataclass(frozen=True, slots=True)
class RouteKnobs:
    """Which settings of a winner are route knobs.

    Attributes:
        database: The route knobs, the compiler's own defaults.
        notes: Where they come from, if that may matter.
    """

    database: KnobDatabase
    notes: tuple[str, ...] = ()

    def only(self, settings: Mapping[str, str]) -> Mapping[str, str]:
        """The settings that are route knobs."""
        return {name: value for name, value in settings.items() if name in self.database}


def route_knobs(winner: Winner) -> RouteKnobs:
    """The compiler's route knobs: as the backend lists them, or as tuner 2.19.45 did.

    A backend that cannot work here (no SDK on this machine) must not stand in the way of files
    that are only text.
    """
    backend = str(winner.document["settings"].get("backend", ""))
    try:
        listed = load_backend(backend).knobs(winner.workload.model)
    except EnvironmentNotFit as error:
        note = f"backend {backend} does not work here, so knobs are those of tuner"
        database = bundled_database()
        return RouteKnobs(database, (f"{note} {database.tuner_version} ({error})",))
    knobs = tuple(knob for knob in listed if knob.source == SOURCE)
    # The backend's version names the compiler too: "2.19.45, tensorrt 11.1.0".
    version = listed.tuner_version.partition(",")[0]
    return RouteKnobs(KnobDatabase(knobs, version))


def need_runtime(winner: Winner, wanted: Iterable[str], what: str) -> None:
    """Refuse what makes no sense for the runtime that the winner was tuned for.

    Raises:
        UserInputError: Says what it needs and what else can be done.
    """
    if winner.runtime not in wanted:
        names = " or ".join(wanted).replace("_", "-")
        msg = (
            f"{what} need a study of {names}; {winner.folder.root} is one of {winner.runtime}. "
            "See `smart-tuner export --help` for other forms."
        )
        raise UserInputError(msg)
