import math
from pathlib import Path

import numpy as np
import pytest

from smart_tuner.errors import UserInputError
from smart_tuner.simulate.compiler import SimulatedCompiler
from smart_tuner.simulate.effects import Failure, ValueEffect
from smart_tuner.simulate.model_file import write_simulated_model
from smart_tuner.study.progress.events import RouteMeasured
from smart_tuner.study.proof.gain import Gain
from smart_tuner.study.proof.statistics import gain_over_builds
from smart_tuner.study.verify import Verification, agree, verify
from tests.unit.study.pretend import QUIET, Planted, Recorder, content, planted_compiler


def test_two_measurements_of_one_truth_agree_in_95_of_100_cases() -> None:
    rng = np.random.default_rng(11)
    agreed = 0
    for _ in range(2000):
        one, other = (gain_over_builds((0.013 * rng.standard_normal(5)).tolist()) for _ in "ab")
        agreed += agree(one, other)
    # Squared half widths of two small samples are a little generous.
    assert 0.95 <= agreed / 2000 <= 0.985


def test_what_differs_clearly_does_not_agree() -> None:
    assert not agree(Gain(1.2, 1.19, 1.21, 5), Gain(1.1, 1.09, 1.11, 5))
    assert agree(Gain(1.2, 1.1, 1.3, 5), Gain(1.1, 1.0, 1.2, 5))


def test_without_an_interval_nothing_contradicts() -> None:
    assert agree(Gain(2.0, 0.0, math.inf, 1), Gain(1.0, 0.99, 1.01, 5))


@pytest.mark.parametrize(
    ("gain", "failures", "holds"),
    [
        (Gain(1.2, 1.1, 1.3, 5), 0, True),
        (Gain(1.2, 1.1, 1.3, 4), 1, False),
        (Gain(1.2, 0.99, 1.4, 5), 0, False),
        (None, 5, False),
    ],
)
def test_a_winner_holds_if_it_gains_and_never_fails(
    gain: Gain | None, failures: int, holds: bool
) -> None:
    before = Gain(1.2, 1.1, 1.3, 5)
    assert Verification("-a=1", gain, failures, before, agrees=True, rebuilt=True).holds is holds


@pytest.mark.parametrize("rebuild", [False, True])
def test_a_winner_still_wins_and_nothing_in_the_study_changes(
    planted: Planted, rebuild: bool
) -> None:
    before = content(planted.result.study)
    listener = Recorder()
    found = verify(planted.result.study, listener, rounds=2, rebuild=rebuild)
    assert found.holds
    # Whether the two agree is a test at the 95 % level: one run in twenty says no.
    assert found.gain
    assert found.gain.value == pytest.approx(found.before.value, rel=0.01)
    assert found.rebuilt is rebuild
    assert found.route == "-fast=on"
    gains = (planted.result.engine_gain, planted.result.route_gain)
    assert found.before == gains[rebuild]
    assert found.gain.value == pytest.approx(math.exp(0.2), rel=0.01)
    assert {event.phase for event in listener.of(RouteMeasured)} == {
        "rebuild" if rebuild else "shipped file"
    }
    assert len(listener.of(RouteMeasured)) == 2
    assert content(planted.result.study) == before


def rewrite(planted: Planted, effect: ValueEffect) -> None:
    """Another compiler behind the same model: the world has changed."""
    compiler = SimulatedCompiler(planted_compiler().knobs, effects=(effect,), noise=QUIET)
    write_simulated_model(planted.model.parent, compiler)


def test_a_gain_that_is_gone_is_said(planted: Planted) -> None:
    rewrite(planted, ValueEffect("fast", "on", log_latency=0.05))
    found = verify(planted.result.study, Recorder(), rounds=2, rebuild=True)
    assert not found.holds
    assert not found.agrees
    assert found.failures == 0


def test_a_route_that_fails_now_is_said(planted: Planted) -> None:
    rewrite(planted, ValueEffect("fast", "on", failure=Failure.BUILD_ERROR))
    found = verify(planted.result.study, Recorder(), rounds=2, rebuild=True)
    assert found.gain is None
    assert found.failures == 2
    assert not found.holds
    assert not found.agrees


def test_the_file_that_ships_needs_no_compiler(planted: Planted) -> None:
    """A pretended engine runs as it was built, whatever the compiler does today."""
    rewrite(planted, ValueEffect("fast", "on", failure=Failure.BUILD_ERROR))
    assert verify(planted.result.study, Recorder(), rounds=2).holds


def test_a_route_that_breaks_epsilon_now_is_said(planted: Planted) -> None:
    rewrite(planted, ValueEffect("fast", "on", log_latency=-0.2, loss=1.0))
    found = verify(planted.result.study, Recorder(), rounds=2, rebuild=True)
    assert (found.gain, found.failures) == (None, 2)


def test_it_needs_a_study_with_a_winner(planted: Planted, tmp_path: Path) -> None:
    with pytest.raises(UserInputError, match="No study in"):
        verify(tmp_path / "nowhere", Recorder())
    (planted.result.study / "winner" / "engine.json").write_text("changed")
    with pytest.raises(UserInputError, match="was changed since it was measured"):
        verify(planted.result.study, Recorder())


def test_it_works_from_any_folder(
    planted: Planted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(planted.model.parent)
    planted.again(model=Path("model.onnx"), study=Path("study"))
    monkeypatch.chdir(elsewhere)
    assert verify(planted.result.study, Recorder(), rounds=2).gain
