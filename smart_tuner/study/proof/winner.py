"""The folder that ships: the measured engine, how to load it, and the proof."""

from __future__ import annotations

import datetime
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from smart_tuner.engine.build import LOADER_FILE, MODEL_FILE
from smart_tuner.errors import UserInputError
from smart_tuner.model.files import file_digest, write_json
from smart_tuner.route.parse import parse_route
from smart_tuner.study.proof.manifest import MANIFEST, SCHEMA_VERSION, parse_manifest
from smart_tuner.study.proof.result import GAINS, read_gain

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from smart_tuner.engine.build import Engine
    from smart_tuner.engine.platform import Platform
    from smart_tuner.route.build_route import BuildRoute
    from smart_tuner.study.files.folder import StudyFolder
    from smart_tuner.study.proof.fresh import Fresh
    from smart_tuner.study.proof.gain import Gain
    from smart_tuner.study.proof.result import TuneResult
    from smart_tuner.study.session import Session
    from smart_tuner.study.setup.plan import Plan


@dataclass(frozen=True, slots=True)
class PlatformChanges:
    """What differs between the platform that a winner was measured on and this one.

    Attributes:
        sentences: One a difference that matters.
        forbid_the_file: Whether the shipped engine file cannot be used here.
    """

    sentences: tuple[str, ...]
    forbid_the_file: bool


def ship(session: Session, shipped: Fresh, result: TuneResult) -> None:
    """Write ``winner/``: it appears whole, in place of an older one.

    Args:
        session: The study.
        shipped: The engine that was measured; its files are copied, never built again.
        result: The verdict.
    """
    folder, engine = session.folder.winner, shipped.engine
    making = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir()
    shutil.copy2(engine.path, making / engine.path.name)
    for companion in engine.companions:
        shutil.copyfile(companion, making / companion.name)
    if engine.timing_cache is not None and engine.timing_cache.is_file():
        shutil.copyfile(engine.timing_cache, making / engine.timing_cache.name)
    if engine.loader:
        (making / LOADER_FILE).write_text(engine.loader, encoding="utf-8")
    write_json(making / MANIFEST, _manifest(making, session, shipped, result))
    shutil.rmtree(folder, ignore_errors=True)
    making.replace(folder)


def _manifest(
    making: Path, session: Session, shipped: Fresh, result: TuneResult
) -> dict[str, Any]:
    plan, platform, engine = session.plan, session.platform, shipped.engine
    verdict = result.to_json()
    return {
        "schema_version": SCHEMA_VERSION,
        "created": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "model": {"path": str(plan.model.path), "sha256": plan.model.sha256},
        "route": str(engine.request.route),
        "base": {**plan.base, **session.decided},
        "engine": _engine(engine),
        "files": {path.name: file_digest(path) for path in sorted(making.iterdir())},
        "platform": {
            "device": platform.device,
            "driver": platform.driver,
            "backend_version": platform.backend_version,
            "tuner_version": platform.tuner_version,
            "details": dict(platform.details),
        },
        "gain": {key: verdict[key] for key in (*GAINS, "indicative")},
        "measured": plan.goal.words,
        "reference_backend": session.referee,
        "limits": [
            {"name": use.name, "figure": use.figure, "limit": use.limit}
            for use in shipped.trial.limits
        ],
        "provisional": result.provisional,
        "losses": [
            {
                "point": loss.point,
                "pair": loss.pair,
                "output": loss.output,
                "metric": loss.metric,
                "loss": loss.loss,
                "epsilon": loss.epsilon if loss.epsilon != float("inf") else "inf",
            }
            for loss in shipped.trial.losses
        ],
    }


def _engine(engine: Engine) -> dict[str, Any]:
    cache = engine.timing_cache
    return {
        "file": engine.path.name,
        "fingerprint": engine.fingerprint,
        "size_bytes": engine.size_bytes,
        "timing_cache": cache.name if cache is not None and cache.is_file() else None,
    }


def read_manifest(folder: Path) -> Mapping[str, Any]:
    """Read ``winner/manifest.json`` and check every file against its digest.

    Raises:
        UserInputError: There is no winner, or a file is missing or was changed.
    """
    path = folder / MANIFEST
    try:
        data = parse_manifest(path.read_bytes(), str(path))
    except FileNotFoundError:
        msg = f"No winner in {folder.parent}: the study has none, or is not finished."
        raise UserInputError(msg) from None
    except OSError as error:
        msg = f"{path} cannot be read ({error.strerror}): restore {folder}."
        raise UserInputError(msg) from None
    for name, digest in {data["engine"]["file"]: "", **data["files"]}.items():
        shipped = folder / name
        if shipped.is_symlink() or not shipped.is_file() or file_digest(shipped) != digest:
            msg = f"{shipped} is missing or was changed since it was measured: restore {folder}."
            raise UserInputError(msg)
    return data


def platform_changes(manifest: Mapping[str, Any], platform: Platform) -> PlatformChanges:
    """Compare the platform that a winner was measured on with this one.

    An engine file is of one GPU model and one compiler version; figures are of one driver too.
    """
    before: Mapping[str, Any] = manifest.get("platform", {})
    now = {
        "device": platform.device,
        "backend_version": platform.backend_version,
        "driver": platform.driver,
    }
    changed = {name: value for name, value in now.items() if before.get(name, value) != value}
    return PlatformChanges(
        tuple(
            f"The winner's {name.replace('_', ' ')} was {before[name]}, here it is {value}"
            f"{'; figures may differ.' if name == 'driver' else ': its engine is not for here.'}"
            for name, value in changed.items()
        ),
        forbid_the_file=bool(changed.keys() - {"driver"}),
    )


def shipped_gain(manifest: Mapping[str, Any]) -> Gain:
    """The route gain of a manifest.

    Raises:
        UserInputError: It holds none.
    """
    try:
        gain = read_gain(manifest["gain"]["route_gain"])
    except (KeyError, TypeError, ValueError) as error:
        msg = f"The winner's {MANIFEST} is damaged ({error!r}): ship anew with `tune`."
        raise UserInputError(msg) from None
    if gain is None:
        msg = f"The winner's {MANIFEST} names no gain: ship anew with `tune`."
        raise UserInputError(msg)
    return gain


def shipped_model(folder: StudyFolder, manifest: Mapping[str, Any]) -> Path | None:
    """The rewritten model that ships with a winner; ``None`` where it runs the user's own."""
    return folder.winner / MODEL_FILE if MODEL_FILE in manifest["files"] else None


def shipped_route(manifest: Mapping[str, Any], plan: Plan) -> BuildRoute:
    """The route of a manifest, checked against the knobs of today.

    Raises:
        UserInputError: A knob or a value no longer exists, or the model is another one.
    """
    if manifest.get("model", {}).get("sha256") != plan.model.sha256:
        msg = f"The winner was tuned for another model than {plan.model.path}: tune this one."
        raise UserInputError(msg)
    return parse_route(str(manifest.get("route", "")), plan.database)
