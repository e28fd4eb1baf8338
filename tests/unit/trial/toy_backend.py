"""A backend whose knobs make it fail in every way; y = 2 x + offset."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from smart_tuner.engine.build import BuildRequest, Engine
from smart_tuner.engine.platform import Platform
from smart_tuner.errors import BuildError, NotApplied, RunError
from smart_tuner.knobs.database import KnobDatabase
from smart_tuner.knobs.knob import Knob

if TYPE_CHECKING:
    from pathlib import Path

    from smart_tuner.engine.backend import Tensors
    from smart_tuner.model.spec import ModelSpec


def misbehave(how: str) -> None:
    if how in ("SIGSEGV", "SIGABRT", "SIGKILL"):
        os.kill(os.getpid(), getattr(signal, how))
        time.sleep(10)
    actions: dict[str, Any] = {
        "segfault": lambda: ctypes.string_at(0),
        "hang": lambda: time.sleep(600),
        "memory": allocate,
        "memory_error": lambda: np.ones(1 << 60, np.int8),
        "bug": lambda: os.environ["MISSING"],
        "grandchild": lambda: subprocess.Popen([sys.executable, "-c", "input()"]),
    }
    if how in actions:
        actions[how]()


def allocate() -> None:
    hoard = []
    for _ in range(200):
        hoard.append(np.ones(10 << 20, np.uint8))
        time.sleep(0.01)


class ToyRunner:
    def __init__(self, engine: Engine) -> None:
        self.settings = {**engine.request.base, **engine.request.route.values}
        self.folder = engine.request.model.parent
        self.is_baseline = not engine.request.route.settings and not engine.request.reference
        self.inputs: Tensors | None = None
        self.result: dict[str, Any] = {}
        self.runs = 0

    def __enter__(self) -> ToyRunner:
        if self.is_baseline:
            with (self.folder / "baseline.pids").open("a") as file:
                file.write(f"{os.getpid()}\n")
        return self

    def __exit__(self, *exc: object) -> None:
        self.inputs = None

    def infer(self, inputs: Tensors) -> Tensors:
        how = self.settings.get("run", "")
        if how == "error":
            raise RunError("the toy does not run")
        misbehave(how)
        self.runs += 1
        self.inputs = inputs
        x = np.asarray(inputs["x"], np.float32)
        y = 2 * x + np.float32(self.settings.get("offset", "0"))
        if how == "nan":
            y = y * np.float32("nan")
        if how == "shape":
            y = y[..., None]
        if self.settings.get("random"):
            y = y + np.random.default_rng().standard_normal(y.shape).astype(np.float32)
        if self.settings.get("first_run_differs") and self.runs == 1:
            y = y + np.float32(1)
        self.result = {"y": y.astype(np.float32)}
        return dict(self.result)

    def time_block(self, iterations: int) -> tuple[float, ...]:
        assert self.inputs is not None
        how = self.settings.get("time", "")
        if how == "error":
            raise RunError("the toy cannot be timed")
        misbehave(how)
        self.harm_baseline(how)
        if self.is_baseline and (self.folder / "baseline_is_broken").exists():
            os._exit(9)
        if how == "change":
            self.result = {"y": self.result["y"] + np.float32(100)}
        latency = float(self.settings.get("latency_ms", "2"))
        time.sleep(min(0.0005, latency / 1000))
        return (latency,) * iterations

    def harm_baseline(self, how: str) -> None:
        marker = self.folder / "harmed"
        if how == "harm_once" and marker.exists():
            return
        if how in ("harm_once", "harm_always", "harm_for_good"):
            marker.touch()
            if how == "harm_for_good":
                (self.folder / "baseline_is_broken").touch()
            pid = int((self.folder / "baseline.pids").read_text().split()[-1])
            os.kill(pid, signal.SIGKILL)
            time.sleep(0.1)

    def outputs(self) -> Tensors:
        return dict(self.result)


class ToyBackend:
    name = "toy"
    api_version = 1

    def platform(self) -> Platform:
        return Platform("toy device", "toy driver", "toy 1.0", "toy 1.0", {"cpus": "2"})

    def knobs(self, model: ModelSpec | None = None) -> KnobDatabase:
        idle = "" if model is None else f"idle on {model.path.name}"
        return KnobDatabase((Knob("idle", ("0", "1"), "0", idle=idle),), "toy 1.0")

    def build(self, request: BuildRequest, workdir: Path) -> Engine:
        settings = {**request.base, **request.route.values}
        how = settings.get("build", "")
        (workdir / "half.tmp").write_text("half")
        if how == "error":
            raise BuildError("the toy does not build")
        if how == "not_applied":
            raise NotApplied("the toy did not take build=not_applied")
        misbehave(how)
        (workdir / "half.tmp").unlink()
        settings.pop("idle", None)
        text = json.dumps(settings, sort_keys=True)
        path = workdir / "toy.json"
        path.write_text(text)
        digest = hashlib.sha256(text.encode()).hexdigest()
        return Engine(path, digest, digest, request, 0.01, ("built by a toy",))

    def load(self, engine: Engine) -> ToyRunner:
        settings = {**engine.request.base, **engine.request.route.values}
        if settings.get("load") == "error":
            raise RunError("the toy does not load")
        return ToyRunner(engine)
