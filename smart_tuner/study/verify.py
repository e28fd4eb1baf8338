"""Whether a winner still wins, here and today."""

from __future__ import annotations

import math
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from smart_tuner.measure.stop_rule import StopRule
from smart_tuner.model.store import read_workload
from smart_tuner.study.budget import Budget
from smart_tuner.study.finalists import REPORT_ROUNDS
from smart_tuner.study.folder import StudyFolder
from smart_tuner.study.fresh import PAIRS, FreshBuilder
from smart_tuner.study.plan import make_plan
from smart_tuner.study.settings import make_settings
from smart_tuner.study.statistics import Gain, gain_over_builds
from smart_tuner.study.winner import read_manifest, shipped_gain, shipped_route
from smart_tuner.trial.evaluate import Evaluator
from smart_tuner.validate.constraint import constraint_from_json

if TYPE_CHECKING:
    from smart_tuner.study.events import Listener


@dataclass(frozen=True, slots=True)
class Verification:
    """A winner, rebuilt and measured again.

    Attributes:
        route: Canonical text of the route.
        gain: Gain now, over fresh builds; ``None`` if the route failed every time.
        failures: Rounds in which the route failed or broke epsilon.
        before: Gain when the study ended.
        agrees: The difference of the two log gains lies within its own 95 % interval.
    """

    route: str
    gain: Gain | None
    failures: int
    before: Gain
    agrees: bool

    @property
    def holds(self) -> bool:
        """Whether there is a gain, beyond doubt, and no failure."""
        return self.gain is not None and self.failures == 0 and self.gain.low > 1


def verify(study: Path, listener: Listener, rounds: int = REPORT_ROUNDS) -> Verification:
    """Rebuild the winner and the default of a study, here, and compare them again.

    Args:
        study: The study folder; nothing in it is changed.
        listener: Hears each round.
        rounds: Fresh builds a side, at least two for an interval.

    Raises:
        UserInputError: There is no winner, or its files, the model or the knobs changed.
        EnvironmentNotFit: This machine lacks something.
    """
    folder = StudyFolder(study.expanduser().absolute())
    document = folder.read_settings()
    manifest = read_manifest(folder.winner)
    settings = {**document["settings"], "study": folder.root, "seed": document["seed"]}
    plan = make_plan(make_settings(settings))
    route, before = shipped_route(manifest, plan), shipped_gain(manifest)
    workload = read_workload(plan.model, folder.references)
    constraint = constraint_from_json(document.get("accuracy", {}))
    with tempfile.TemporaryDirectory(prefix="smart-tuner-") as name:
        options = plan.options_with(constraint)
        with Evaluator(workload, options, Path(name)) as evaluator:
            builder = FreshBuilder(
                evaluator=evaluator,
                folder=Path(name) / "verify",
                weights={point.name: point.weight for point in workload.points},
                budget=Budget(math.inf),
                rule=StopRule.fixed(PAIRS[1]),
                listener=listener,
            )
            measured = [builder.measure(route, "verify") for _ in range(rounds)]
    ratios = [fresh.log_ratio for fresh in measured if fresh]
    gain = gain_over_builds(ratios) if ratios else None
    return Verification(
        route=str(route),
        gain=gain,
        failures=len(measured) - len(ratios),
        before=before,
        agrees=gain is not None and agree(gain, before),
    )


def agree(one: Gain, other: Gain) -> bool:
    """Whether the difference of two log gains lies within its own 95 % interval.

    The half widths of independent estimates add up in squares.
    """
    difference = math.log(one.value) - math.log(other.value)
    return abs(difference) <= math.hypot(_half_width(one), _half_width(other))


def _half_width(gain: Gain) -> float:
    if gain.low <= 0 or math.isinf(gain.high):
        return math.inf
    return (math.log(gain.high) - math.log(gain.low)) / 2
