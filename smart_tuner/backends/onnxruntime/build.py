"""Building an engine: session settings that work, with a fingerprint of what they compile to."""

from __future__ import annotations

import hashlib
import json
import os
import time
from typing import TYPE_CHECKING, Any

import psutil

from smart_tuner.backends.onnxruntime.artefact import artefact_digest
from smart_tuner.backends.onnxruntime.catalogue import load_catalogue
from smart_tuner.backends.onnxruntime.loader import loader_source
from smart_tuner.backends.onnxruntime.resolve import reference_settings, resolve_settings
from smart_tuner.backends.onnxruntime.runtime import reason, runtime_version
from smart_tuner.backends.onnxruntime.session import open_session, run_options
from smart_tuner.backends.onnxruntime.settings import SessionSettings, effects
from smart_tuner.devices.cpu import cpu_quota
from smart_tuner.engine.build import Engine
from smart_tuner.engine.running import engine_bytes
from smart_tuner.errors import BuildError, ModelError, RunError, SmartTunerError, UserInputError
from smart_tuner.model.external import external_files
from smart_tuner.model.files import file_digest

if TYPE_CHECKING:
    from pathlib import Path

    from smart_tuner.engine.build import BuildRequest

SCHEMA = 1
# Above this the optimized model is not written out: it would cost seconds a trial, and at 2 GB
# it cannot be serialized at all.
ARTEFACT_LIMIT_BYTES = 500 * 1024 * 1024


def build_engine(request: BuildRequest, workdir: Path) -> Engine:
    """Open a session once, take the fingerprint, and write ``engine.json`` into ``workdir``.

    The fingerprint is the digest of the optimized graph with its weights, the runtime's version
    and every setting that can change a run beside the graph. If the optimized model cannot be
    written (too large, or no room), it is the model file's digest with all effective settings:
    two routes then never count as the same engine, unless all their effective settings agree.

    Raises:
        BuildError: The runtime refuses model or settings; the message is its reason, one line.
        NotApplied: A setting did not take.
        UserInputError: Base or route name something unknown.
    """
    started = time.perf_counter()
    settings = resolve_settings(request.base, request.route, load_catalogue())
    if request.reference:
        settings = reference_settings(settings)
    run_options(settings)
    artefact, notes = _compile(request.model, settings, workdir)
    facts = {
        "runtime": runtime_version(),
        "artefact": artefact or f"model {file_digest(request.model)}",
        "settings": effects(settings, graph_is_known=artefact is not None),
    }
    is_beside = request.precision is not None and request.model.parent == workdir
    document = {
        "schema": SCHEMA,
        # A model made for this engine moves with it.
        "model": request.model.name if is_beside else str(request.model),
        "artefact_sha256": artefact,
        "runtime": runtime_version(),
        "settings": settings.to_json(),
    }
    path = workdir / "engine.json"
    data = _canonical(document)
    path.write_bytes(data)
    return Engine(
        path=path,
        sha256=hashlib.sha256(data).hexdigest(),
        fingerprint=hashlib.sha256(_canonical(facts)).hexdigest(),
        request=request,
        build_seconds=time.perf_counter() - started,
        notes=(*notes, *_thread_notes(settings)),
        loader=loader_source(request.model, settings, runtime_version(), is_beside=is_beside),
    )


def _thread_notes(settings: SessionSettings) -> tuple[str, ...]:
    """The runtime counts cores; it sees neither affinity nor a container's quota."""
    cores, quota = psutil.cpu_count(logical=False) or 1, cpu_quota()
    if settings.provider == "cpu" and settings.intra_threads == 0 and cores > quota:
        return (f"the runtime starts {cores} threads by itself, the CPU quota is {quota}",)
    return ()


def read_engine(engine: Engine) -> tuple[Path, SessionSettings]:
    """Model path and settings of an engine file.

    Raises:
        RunError: The file is missing, is not the one that was built, or is of another version.
    """
    data = engine_bytes(engine)
    try:
        document = json.loads(data)
        if document["schema"] != SCHEMA:
            msg = f"engine {engine.path} has schema {document['schema']}, this version reads {SCHEMA}"
            raise RunError(msg)
        model = engine.path.parent / document["model"]
        return model, SessionSettings.from_json(document["settings"])
    except (ValueError, KeyError, TypeError) as error:
        msg = f"engine {engine.path} is not an ONNX Runtime engine file: {error}"
        raise RunError(msg) from error


def _compile(
    model: Path, settings: SessionSettings, workdir: Path
) -> tuple[str | None, tuple[str, ...]]:
    """Open the session; returns the artefact's digest, or None with a note why there is none."""
    if _size_with_data(model) > ARTEFACT_LIMIT_BYTES:
        _open(model, settings)
        return None, ("the model is large: its optimized graph was not compared",)
    path = workdir / "optimized.onnx"
    try:
        open_session(model, settings, save=path)
        return artefact_digest(path), ()
    except SmartTunerError:
        raise
    except Exception:  # noqa: BLE001  native errors share no class; a plain session tells which
        _open(model, settings)
        return None, ("the optimized graph could not be written out, so it was not compared",)
    finally:
        path.unlink(missing_ok=True)


def _open(model: Path, settings: SessionSettings) -> Any:
    """Open a plain session, its failure a BuildError."""
    try:
        return open_session(model, settings)
    except SmartTunerError:
        raise
    except Exception as error:
        raise BuildError(reason(error)) from error


def model_files(model: Path) -> tuple[Path, ...]:
    """The model file and the data files beside it.

    Raises:
        ModelError: A data file is missing.
    """
    import onnx

    proto = onnx.load(os.fspath(model), load_external_data=False)
    return (model, *external_files(proto, model))


def _size_with_data(model: Path) -> int:
    """Size of a model file with the data files beside it, as far as they can be told."""
    import onnx
    from google.protobuf.message import DecodeError

    size = 0
    try:
        size = model.stat().st_size
        if size > ARTEFACT_LIMIT_BYTES:
            return size
        proto = onnx.load(os.fspath(model), load_external_data=False)
        return size + sum(path.stat().st_size for path in external_files(proto, model))
    except OSError as error:
        msg = f"model {model} cannot be read: {error.strerror}"
        raise UserInputError(msg) from error
    except (DecodeError, ModelError):
        return size  # the runtime says what is wrong


def _canonical(data: object) -> bytes:
    """JSON with one spelling."""
    return json.dumps(data, sort_keys=True, indent=1).encode()
