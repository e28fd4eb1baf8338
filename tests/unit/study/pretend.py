"""Evaluators, compilers and studies that tests of the study pretend with."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from smart_tuner.engine.build import BuildRequest, Engine
from smart_tuner.knobs.knob import Knob
from smart_tuner.measure.latency import Comparison, LatencySummary
from smart_tuner.measure.stop_rule import StopRule
from smart_tuner.model.files import write_json
from smart_tuner.route.build_route import BuildRoute
from smart_tuner.simulate.compiler import SimulatedCompiler
from smart_tuner.simulate.effects import Failure, Noise, ValueEffect
from smart_tuner.study.progress.events import Event
from smart_tuner.study.proof.result import TuneResult
from smart_tuner.study.tune import tune
from smart_tuner.trial.record import trial_to_json
from smart_tuner.trial.trial import Trial, TrialOutcome
from smart_tuner.validate.losses import OutputLoss

HALF_WIDTH = 0.001
QUIET = Noise(build=0.001, measurement=0.001, spike_rate=0.0)
SUMMARY = LatencySummary(8, *(1.0,) * 8)

Answer = float | TrialOutcome | Mapping[str, float]
"""ln(candidate / baseline), the same by point, or how the route fails."""


def content(folder: Path) -> dict[str, str]:
    """Digest by path of every file of a folder."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def route(*names: str) -> BuildRoute:
    """The route that turns these knobs on."""
    return BuildRoute(tuple(sorted((name, "on") for name in names)))


def make_trial(tried: BuildRoute, answer: Answer, folder: Path, fingerprint: str = "") -> Trial:
    """A trial as an evaluator would return it."""
    if isinstance(answer, TrialOutcome):
        return Trial(tried, answer, message="it broke", seconds={"total": 1.0})
    ratios = answer if isinstance(answer, Mapping) else {"default": answer}
    unchanged = not len(tried)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "engine.json"
    path.write_text(str(tried))
    digest = hashlib.sha256(str(tried).encode()).hexdigest()
    engine = Engine(
        path, digest, fingerprint or digest, BuildRequest(Path("/model.onnx"), tried), 1.0
    )
    return Trial(
        route=tried,
        outcome=TrialOutcome.FEASIBLE,
        engine=engine,
        losses=(OutputLoss("default", "pair", "y", "linf", 0.0, 0.001),),
        comparisons=()
        if unchanged
        else tuple(
            Comparison(point, (ratio,) * 4, ratio, HALF_WIDTH, SUMMARY, SUMMARY, 0.1)
            for point, ratio in ratios.items()
        ),
        unchanged=unchanged,
        seconds={"build": 1.0, "total": 1.0},
    )


@dataclass
class PretendEvaluator:
    """Answers like an evaluator, without processes.

    Attributes:
        answer: What a route gives; called anew for each build.
        tried: Every route that was asked for, in order.
        deadlines: The deadline that each one got.
        fingerprint: Of every engine, if they are all the same.
    """

    answer: Callable[[BuildRoute], Answer]
    tried: list[BuildRoute] = field(default_factory=list)
    deadlines: list[float | None] = field(default_factory=list)
    fingerprint: str = ""

    def evaluate(
        self,
        route: BuildRoute,
        folder: Path,
        rule: StopRule,
        *,
        fresh_baseline: bool = False,
        deadline_seconds: float | None = None,
    ) -> Trial:
        self.tried.append(route)
        self.deadlines.append(deadline_seconds)
        folder.mkdir(parents=True, exist_ok=True)
        trial = make_trial(route, self.answer(route), folder / "engine", self.fingerprint)
        write_json(folder / "result.json", trial_to_json(trial))
        return trial


@dataclass
class Recorder:
    """A listener that keeps what it hears."""

    events: list[Event] = field(default_factory=list)

    def __call__(self, event: Event) -> None:
        self.events.append(event)

    def of(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


def planted_compiler(*, noise: Noise = QUIET, base_loss: float = 0.0) -> SimulatedCompiler:
    """Six knobs of two values each; only ``fast`` is worth having.

    ``lossy`` and ``nan`` are faster and wrong, ``crash`` dies, ``idle`` does nothing.
    """
    names = ("fast", "lossy", "nan", "crash", "idle", "slow")
    effects = (
        ValueEffect("fast", "on", log_latency=-0.2),
        ValueEffect("lossy", "on", log_latency=-0.3, loss=1.0),
        ValueEffect("nan", "on", log_latency=-0.4, failure=Failure.NAN),
        ValueEffect("crash", "on", log_latency=-0.5, failure=Failure.ABORT),
        ValueEffect("idle", "on", noop=True),
        ValueEffect("slow", "on", log_latency=0.1),
    )
    knobs = tuple(Knob(name, ("off", "on"), "off") for name in names)
    return SimulatedCompiler(knobs, effects=effects, noise=noise, base_loss=base_loss)


@dataclass(frozen=True)
class Planted:
    """A finished study with a winner.

    Attributes:
        model: Its model.
        result: Its verdict; ``result.study`` is the folder.
        settings: What it was called with, the model and the folder left out.
        phases: The phases that were told, in order.
    """

    model: Path
    result: TuneResult
    settings: Mapping[str, Any]
    phases: tuple[str, ...]

    def again(self, listener: Recorder | None = None, **settings: Any) -> TuneResult:
        """The same call, some settings changed."""
        chosen = {"model": self.model, "study": self.result.study, **self.settings, **settings}
        return tune(listener=listener or Recorder(), **chosen)
