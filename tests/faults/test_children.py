"""Children at their worst, in one study: each is an outcome, and none is left behind.

What the process runner itself does with such children is tested in tests/unit/engine and
tests/unit/trial.
"""

import shutil
from pathlib import Path

import pytest

from smart_tuner.knobs.knob import Knob
from smart_tuner.simulate.compiler import SimulatedCompiler
from smart_tuner.simulate.effects import Failure, Noise, ValueEffect
from smart_tuner.simulate.model_file import write_simulated_model
from smart_tuner.storages.history import finished_trials
from smart_tuner.trial.trial import TrialOutcome
from tests.faults.victim import Victim

EXPECTED = {
    "deaf": (TrialOutcome.TIMED_OUT, "deadline"),
    "forks": (TrialOutcome.FEASIBLE, ""),
    "flood": (TrialOutcome.FEASIBLE, ""),
    "garbage": (TrialOutcome.BUILD_FAILED, "nonsense"),
    "memory": (TrialOutcome.BUILD_FAILED, "out of memory"),
    "nan": (TrialOutcome.INFEASIBLE, ""),
    "sleeps": (TrialOutcome.TIMED_OUT, "deadline"),
}
"""Outcome, and what the message says, by the knob that is on."""


@pytest.mark.timeout(900)
def test_each_misdeed_is_an_outcome_and_the_study_goes_on(victim: Victim) -> None:
    names = (*EXPECTED, "fast")
    effects = (
        *(ValueEffect(name, "on", log_latency=-0.01) for name in names if name != "nan"),
        ValueEffect("nan", "on", failure=Failure.NAN),
    )
    knobs = tuple(Knob(name, ("off", "on"), "off") for name in names)
    noise = Noise(build=0.001, measurement=0.001, spike_rate=0.0)
    write_simulated_model(victim.place, SimulatedCompiler(knobs, effects=effects, noise=noise))
    shutil.copy(Path(__file__).with_name("wild_backend.py"), victim.place)
    first = (f"--first=-{name}=on" for name in EXPECTED)
    session = victim.start(
        *("--seed", "5", "--budget", "10m", "--min-gain", "9", "--trial-timeout", "10s"),
        *("--backend", "wild_backend:WildBackend", "--trials", str(len(EXPECTED)), *first),
    )
    assert session.finish() == 0, session.text
    victim.wait_until_alone()
    study = victim.optuna_study()
    assert study is not None
    seen = {str(record.route): record for record in finished_trials(study)}
    for name, (outcome, message) in EXPECTED.items():
        record = seen[f"-{name}=on"]
        assert record.outcome is outcome, record
        assert message in record.message
        log = victim.study / record.folder / "child.log"
        assert log.stat().st_size < 17 << 20, "logs are bounded"
    assert victim.leftovers() == []
