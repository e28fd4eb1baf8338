"""A backend that misbehaves on demand: ``--backend case_backend:CaseBackend``; y = x + x."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import time
from typing import TYPE_CHECKING

import numpy as np

from smart_tuner.engine.build import BuildRequest, Engine
from smart_tuner.engine.platform import Platform
from smart_tuner.errors import BuildError
from smart_tuner.knobs.database import KnobDatabase
from smart_tuner.knobs.knob import Knob

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from smart_tuner.engine.backend import Tensors
    from smart_tuner.model.spec import ModelSpec

LEVELS = "CASE_LEVELS"
LOADS = "CASE_LOADS"
SLOW = "CASE_SLOW"
"""Environment variables: choices of the knob ``level``; a file that gets one line for each load
of the baseline; seconds that each build of a route takes."""

SIGNALS = ("SIGSEGV", "SIGABRT", "SIGKILL")
MARKUP = "<script>alert(1)</script>"
LATENCIES = ("nan", "inf", "-inf", "0", "-1", "float32")
TEXTS = ("1.0", "True", "None", "nan", "漢字", "it's", "a;b")
LATENCY_MS = 2.0


class CaseRunner:
    """Answers at once and claims the latency that its route asks for."""

    def __init__(self, engine: Engine) -> None:
        self.values = engine.request.route.values
        self.result: dict[str, np.ndarray] = {}
        if LOADS in os.environ and not self.values and not engine.request.reference:
            with open(os.environ[LOADS], "a", encoding="utf-8") as file:  # noqa: PTH123
                file.write(f"{os.getpid()}\n")

    def __enter__(self) -> CaseRunner:
        return self

    def __exit__(self, *exc: object) -> None:
        self.result = {}

    def infer(self, inputs: Tensors) -> Tensors:
        y = np.asarray(inputs["x"], np.float32) * np.float32(2)
        how = self.values.get("output", "right")
        if how == "nan":
            y[0] = np.nan
        if how == "off":
            y[0] += np.float32(100)
        self.result = {"y": y}
        return dict(self.result)

    def time_block(self, iterations: int) -> Sequence[float]:
        latency = self.values.get("latency", "right")
        level = float(self.values.get("level", "0"))
        time.sleep(0.0005)
        if latency == "float32":
            return [np.float32(LATENCY_MS)] * iterations  # type: ignore[list-item]
        milliseconds = LATENCY_MS + level if latency == "right" else float(latency)
        return (milliseconds,) * iterations

    def outputs(self) -> Tensors:
        return dict(self.result)


def die(how: str) -> None:
    if how in SIGNALS:
        os.kill(os.getpid(), getattr(signal, how))
        time.sleep(10)
    if how == "memory":
        np.ones(1 << 60, np.int8)
    if how == MARKUP:
        msg = f"{MARKUP} | `{MARKUP}`"
        raise BuildError(msg)


class CaseBackend:
    """Every route of its knobs is one kind of trouble."""

    name = "case"
    api_version = 1

    def platform(self) -> Platform:
        return Platform("case device", "driver", "case 1.0", "case 1.0", {"cpu_quota": "2"})

    def knobs(self, model: ModelSpec | None = None) -> KnobDatabase:
        levels = tuple(os.environ.get(LEVELS, "0 1 2").split())
        knobs = (
            Knob("death", ("none", *SIGNALS, "memory", MARKUP), "none"),
            Knob("latency", ("right", *LATENCIES), "right"),
            Knob("output", ("right", "nan", "off"), "right"),
            Knob("text", ("1", *TEXTS), "1"),
            Knob("level", levels, levels[0]),
            Knob("switch", ("off", "on"), "off"),
        )
        return KnobDatabase(knobs, "case 1.0")

    def build(self, request: BuildRequest, workdir: Path) -> Engine:
        values = dict(request.route.values)
        if values:
            time.sleep(float(os.environ.get(SLOW, "0")))
        die(values.get("death", "none"))
        path = workdir / "case.json"
        path.write_text(json.dumps(values))
        values.pop("text", None)
        fingerprint = hashlib.sha256(json.dumps(values).encode()).hexdigest()
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        return Engine(path, digest, fingerprint, request, 0.01)

    def load(self, engine: Engine) -> CaseRunner:
        return CaseRunner(engine)
