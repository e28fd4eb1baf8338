from collections.abc import Iterator
from pathlib import Path

import pytest

from smart_tuner.knobs.knob import Knob
from smart_tuner.simulate.compiler import SimulatedCompiler
from smart_tuner.simulate.effects import Failure, Noise, ValueEffect
from smart_tuner.simulate.model_file import write_simulated_model
from tests.faults.victim import Victim


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[Victim]:
    """A study on the command line, on a tiny pretended compiler with one good knob."""
    names = ("fast", "slow", "crash", "idle", "k4", "k5", "k6", "k7")
    effects = (
        ValueEffect("fast", "on", log_latency=-0.2),
        ValueEffect("slow", "on", log_latency=0.1),
        ValueEffect("crash", "on", failure=Failure.ABORT),
        ValueEffect("idle", "on", noop=True),
    )
    knobs = tuple(Knob(name, ("off", "on"), "off") for name in names)
    noise = Noise(build=0.001, measurement=0.001, spike_rate=0.0)
    place = tmp_path / "work"
    place.mkdir()
    write_simulated_model(place, SimulatedCompiler(knobs, effects=effects, noise=noise))
    victim = Victim(place, tmp_path / "tmp")
    yield victim
    victim.end()
    assert victim.processes() == []
