"""The replay backend: real child processes, real files, pretended compilations."""

from __future__ import annotations

import hashlib
import resource
import secrets
import signal
import time
from typing import TYPE_CHECKING, NoReturn

from smart_tuner.backends.replay.knobs import described_knobs
from smart_tuner.backends.replay.runner import ReplayRunner, write_engine_file
from smart_tuner.engine.backend import API_VERSION
from smart_tuner.engine.build import Engine
from smart_tuner.engine.platform import Platform
from smart_tuner.errors import BuildError, NotApplied, UserInputError
from smart_tuner.model.load import load_model
from smart_tuner.simulate.effects import Failure
from smart_tuner.simulate.model_file import description_path, load_description

if TYPE_CHECKING:
    from pathlib import Path

    from smart_tuner.engine.build import BuildRequest
    from smart_tuner.knobs.database import KnobDatabase
    from smart_tuner.model.spec import ModelSpec
    from smart_tuner.simulate.description import Description

_VERSION = "replay 1"


class ReplayBackend:
    """Answers from ``<model file>.replay.json``.

    Routes that break do so for real, as a native compiler would: they abort, segfault or hang
    the process that builds. Building takes no time and costs what the description says, unless
    that asks for real seconds.
    """

    name = "replay"
    api_version = API_VERSION

    def platform(self) -> Platform:
        """Return a platform that says that nothing here is real."""
        return Platform("simulated", "simulated", _VERSION, "simulated")

    def knobs(self, model: ModelSpec | None = None) -> KnobDatabase:
        """Return the knobs of the compiler described beside the model.

        Raises:
            UserInputError: There is no model, or no valid description beside it.
        """
        if model is None:
            msg = "The replay backend has a compiler for each model: name a MODEL.onnx with MODEL.onnx.replay.json beside it."
            raise UserInputError(msg)
        return described_knobs(load_description(model.path))

    def build(self, request: BuildRequest, workdir: Path) -> Engine:
        """Pretend to build; writes ``engine.json`` into ``workdir``.

        A reference build is exact and never breaks.

        Raises:
            BuildError: The described compiler fails, or no such trial was recorded.
            NotApplied: It ignores the route.
            UserInputError: The model, its description, or a knob or value is unknown.
        """
        load_model(request.model)
        description = load_description(request.model)
        values = {} if request.reference else {**request.base, **request.route.values}
        compiler = description.compiler
        seconds = compiler.route_build_seconds(values)
        failure = None if request.reference else compiler.failure(values)
        _wait_or_break(failure, seconds, description)
        in_effect = repr(
            (compiler.digest(), request.reference, compiler.settings_in_effect(values))
        )
        path = workdir / "engine.json"
        digest = write_engine_file(
            path,
            request.model,
            values,
            build_seed=_build_seed(description, in_effect),
            reference=request.reference,
        )
        fingerprint = hashlib.sha256(in_effect.encode("utf-8", "surrogatepass")).hexdigest()
        return Engine(path, digest, fingerprint, request, seconds)

    def files_read_again(self, model: Path) -> tuple[Path, ...]:
        """Return the model and its description."""
        return (model, description_path(model))

    def load(self, engine: Engine) -> ReplayRunner:
        """Load an engine file.

        Raises:
            RunError: The file is not the one that was built.
        """
        return ReplayRunner(engine)


def _build_seed(description: Description, in_effect: str) -> int:
    """Draw which of a route's possible engines is built."""
    if description.seed is None:
        return secrets.randbits(62)
    text = repr((description.seed, in_effect)).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(text).digest()[:7], "little")


def _wait_or_break(failure: Failure | None, seconds: float, description: Description) -> None:
    if failure is Failure.HANG:
        _hang()
    time.sleep(seconds * description.real_seconds)
    if failure is Failure.NOT_APPLIED:
        msg = "The simulated compiler ignores this route."
        raise NotApplied(msg)
    if failure is Failure.BUILD_ERROR:
        msg = "The simulated compiler fails on this route."
        raise BuildError(msg)
    if failure in (Failure.ABORT, Failure.SEGFAULT):
        _die(signal.SIGABRT if failure is Failure.ABORT else signal.SIGSEGV)


def _hang() -> NoReturn:
    while True:
        time.sleep(3600)


def _die(number: signal.Signals) -> None:
    """End the process as native code would, without a core file."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)
