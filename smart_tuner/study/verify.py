"""Whether a winner still wins, here and today: the very file that ships, or its route rebuilt.

These are two questions. The file is what production runs, and on a GPU no rebuild is like it; the
route is what a new model, driver or compiler version will be built with.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from smart_tuner.engine.build import BuildRequest, Engine
from smart_tuner.errors import UserInputError
from smart_tuner.model.scratch import scratch_folder
from smart_tuner.model.store import read_workload
from smart_tuner.study.files.folder import StudyFolder
from smart_tuner.study.progress.budget import Budget
from smart_tuner.study.progress.events import Note
from smart_tuner.study.proof.finalists import REPORT_ROUNDS
from smart_tuner.study.proof.fresh import PAIRS, FreshBuilder
from smart_tuner.study.proof.manifest import MANIFEST
from smart_tuner.study.proof.result import read_gain
from smart_tuner.study.proof.statistics import gain_over_builds
from smart_tuner.study.proof.winner import (
    platform_changes,
    read_manifest,
    shipped_gain,
    shipped_model,
    shipped_route,
)
from smart_tuner.study.session import DECIDED
from smart_tuner.study.setup.plan import make_plan, query_platform
from smart_tuner.study.setup.settings import make_settings
from smart_tuner.trial.evaluate import Evaluator
from smart_tuner.trial.trial import Trial, TrialOutcome
from smart_tuner.validate.constraint import constraint_from_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from smart_tuner.measure.stop_rule import StopRule
    from smart_tuner.model.workload import Workload
    from smart_tuner.route.build_route import BuildRoute
    from smart_tuner.study.progress.events import Listener
    from smart_tuner.study.proof.fresh import Fresh
    from smart_tuner.study.proof.gain import Gain


@dataclass(frozen=True, slots=True)
class Verification:
    """A winner, measured again.

    Attributes:
        route: Canonical text of the route.
        gain: Gain now over fresh builds of the default; ``None`` if every round failed.
        failures: Rounds in which the engine did not build or run, or broke epsilon.
        before: Gain when the study ended: of the shipped file over the fastest default build, or
            of the route over fresh builds.
        agrees: What was found does not contradict it: the difference of the two log gains lies
            within its own 95 % interval, or the file gains more than over the fastest default.
        rebuilt: Whether the route was built anew in every round; else the shipped file was loaded.
    """

    route: str
    gain: Gain | None
    failures: int
    before: Gain
    agrees: bool
    rebuilt: bool

    @property
    def holds(self) -> bool:
        """Whether there is a gain, beyond doubt, and no failure."""
        return self.gain is not None and self.failures == 0 and self.gain.low > 1


@dataclass(frozen=True, slots=True)
class _ShippedFile:
    """Measures one file whatever route is asked for, in the place of an evaluator.

    Attributes:
        evaluator: Measures.
        trial: Names the file.
    """

    evaluator: Evaluator
    trial: Trial

    def evaluate(
        self, route: BuildRoute, folder: Path, rule: StopRule, *, fresh_baseline: bool = False
    ) -> Trial:
        """Load the file and measure it against the baseline."""
        del route  # one file has one route
        return self.evaluator.measure_again(
            self.trial, folder, rule, fresh_baseline=fresh_baseline
        )


def verify(
    study: Path, listener: Listener, rounds: int = REPORT_ROUNDS, *, rebuild: bool = False
) -> Verification:
    """Compare the winner of a study with fresh builds of the default again, here.

    Args:
        study: The study folder; nothing in it is changed.
        listener: Hears each round.
        rounds: Fresh builds a side, at least two for an interval.
        rebuild: Build the winner's route anew in every round as well, instead of loading the file
            that ships.

    Raises:
        UserInputError: There is no winner, or its files, the model or the knobs changed.
        EnvironmentNotFit: This machine lacks something.
    """
    folder = StudyFolder(study.expanduser().absolute())
    document = folder.read_settings()
    manifest = read_manifest(folder.winner)
    settings = {**document["settings"], "study": folder.root, "seed": document["seed"]}
    plan = make_plan(make_settings(settings))
    route = shipped_route(manifest, plan)
    before = shipped_gain(manifest) if rebuild else _gain_of_file(manifest)
    workload = read_workload(plan.model, folder.references)
    constraint = constraint_from_json(document.get("accuracy", {}))
    plan = plan.with_lowered(workload, folder.precision)
    options = plan.options_with(constraint, document.get(DECIDED, {}))
    trial = Trial(route, TrialOutcome.FEASIBLE, _engine(folder, manifest, workload, route))
    changes = platform_changes(manifest, query_platform(plan.settings.backend))
    if changes.forbid_the_file and not rebuild:
        msg = f"{' '.join(changes.sentences)} Ask with --rebuild whether its route gains here."
        raise UserInputError(msg)
    for sentence in changes.sentences:
        listener(Note(sentence))
    with scratch_folder() as place, Evaluator(workload, options, place) as evaluator:
        builder = FreshBuilder(
            evaluator=evaluator if rebuild else _ShippedFile(evaluator, trial),
            folder=place / "verify",
            weights={point.name: point.weight for point in workload.points},
            budget=Budget(math.inf),
            rule=plan.goal.fixed(PAIRS[1]),
            listener=listener,
        )
        phase = "rebuild" if rebuild else "shipped file"
        measured = [builder.measure(route, phase) for _ in range(rounds)]
    return _verification(measured, route, before, rebuild=rebuild)


def _verification(
    measured: Sequence[Fresh | None], route: BuildRoute, before: Gain, *, rebuild: bool
) -> Verification:
    ratios = [fresh.log_ratio for fresh in measured if fresh]
    gain = gain_over_builds(ratios) if ratios else None
    is_more = gain is not None and not rebuild and gain.value >= before.value
    return Verification(
        route=str(route),
        gain=gain,
        failures=len(measured) - len(ratios),
        before=before,
        agrees=gain is not None and (is_more or agree(gain, before)),
        rebuilt=rebuild,
    )


def _gain_of_file(manifest: Mapping[str, Any]) -> Gain:
    """The engine gain of a manifest, its route gain if that is missing.

    Raises:
        UserInputError: It is damaged.
    """
    route_gain = shipped_gain(manifest)
    try:
        return read_gain(manifest["gain"]["engine_gain"]) or route_gain
    except (KeyError, TypeError, ValueError) as error:
        msg = f"The winner's {MANIFEST} is damaged ({error!r}): ship anew with `tune`."
        raise UserInputError(msg) from None


def _engine(
    folder: StudyFolder, manifest: Mapping[str, Any], workload: Workload, route: BuildRoute
) -> Engine:
    """The shipped file as the engine that it is; its digest was checked with the manifest's."""
    file = str(manifest["engine"]["file"])
    return Engine(
        path=folder.winner / file,
        sha256=str(manifest["files"][file]),
        fingerprint=str(manifest["engine"]["fingerprint"]),
        request=BuildRequest(
            model=shipped_model(folder, manifest) or workload.model.path,
            route=route,
            base=dict(manifest["base"]),
            shapes=tuple(point.shapes for point in workload.points),
        ),
        build_seconds=0.0,
        size_bytes=manifest["engine"].get("size_bytes"),
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
