"""What a fake SDK pretends to be: a version, a list of knobs, and what they do.

An environment variable names the file, so that every child process pretends the same.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from smart_tuner.knobs.integer_values import with_integer_values
from smart_tuner.knobs.knob import Knob
from smart_tuner.knobs.read import read_database
from smart_tuner.simulate.compiler import SimulatedCompiler
from smart_tuner.simulate.effects import Failure, Noise, ValueEffect

VARIABLE = "SMART_TUNER_TEST_FAKE_TENSORRT"
QUIET = Noise(build=0.0, measurement=0.001, spike_rate=0.0)


def real_routes() -> str:
    """The list of 209 knobs of tuner 2.19.45, as the SDK returns it."""
    folder = files("smart_tuner.knobs") / "data"
    return (folder / "all_build_routes-2.19.45.json").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Scenario:
    """One pretended installation.

    Attributes:
        effects: What values do, of route knobs and of builder knobs; all others do nothing.
        version: Of the SDK.
        routes: Text of ``all_build_routes``; empty where the feature is off, None where the
            version has no such attribute.
        rejected: Words ``-knob=value`` that make the setter refuse the whole route, in silence.
        overridden: Words ``-knob=value`` that read back with the knob's default.
        confirms: Whether a build names its route in the log.
        has_precision_flags: Whether types may be changed by flags, as before version 11.
        timings_leak: Whether timings are kept under keys that do not tell routes apart, so that a
            route that starts from another's timings gets a worse engine.
        asks_to_die: Whether making a configuration aborts the process.
    """

    effects: tuple[ValueEffect, ...] = ()
    version: str = "11.1.0.106"
    routes: str | None = real_routes()
    rejected: tuple[str, ...] = ()
    overridden: tuple[str, ...] = ()
    confirms: bool = True
    has_precision_flags: bool = False
    timings_leak: bool = False
    asks_to_die: bool = False

    @property
    def compiler(self) -> SimulatedCompiler:
        """What the fake compiler does."""
        listed = with_integer_values(read_database(self.routes)) if self.routes else ()
        knobs = [
            Knob(knob.name, knob.choices[1:], knob.default) for knob in listed if knob.choices[1:]
        ]
        names = {knob.name for knob in knobs}
        # A builder knob has as many values here as do something.
        for name in dict.fromkeys(effect.knob for effect in self.effects):
            if name not in names:
                values = tuple(effect.value for effect in self.effects if effect.knob == name)
                knobs.append(Knob(name, values, "(default)"))
        return SimulatedCompiler(
            tuple(knobs) or (Knob("none", ("on",), "off"),),
            effects=self.effects,
            noise=QUIET,
            base_latency_ms=2.0,
            build_seconds=0.0,
        )

    def write(self, path: Path) -> Path:
        """Write the file that the environment variable names."""
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")
        return path

    def without_knob(self, name: str, version: str) -> Scenario:
        """The next version, in which a route knob is gone."""
        data = json.loads(self.routes or "")
        options = data["tuner_options"]
        data["tuner_options"] = [item for item in options if item["option"] != f"-{name}"]
        assert len(data["tuner_options"]) == len(options) - 1
        data["tuner_version"] = "2.20.0"
        return replace(self, routes=json.dumps(data), version=version)


def current_scenario() -> Scenario:
    """The scenario that the environment names."""
    data: dict[str, Any] = json.loads(Path(os.environ[VARIABLE]).read_text(encoding="utf-8"))
    for name in ("rejected", "overridden"):
        data[name] = tuple(data[name])
    data["effects"] = tuple(
        ValueEffect(**{**item, "failure": item["failure"] and Failure(item["failure"])})
        for item in data["effects"]
    )
    return Scenario(**data)
