from dataclasses import dataclass, field, replace
from pathlib import Path

import optuna
import pytest

from smart_tuner.engine.build import BuildRequest, Engine
from smart_tuner.errors import RunError
from smart_tuner.measure.latency import Comparison, LatencySummary
from smart_tuner.measure.stop_rule import StopRule
from smart_tuner.route.build_route import BuildRoute
from smart_tuner.study.progress.budget import BUILDS_A_ROUND, FULL_ROUNDS, Budget
from smart_tuner.study.search.timing_cache import TIMING_CACHE, CacheQuestion, Probe, sharing_note
from smart_tuner.trial.trial import Trial, TrialOutcome

ROUTE = BuildRoute((("a", "on"),))
SUMMARY = LatencySummary(8, *(1.0,) * 8)
CACHE = Path("/cache")


def tried(ratio: float = -0.1, fingerprint: str = "one") -> Trial:
    request = BuildRequest(Path("/m"), ROUTE, timing_cache=CACHE)
    engine = Engine(Path("/e"), "s", fingerprint, request, 1.0, timing_cache=CACHE)
    comparison = Comparison("p", (ratio,) * 4, ratio, 0.001, SUMMARY, SUMMARY, 0.1)
    return Trial(ROUTE, TrialOutcome.FEASIBLE, engine, comparisons=(comparison,))


@dataclass
class Pretender:
    """An evaluator whose build from an empty cache gives what it is told."""

    cold: Trial
    keys: tuple[frozenset[str] | None, ...] | None = (None, None)
    timing_cache: Path | None = CACHE
    asked: list[bool] = field(default_factory=list)

    def evaluate(
        self,
        route: BuildRoute,
        folder: Path,
        rule: StopRule,
        *,
        cold: bool,
        deadline_seconds: float,
    ) -> Trial:
        self.asked.append(cold)
        return self.cold

    def timing_cache_keys(self, caches: list[Path]) -> tuple[frozenset[str] | None, ...]:
        if self.keys is None:
            msg = "not a timing cache"
            raise RunError(msg)
        return self.keys

    def stop_sharing_timing_cache(self) -> None:
        self.timing_cache = None


def question(evaluator: Pretender) -> CacheQuestion:
    study = optuna.create_study()
    return CacheQuestion(study, evaluator, {"p": 1.0})  # type: ignore[arg-type]


def answer(evaluator: Pretender, seeded: Trial | None = None) -> Probe | None:
    asking = question(evaluator)
    assert asking.is_open(seeded or tried())
    probe = asking.ask(seeded or tried(), Path("/f"), StopRule(), 10.0)
    assert evaluator.asked == [True]
    if probe is not None:
        assert not asking.is_open(tried()), "it is asked once"
        assert sharing_note(asking.study) == (probe.sentence,)
        assert (evaluator.timing_cache is None) == bool(probe.difference)
        assert asking.study.user_attrs[TIMING_CACHE]["shared"] == (not probe.difference)
    return probe


FAILED = Trial(ROUTE, TrialOutcome.BUILD_FAILED, message="no tactic")


@pytest.mark.parametrize(
    ("evaluator", "holds"),
    [
        (Pretender(tried()), ""),
        (Pretender(tried(-0.115, "two")), ""),
        (Pretender(tried(), keys=None), ""),
        (Pretender(tried(), keys=(frozenset("abc"), frozenset("ab"))), ""),
        (Pretender(tried(), keys=(frozenset("a"), frozenset("abc"))), "2 timings of its own"),
        (Pretender(tried(-0.2, "two")), "% slower with it"),
        (Pretender(tried(-0.14, "two")), ""),
        (Pretender(tried(0.1, "two")), ""),
        (Pretender(replace(tried(0.0, "two"), unchanged=True)), ""),
        (Pretender(FAILED), "build_failed, no tactic"),
    ],
)
def test_what_is_made_of_a_build_from_an_empty_cache(evaluator: Pretender, holds: str) -> None:
    probe = answer(evaluator)
    assert probe is not None
    assert holds in probe.difference
    assert bool(probe.difference) == bool(holds)


def test_a_build_that_did_not_end_in_time_leaves_the_question_open() -> None:
    asking = question(Pretender(Trial(ROUTE, TrialOutcome.TIMED_OUT)))
    assert asking.ask(tried(), Path("/f"), StopRule(), 10.0) is None
    assert asking.is_open(tried())
    assert sharing_note(asking.study) == ()


def test_only_a_route_that_changes_the_engine_can_answer() -> None:
    asking = question(Pretender(tried()))
    assert asking.is_open(tried())
    assert not asking.is_open(replace(tried(), unchanged=True))
    assert not asking.is_open(FAILED)
    engine = tried().engine
    assert engine is not None
    assert not asking.is_open(replace(tried(), engine=replace(engine, timing_cache=None)))
    refused = replace(engine, request=replace(engine.request, timing_cache=None))
    assert not asking.is_open(replace(tried(), engine=refused)), "the compiler took no timings"


def test_fresh_builds_are_priced_as_what_they_are() -> None:
    cheap = Budget(10_000.0)
    dear = Budget(10_000.0, cold_build_seconds=100.0)
    kept = cheap.search_left([10.0] * 5) - dear.search_left([10.0] * 5)
    needed = FULL_ROUNDS * BUILDS_A_ROUND * 100.0
    assert kept == pytest.approx(needed - cheap.finalist_seconds, abs=1.0)
