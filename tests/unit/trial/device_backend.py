"""A backend like a GPU compiler's: timing caches, sizes, memory, and a choice that it makes."""

from __future__ import annotations

import hashlib
import json
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from smart_tuner.engine.build import BuildRequest, Engine
from smart_tuner.engine.platform import Platform
from smart_tuner.errors import BuildError
from smart_tuner.knobs.database import KnobDatabase
from smart_tuner.knobs.knob import Knob

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from smart_tuner.engine.backend import Tensors
    from smart_tuner.model.spec import ModelSpec

KNOBS = ("tactic", "poison", "crash", "big", "alike")
UUID = "GPU-of-tests"


def builds(model: Path) -> list[dict[str, Any]]:
    """What was built so far: route, base, and the timings that the build began with."""
    lines = (model.parent / "builds.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


class DeviceRunner:
    """y = 2 x, in as many milliseconds as the engine file says."""

    def __init__(self, engine: Engine) -> None:
        data = json.loads(engine.path.read_text())
        self.latency_ms: float = data["latency_ms"]
        self.launch: str = engine.request.base.get("launch", "auto")
        self.memory_bytes: int | None = data["memory"]
        loaded = engine.request.base.get("objective") == "throughput"
        self.p99_ms = 3 * self.latency_ms if loaded else None
        self.log = engine.request.model.parent / "timed.log"
        self.result: dict[str, np.ndarray] = {}

    @property
    def decided(self) -> Mapping[str, str]:
        return {"launch": "graph"} if self.launch == "auto" else {}

    def __enter__(self) -> DeviceRunner:
        return self

    def __exit__(self, *exc: object) -> None:
        self.result = {}

    def infer(self, inputs: Tensors) -> Tensors:
        self.result = {"y": np.asarray(inputs["x"], np.float32) * np.float32(2)}
        return dict(self.result)

    def time_block(self, iterations: int) -> tuple[float, ...]:
        with self.log.open("a") as log:
            log.write(f"{time.monotonic_ns()}\n")
        return (self.latency_ms,) * iterations

    def outputs(self) -> Tensors:
        return dict(self.result)


class DeviceBackend:
    """``poison`` makes a fast engine, unless the cache of another build makes it slow.

    ``alike`` makes other bytes of the same layers.
    """

    name = "device"
    api_version = 1
    reference_backend = "device_backend:Referee"

    def platform(self) -> Platform:
        return Platform("device", "driver", "device 1.0", "device 1.0", {"uuid": UUID})

    def knobs(self, model: ModelSpec | None = None) -> KnobDatabase:
        return KnobDatabase(tuple(Knob(name, ("off", "on"), "off") for name in KNOBS), "device 1")

    def build(self, request: BuildRequest, workdir: Path) -> Engine:
        values = request.route.values
        seeded = request.timing_cache.read_text() if request.timing_cache else ""
        record = {"route": dict(values), "base": dict(request.base), "cache": seeded}
        with (request.model.parent / "builds.jsonl").open("a") as log:
            log.write(json.dumps({**record, "reference": request.reference}) + "\n")
        if values.get("crash") == "on":
            msg = "the device compiler does not build this"
            raise BuildError(msg)
        fast = {"tactic": 0.1, "poison": -0.5 if seeded else 0.5}
        latency = 2.0 - sum(fast.get(name, 0.0) for name in values)
        size = int(request.base.get("size", "1000")) * (10 if "big" in values else 1)
        memory = request.base.get("memory", "2000")
        path = workdir / "engine.plan"
        held = None if memory == "unknown" else int(memory)
        document = {"latency_ms": latency, "memory": held, "size": size, "route": [*values]}
        path.write_text(json.dumps(document))
        cache = workdir / "timing.cache"
        cache.write_text(f"{seeded}timing of {sorted(values)}\n")
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        return Engine(
            path,
            digest,
            digest,
            request,
            build_seconds=0.5 if seeded else 5.0,
            size_bytes=None if size == 0 else size,
            structure=str(sorted({*values} - {"alike"})),
            timing_cache=cache,
        )

    def load(self, engine: Engine) -> DeviceRunner:
        return DeviceRunner(engine)

    def timing_cache_keys(self, path: Path) -> list[str]:
        return path.read_text().splitlines()


class Referee(DeviceBackend):
    """Makes references; knows no base, and refuses models named so."""

    name = "referee"

    def build(self, request: BuildRequest, workdir: Path) -> Engine:
        assert request.reference
        assert not request.base
        if b"unknown layer" in request.model.read_bytes():
            msg = "the referee knows no such layer"
            raise BuildError(msg)
        return super().build(request, workdir)
