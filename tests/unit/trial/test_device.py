"""What a compiler for a device needs of the evaluator, beside what every backend does."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from smart_tuner.errors import UserInputError
from smart_tuner.measure.stop_rule import LEAST_PAIRS, StopRule
from smart_tuner.model.workload import Workload
from smart_tuner.route.build_route import BuildRoute
from smart_tuner.trial.evaluate import Evaluator, EvaluatorOptions
from smart_tuner.trial.trial import TrialOutcome
from smart_tuner.validate.limits import BUILD_TIME, ENGINE_SIZE, MEMORY, Limits
from tests.unit.trial.conftest import HERE, write_references
from tests.unit.trial.device_backend import builds

Make = Callable[..., Evaluator]
RULE = StopRule.fixed(4, block_seconds=0.001)
BACKEND = "device_backend:DeviceBackend"


@pytest.fixture
def make(workload: Workload, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    monkeypatch.syspath_prepend(HERE)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    made: list[Evaluator] = []

    def evaluator(*, given: bool = True, **options: Any) -> Evaluator:
        if given:
            write_references(workload)
        made.append(Evaluator(workload, EvaluatorOptions(BACKEND, **options), tmp_path))
        return made[-1]

    yield evaluator
    for item in made:
        item.close()


def on(*names: str) -> BuildRoute:
    return BuildRoute(tuple((name, "on") for name in names))


def test_trials_start_from_the_baselines_timings_and_add_nothing_fresh_builds_from_none(
    make: Make, workload: Workload, tmp_path: Path
) -> None:
    evaluator = make()
    evaluator.evaluate(on("tactic"), tmp_path / "0", RULE)
    evaluator.evaluate(on("big"), tmp_path / "1", RULE)
    cache = evaluator.timing_cache
    assert cache is not None
    assert cache.stat().st_mode & 0o222 == 0
    assert cache.read_text() == "timing of []\n"
    evaluator.evaluate(on("tactic"), tmp_path / "2", RULE, fresh_baseline=True)
    evaluator.evaluate(on("big"), tmp_path / "3", RULE)
    evaluator.stop_sharing_timing_cache()
    evaluator.evaluate(on("big"), tmp_path / "4", RULE)
    begun = [(list(build["route"]), build["cache"]) for build in builds(workload.model.path)]
    shared = "timing of []\n"
    assert begun == [
        *(([], ""), (["tactic"], shared), (["big"], shared)),
        *(([], ""), (["tactic"], ""), (["big"], shared), (["big"], "")),
    ]


def test_an_engine_of_the_baselines_layers_gets_a_glance_then_trust_but_full_care_in_the_end(
    make: Make, tmp_path: Path
) -> None:
    evaluator = make()
    careful = StopRule.fixed(12, block_seconds=0.001)
    other = evaluator.evaluate(on("tactic"), tmp_path / "0", careful)
    alike = evaluator.evaluate(on("alike"), tmp_path / "1", careful)
    assert (other.is_alike, alike.is_alike) == (False, True)
    assert not alike.unchanged
    assert [len(t.comparisons[0].log_ratios) for t in (other, alike)] == [12, LEAST_PAIRS]
    evaluator.trust_structure()
    trusted = evaluator.evaluate(on("alike"), tmp_path / "2", careful)
    assert trusted.unchanged
    assert trusted.comparisons == ()
    assert trusted.losses, "its outputs are judged all the same"
    fresh = evaluator.evaluate(on("alike"), tmp_path / "3", careful, fresh_baseline=True)
    assert fresh.is_alike
    assert not fresh.unchanged
    assert len(fresh.comparisons[0].log_ratios) == 12


def test_tails_under_load_are_kept_where_a_rate_is_measured(make: Make, tmp_path: Path) -> None:
    evaluator = make(base={"objective": "throughput"})
    found = evaluator.evaluate(on("tactic"), tmp_path / "0", RULE).comparisons[0]
    assert found.device["p99_ms"] == pytest.approx(3 * 1.9)
    assert found.device["baseline_p99_ms"] == pytest.approx(3 * 2.0)


def test_what_the_baseline_decides_holds_for_every_later_build(
    make: Make, workload: Workload, tmp_path: Path
) -> None:
    evaluator = make(base={"size": "7"})
    assert evaluator.decided == {"launch": "graph"}
    trial = evaluator.evaluate(on("tactic"), tmp_path / "0", RULE, fresh_baseline=True)
    assert trial.engine is not None
    assert trial.engine.request.base == {"size": "7", "launch": "graph"}
    launches = [build["base"].get("launch") for build in builds(workload.model.path)]
    assert launches == [None, "graph", "graph"]
    unchanged = evaluator.evaluate(BuildRoute(), tmp_path / "1", RULE)
    assert unchanged.unchanged


def test_limits_are_judged_beside_accuracy_and_named_with_their_figures(
    make: Make, tmp_path: Path
) -> None:
    limits = Limits(memory_bytes=4000, engine_bytes=5000, build_seconds=60.0)
    evaluator = make(limits=limits)
    report = evaluator.check_baseline(RULE)
    assert report.trial.outcome is TrialOutcome.FEASIBLE
    assert [use.name for use in report.trial.limits] == [MEMORY, ENGINE_SIZE, BUILD_TIME]
    small = evaluator.evaluate(on("tactic"), tmp_path / "0", RULE)
    assert small.outcome is TrialOutcome.FEASIBLE
    assert {use.name: use.figure for use in small.limits} == {
        MEMORY: 2000,
        ENGINE_SIZE: 1000,
        BUILD_TIME: 0.5,
    }
    big = evaluator.evaluate(on("big"), tmp_path / "1", RULE)
    assert big.outcome is TrialOutcome.INFEASIBLE
    assert big.message == "engine size 9.766 KiB is over --max-engine-size 4.883 KiB"
    assert [use.name for use in big.limits] == [use.name for use in small.limits]
    assert big.comparisons, "samplers learn from its latency too"


@pytest.mark.parametrize(
    ("base", "limits", "flag"),
    [
        ({"memory": "unknown"}, Limits(memory_bytes=1), "--max-memory"),
        ({"size": "0"}, Limits(engine_bytes=1), "--max-engine-size"),
    ],
)
def test_a_limit_on_what_a_backend_cannot_say_is_refused(
    make: Make, base: dict[str, str], limits: Limits, flag: str
) -> None:
    with pytest.raises(UserInputError, match=f"cannot say .*leave out {flag}"):
        make(base=base, limits=limits).check_baseline(RULE)


def test_another_backend_makes_the_references_unless_it_cannot(
    make: Make, workload: Workload
) -> None:
    made = make(given=False, base={"launch": "enqueue"}).make_references()
    assert (made.backend, made.note) == ("device_backend:Referee", "")
    for point in workload.points:
        for pair in point.pairs:
            pair.outputs.unlink()
    workload.model.path.write_text("with an unknown layer")
    made = make(given=False, base={"launch": "enqueue"}).make_references()
    assert made.backend == BACKEND
    assert "the referee knows no such layer" in made.note
    assert builds(workload.model.path)[-1]["base"] == {"launch": "enqueue"}
    assert make(given=False).make_references().backend == "", "there is nothing left to make"


MEASURE = """
import sys, time
from pathlib import Path
from smart_tuner.measure.stop_rule import LEAST_PAIRS, StopRule
from smart_tuner.trial.evaluate import Evaluator, EvaluatorOptions
from tests.unit.trial.conftest import make_workload
from tests.unit.trial.test_device import BACKEND, HERE
if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    place = Path(sys.argv[1])
    with Evaluator(make_workload(place), EvaluatorOptions(BACKEND), place) as evaluator:
        evaluator.make_references()
        evaluator.repeatability()
        (place / "ready").touch()
        while len(list(place.parent.glob("*/ready"))) < 2:
            time.sleep(0.01)
        evaluator.check_baseline(StopRule.fixed(60, block_seconds=0.001))
"""


def test_two_studies_on_one_gpu_measure_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    places = (tmp_path / "one", tmp_path / "two")
    for place in places:
        place.mkdir()
    started = [
        subprocess.Popen([sys.executable, "-c", MEASURE, str(place)], cwd=HERE.parents[2])
        for place in places
    ]
    assert [process.wait(60) for process in started] == [0, 0]
    timed = [
        (int(line.split()[0]), place.name)
        for place in places
        for line in (place / "model" / "timed.log").read_text().splitlines()
    ]
    order = [name for _, name in sorted(timed)]
    assert set(order) == {"one", "two"}
    assert sum(before != after for before, after in pairwise(order)) == 1
