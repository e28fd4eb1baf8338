"""Studies to look at, written through the product's own storage in no time.

A simulated compiler answers in this process; journal, trial records, confirmation and verdict are
the product's. ``python -m tests.studies_for_viewing FOLDER [TRIALS]`` writes them all.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import math
import shutil
import sys
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import numpy as np
import optuna

from smart_tuner.engine.build import BuildRequest, Engine
from smart_tuner.engine.platform import Platform
from smart_tuner.knobs.knob import Knob
from smart_tuner.measure.latency import Comparison, LatencySummary
from smart_tuner.measure.stop_rule import StopRule
from smart_tuner.model.files import write_json
from smart_tuner.simulate.compiler import SimulatedCompiler
from smart_tuner.simulate.effects import Failure, Noise, PairEffect, ValueEffect
from smart_tuner.simulate.generators import make_compiler
from smart_tuner.simulate.model_file import write_simulated_model
from smart_tuner.storages.ask import ask_trial, enqueue, reopen_trial, route_of
from smart_tuner.storages.history import finished_trials
from smart_tuner.storages.journal import open_study
from smart_tuner.storages.tell import tell_trial
from smart_tuner.study.files.folder import StudyFolder
from smart_tuner.study.files.names import BASELINE_MS, SPENT, STUDY_NAME
from smart_tuner.study.files.runs import keep_runs
from smart_tuner.study.progress.budget import Budget
from smart_tuner.study.progress.events import silent
from smart_tuner.study.proof.confirm import Confirmed, confirm
from smart_tuner.study.proof.fresh import FreshBuilder
from smart_tuner.study.proof.result import Verdict, write_result
from smart_tuner.study.proof.verdict import Evidence, decide
from smart_tuner.study.proof.winner import ship
from smart_tuner.study.proof.wording import within_words
from smart_tuner.study.search.noise import BASELINE_NOISE
from smart_tuner.study.setup.plan import requested_constraint
from smart_tuner.study.setup.settings import make_settings
from smart_tuner.trial.record import trial_to_json
from smart_tuner.trial.trial import Trial, TrialOutcome
from smart_tuner.validate.constraint import constraint_to_json
from smart_tuner.validate.losses import OutputLoss

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from smart_tuner.route.build_route import BuildRoute
    from smart_tuner.study.proof.result import TuneResult

EPSILON = 1e-3
WEIGHTS = {"default": 1.0}
PAIRS = 8
NOISE = 0.003
SEED = 1
PLATFORM = Platform(
    "Simulated GPU", "driver 0", "replay 1", "simulated", {"cuda": "none", "seed": "1"}
)


class Kind(str, Enum):
    """What a study may be like when somebody looks at it."""

    FINISHED = "finished"
    RUNNING = "running"
    INTERRUPTED = "interrupted"
    ALL_FAILED = "all-failed"
    NO_GAIN = "no-gain"
    ONE_TRIAL = "one-trial"
    BIG = "big"


@dataclass
class SimulatedEvaluator:
    """Tries routes in this process and lets the time pass that a compiler would have taken.

    Attributes:
        compiler: Answers.
        model: The model's file.
        budget: What the time is taken from.
        generator: Source of all noise.
        tried: How many routes were tried.
    """

    compiler: SimulatedCompiler
    model: Path
    budget: Budget
    generator: np.random.Generator = field(default_factory=lambda: np.random.default_rng(1))
    tried: int = 0

    def evaluate(
        self, route: BuildRoute, folder: Path, rule: StopRule, *, fresh_baseline: bool = False
    ) -> Trial:
        """Pretend to build and measure; leaves what a real trial leaves."""
        self.tried += 1
        folder.mkdir(parents=True, exist_ok=True)
        seen = self.compiler.observe(route.values, self.generator)
        ran = seen.loss is not None
        seconds = {"build": seen.build_seconds}
        if ran:
            seconds |= {"validate": 0.4, "measure": 0.0 if seen.latency_ms is None else 1.5}
        seconds["total"] = sum(seconds.values()) + 0.2
        self.budget.spent_before += seconds["total"]
        reason = "" if seen.outcome == "feasible" else "the simulated compiler fails on this route"
        if seen.outcome == "infeasible":
            reason = f"output 'y': linf loss {seen.loss:.3g} is over epsilon {EPSILON:.3g}"
        trial = Trial(
            route=route,
            outcome=TrialOutcome(seen.outcome),
            engine=self._engine(route, folder, seen.build_seconds) if ran else None,
            losses=() if seen.loss is None else (_loss(seen.loss),),
            comparisons=self._comparisons(seen.latency_ms, unchanged=seen.unchanged),
            unchanged=seen.unchanged,
            message=reason,
            seconds=seconds,
        )
        text = json.dumps(trial_to_json(trial))
        (folder / "result.json").write_text(text, encoding="utf-8")
        return trial

    def _engine(self, route: BuildRoute, folder: Path, seconds: float) -> Engine:
        effective = repr(self.compiler.settings_in_effect(route.values)).encode()
        digest = hashlib.sha256(effective).hexdigest()
        path = folder / "engine.json"
        path.write_bytes(effective)
        return Engine(path, digest, digest, BuildRequest(self.model, route), seconds)

    def _comparisons(self, latency_ms: float | None, *, unchanged: bool) -> tuple[Comparison, ...]:
        if latency_ms is None or unchanged:
            return ()
        centre = math.log(latency_ms / self.compiler.base_latency_ms)
        ratios = centre + NOISE * self.generator.standard_normal(PAIRS)
        heat = 45 + 20 * (1 - math.exp(-self.tried / 20)) + float(self.generator.normal(0, 0.7))
        device = {
            "sm_clock_mhz": round(1980 - 6 * max(0.0, heat - 58), 0),
            "temperature_c": round(heat, 1),
            "power_w": round(310 + float(self.generator.normal(0, 8)), 1),
        }
        return (
            Comparison(
                point="default",
                log_ratios=tuple(map(float, ratios)),
                log_ratio=float(np.median(ratios)),
                half_width=2.4 * NOISE / math.sqrt(PAIRS),
                baseline=_summary(self.compiler.base_latency_ms),
                candidate=_summary(latency_ms),
                seconds=1.5,
                device=device,
            ),
        )


def _loss(loss: float) -> OutputLoss:
    return OutputLoss("default", "pair", "y", "linf", loss, EPSILON)


def _summary(milliseconds: float) -> LatencySummary:
    factors = (1.002, 0.99, 0.995, 1.0, 1.005, 1.01, 1.02, 1.05)
    return LatencySummary(400, *(milliseconds * factor for factor in factors))


def small_compiler(*, helps: bool = True) -> SimulatedCompiler:
    """Twelve knobs: some pay, one costs accuracy, some break, most do nothing."""
    effects = [
        ValueEffect("graph:fusion", "extended", log_latency=-0.12 if helps else 0.01),
        ValueEffect("memory:pattern", "off", log_latency=-0.05 if helps else 0.0),
        ValueEffect("precision:tf32", "on", log_latency=-0.2 if helps else 0.0, loss=5e-3),
        ValueEffect("precision:block", "half", log_latency=-0.06, loss=6e-4),
        ValueEffect("tiling", "4", log_latency=0.09),
        ValueEffect("tiling", "8", log_latency=0.16),
        ValueEffect("kernel:legacy", "on", failure=Failure.BUILD_ERROR),
        ValueEffect("layout", "nhwc", failure=Failure.NAN),
        ValueEffect("lookahead", "deep", failure=Failure.HANG),
        ValueEffect("idle:verbose", "on", noop=True),
    ]
    pairs = (PairEffect(("streams", "2"), ("workspace", "small"), failure=Failure.RUN_ERROR),)
    known = {"tiling": ("2", "4", "8"), "streams": ("1", "2", "4"), "lookahead": ("short", "deep")}
    two = {
        "graph:fusion": ("basic", "extended"),
        "memory:pattern": ("on", "off"),
        "precision:tf32": ("off", "on"),
        "precision:block": ("full", "half"),
        "kernel:legacy": ("off", "on"),
        "layout": ("nchw", "nhwc"),
        "workspace": ("large", "small"),
        "idle:verbose": ("off", "on"),
        "prefetch": ("off", "on"),
    }
    knobs = tuple(Knob(name, values, values[0]) for name, values in {**known, **two}.items())
    if not helps:
        effects = [effect for effect in effects if not effect.knob.startswith("precision")]
    noise = Noise(build=0.004, measurement=0.003, spike_rate=0.0)
    return SimulatedCompiler(
        knobs, 2.5, EPSILON, tuple(effects), pairs, noise=noise, build_seconds=6.0
    )


def failing_compiler() -> SimulatedCompiler:
    """Three knobs, every value of which breaks in another way."""
    failures = (Failure.BUILD_ERROR, Failure.HANG, Failure.RUN_ERROR)
    knobs = tuple(Knob(f"broken:{place}", ("off", "on"), "off") for place in range(3))
    effects = tuple(
        ValueEffect(knob.name, "on", failure=failure)
        for knob, failure in zip(knobs, failures, strict=True)
    )
    return SimulatedCompiler(knobs, 2.5, EPSILON, effects, build_seconds=6.0)


COMPILERS: Mapping[Kind, Callable[[], SimulatedCompiler]] = {
    Kind.ALL_FAILED: failing_compiler,
    Kind.NO_GAIN: lambda: small_compiler(helps=False),
    Kind.BIG: lambda: make_compiler("sparse", seed=3),
}
TRIALS = {
    Kind.FINISHED: 60,
    Kind.RUNNING: 25,
    Kind.INTERRUPTED: 25,
    Kind.ALL_FAILED: 8,
    Kind.NO_GAIN: 40,
    Kind.ONE_TRIAL: 1,
    Kind.BIG: 500,
}


@dataclass(frozen=True)
class Written:
    """A study in the making."""

    folder: StudyFolder
    study: optuna.Study
    evaluator: SimulatedEvaluator
    budget: Budget
    choices: Mapping[str, tuple[str, ...]]
    baseline_ms: float
    proposing: np.random.Generator = field(default_factory=lambda: np.random.default_rng(SEED))


def make_study(kind: Kind, place: Path, trials: int | None = None) -> StudyFolder:
    """Write a study of one kind.

    Args:
        kind: What it is like. A running one is only taken for running inside ``running``.
        place: Folder, made if it is missing, that gets the model and, named after the kind, the study.
        trials: Trials in all, if not those of ``TRIALS``.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    count = trials or TRIALS[kind]
    compiler = COMPILERS.get(kind, small_compiler)()
    written = _begin(kind, place, compiler, count)
    for _ in range(count):
        _try(written)
    if kind in (Kind.RUNNING, Kind.INTERRUPTED):
        _propose(written)
        ask_trial(written.study, written.choices)
    written.study.set_user_attr(SPENT, written.budget.spent)
    if kind not in (Kind.RUNNING, Kind.INTERRUPTED):
        _finish(written)
    return written.folder


@contextlib.contextmanager
def running(folder: StudyFolder) -> Iterator[None]:
    """Hold a study as the process that searches in it does."""
    with folder.locked():
        yield


def _begin(kind: Kind, place: Path, compiler: SimulatedCompiler, trials: int) -> Written:
    place.mkdir(parents=True, exist_ok=True)
    model = write_simulated_model(place, compiler, name=kind.value, seed=1)
    folder = StudyFolder((place / f"{kind.value}.study").absolute())
    folder.create()
    choices = {
        knob.name: (knob.default, *(value for value in knob.values if value != knob.default))
        for knob in compiler.knobs
    }
    asked = {"model": model, "backend": "replay", "metric": "linf", "epsilon": str(EPSILON)}
    settings = make_settings({**asked, "budget": 20.0 * trials + 120, "trials": trials})
    digest = hashlib.sha256(model.read_bytes()).hexdigest()
    folder.write_settings(
        {
            "created": "2026-01-01T00:00:00+00:00",
            "smart_tuner": "0.1.0",
            "seed": 1,
            "settings": settings.model_dump(mode="json", exclude={"study", "seed"}),
            "identity": {"model": digest},
            "accuracy": constraint_to_json(requested_constraint(settings)),
            "base": {},
            "space": {name: list(values) for name, values in choices.items()},
        }
    )
    write_json(folder.platform_file, dataclasses.asdict(PLATFORM))
    study = open_study(folder.journal, STUDY_NAME, None, create=True)
    study.set_user_attr(BASELINE_MS, compiler.base_latency_ms)
    study.set_user_attr(BASELINE_NOISE, [[0.0012, 0.0031]])
    budget = Budget(settings.budget, trials)
    evaluator = SimulatedEvaluator(compiler, model, budget)
    return Written(folder, study, evaluator, budget, choices, compiler.base_latency_ms)


def _propose(written: Written) -> None:
    """Queue a route near the best one so far: what is shown must not change with the sampler."""
    generator = written.proposing
    trials = written.study.get_trials(deepcopy=False)
    done = [t for t in trials if t.value is not None and max(t.constraints.values()) <= 0]
    values = dict(min(done, key=lambda trial: trial.value or 0.0).params) if done else {}
    count = 1 + int(generator.binomial(3, 0.4)) if trials else 0
    count = min(count, len(written.choices))
    for name in generator.choice(list(written.choices), size=count, replace=False).tolist():
        now = values.get(name, written.choices[name][0])
        others = [value for value in written.choices[name] if value != now]
        values[name] = str(generator.choice(others))
    reason = {0: "baseline", 1: "exploiting"}.get(count, "screening")
    enqueue(written.study, values, reason, written.choices)


def _try(written: Written) -> None:
    _propose(written)
    asked = ask_trial(written.study, written.choices)
    route = route_of(asked.params, written.choices)
    place = written.folder.trial(asked.number)
    tried = written.evaluator.evaluate(route, place, StopRule())
    if not len(route):
        tried = dataclasses.replace(tried, seconds={"total": 0.0})
    trial = reopen_trial(written.study, asked.number)
    where = f"trials/{asked.number}"
    tell_trial(written.study, trial, tried, written.baseline_ms, WEIGHTS, folder=where)


def _finish(written: Written) -> None:
    """Confirm and decide as the product does, and ship."""
    folder, records = written.folder, finished_trials(written.study)
    builder = FreshBuilder(
        evaluator=written.evaluator,
        folder=folder.finalists,
        weights=WEIGHTS,
        budget=written.budget,
        rule=StopRule.fixed(PAIRS),
        listener=silent,
    )
    confirmed = confirm(records, builder, written.baseline_ms, 1.01)
    result = decide(
        Evidence(
            study=folder.root,
            records=records,
            confirmed=confirmed,
            bare_gain=None,
            held_out_failure="",
            synthetic=True,
            min_gain=1.01,
            max_regression=0.05,
            spent_seconds=written.budget.spent,
            within=within_words(folder.read_settings()["accuracy"]),
            rebuilt=builder.best,
        )
    )
    if result.verdict is Verdict.WINNER and confirmed is not None:
        _ship(written, confirmed, result)
    written.study.set_user_attr(SPENT, written.budget.spent)
    keep_runs(folder)
    shutil.rmtree(folder.finalists, ignore_errors=True)
    write_result(folder.result_file, result)


def _ship(written: Written, confirmed: Confirmed, result: TuneResult) -> None:
    session: Any = mock.Mock(spec=())
    session.folder, session.platform = written.folder, PLATFORM
    session.decided, session.referee = {}, ""
    session.plan = mock.Mock(spec=())
    session.plan.base, session.plan.goal = {}, mock.Mock(words="median end-to-end latency")
    model = written.evaluator.model
    sha256 = hashlib.sha256(model.read_bytes()).hexdigest()
    session.plan.model = mock.Mock(path=model, sha256=sha256)
    ship(session, confirmed.shipped, result)


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    for each in Kind:
        big = int(sys.argv[2]) if each is Kind.BIG and len(sys.argv) > 2 else None
        sys.stdout.write(f"{make_study(each, target, big).root}\n")
