"""What happens around the builds: processes that die or hang, and studies that cannot begin."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from smart_tuner.engine.build import BuildRequest
from smart_tuner.errors import (
    ChildDied,
    ChildTimedOut,
    EnvironmentNotFit,
    ModelError,
    UserInputError,
)
from smart_tuner.route.build_route import BuildRoute
from smart_tuner.simulate.effects import Failure, ValueEffect
from smart_tuner.study.tune import tune
from smart_tuner.trial.arm import RemoteArm
from smart_tuner.trial.options import EvaluatorOptions
from tests.fake_tensorrt.scenario import Scenario
from tests.fake_tensorrt.test_fake_study import BACKEND
from tests.unit.cli.calling import call
from tests.unit.study.pretend import Recorder

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fake_tensorrt.conftest import Install


def build_in_child(model: Path, folder: Path, route: BuildRoute, seconds: float) -> None:
    """Build in a child process with a time limit, as a trial does."""
    options = EvaluatorOptions(BACKEND, build_timeout_seconds=seconds)
    with RemoteArm(options, folder / "child.log") as arm:
        arm.platform()
        arm.build(BuildRequest(model, route), folder)


def only(name: str, value: str, failure: Failure) -> tuple[Scenario, BuildRoute]:
    """A scenario in which one value breaks, and the route that sets it."""
    return Scenario((ValueEffect(name, value, failure=failure),)), BuildRoute(((name, value),))


def test_a_value_that_hangs_the_compiler_is_ended_at_its_deadline(
    install: Install, model: Path, tmp_path: Path
) -> None:
    scenario, route = only("kgen:tiling", "1", Failure.HANG)
    install(scenario)
    with pytest.raises(ChildTimedOut, match=r"passed its deadline of 2 s"):
        build_in_child(model, tmp_path, route, 2.0)


def test_a_value_that_crashes_the_compiler_is_contained_with_its_last_words(
    install: Install, model: Path, tmp_path: Path
) -> None:
    scenario, route = only("kgen:tiling", "1", Failure.ABORT)
    install(scenario)
    with pytest.raises(ChildDied, match=r"SIGABRT; .*a native assertion failed"):
        build_in_child(model, tmp_path, route, 100.0)


def test_an_sdk_that_dies_when_asked_for_knobs_is_one_sentence(install: Install) -> None:
    backend = install(Scenario(asks_to_die=True))
    with pytest.raises(EnvironmentNotFit, match=r"ended its process .*exit code -6") as raised:
        backend.knobs()
    assert "\n" not in str(raised.value)


def test_a_list_of_routes_that_is_no_list_is_one_sentence(install: Install) -> None:
    backend = install(Scenario(routes="{}"))
    message = r"all_build_routes of this installation is not what smart-tuner reads"
    with pytest.raises(EnvironmentNotFit, match=message):
        backend.knobs()


def start(model: Path, **settings: Any) -> Recorder:
    listener = Recorder()
    chosen = {"backend": BACKEND, "metric": "linf", "budget": 300, "seed": 1, **settings}
    tune(model, study=model.with_name("study"), listener=listener, **chosen)
    return listener


def test_an_unsupported_operator_is_one_verdict_and_not_a_search(
    install: Install, odd_model: Path
) -> None:
    install(Scenario())
    with pytest.raises(ModelError, match=r"cannot take this model: operator Odd \(node 'odd_1'\)"):
        start(odd_model)
    assert not list(odd_model.parent.rglob("trials/*/route.txt"))


def test_a_base_that_names_a_knob_of_another_version_is_wrong_use(
    install: Install, model: Path
) -> None:
    install(Scenario().without_knob("copy_ppg", "11.4.0.106"))
    base = model.with_name("base.toml")
    base.write_text('copy_ppg = "off"\n', encoding="utf-8")
    message = r"Unknown knob or base setting: copy_ppg .*Did you mean copy_ppg_fwd"
    with pytest.raises(UserInputError, match=message):
        start(model, base=base)


def test_without_routes_the_builders_settings_are_knobs_and_that_is_said(
    install: Install, caplog: pytest.LogCaptureFixture
) -> None:
    install(Scenario(version="11.2.1.2", routes=""))
    ended = call("knobs", "--backend", BACKEND, "--json")
    knobs = json.loads(ended.out)["knobs"]
    assert {knob["source"] for knob in knobs} == {"builder"}
    assert len(knobs) == 14
    (said,) = caplog.messages
    assert said.startswith("tensorrt 11.2.1.2: this installation lists no build routes")


def test_one_database_holds_both_sources_and_names_both_versions(install: Install) -> None:
    install(Scenario())
    listed = call("knobs", "--backend", BACKEND)
    assert listed.out.splitlines()[-1].startswith(
        "223 of 223 knobs, tuner 2.19.45, tensorrt 11.1.0.106"
    )
    assert "# build route, kgen: 40 knobs" in listed.out
    assert "# builder: 7 knobs" in listed.out
    found = call("knobs", "--backend", BACKEND, "topk_algo")
    assert found.out.splitlines()[1] == "kgen:topk_algo = 0 | 16 | 32 | 64 | ..."
