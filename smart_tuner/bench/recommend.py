"""The recommender that all samplers share: which route a study would ship by now."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from smart_tuner.measure.stop_rule import StopRule
from smart_tuner.route.build_route import BuildRoute
from smart_tuner.study.proof.finalists import shortlist
from smart_tuner.trial.trial import TrialOutcome

if TYPE_CHECKING:
    from smart_tuner.bench.trying import PretendEvaluator
    from smart_tuner.storages.history import TrialRecord
    from smart_tuner.trial.trial import Trial

_NOWHERE = Path("nowhere")
_RULE = StopRule.fixed(4)


@dataclass(slots=True)
class Recommender:
    """The study's own shortlist, each route built once more, the fastest of these wins.

    A route is rebuilt once in a run, whenever it enters the shortlist, so that what is recommended
    after n trials depends on these n trials alone. Without a fresh figure below the baseline's the
    default is recommended.

    Attributes:
        evaluator: Rebuilds routes; that costs the search nothing.
        baseline_ms: The study's frozen baseline latency.
        records: Trials that ran within epsilon so far.
    """

    evaluator: PretendEvaluator
    baseline_ms: float
    records: list[TrialRecord] = field(default_factory=list)
    _fresh: dict[BuildRoute, float] = field(default_factory=dict)
    _route: BuildRoute = field(default_factory=BuildRoute)

    def after(self, record: TrialRecord) -> BuildRoute:
        """Take in one more trial and return the route to ship."""
        if record.outcome is not TrialOutcome.FEASIBLE or record.unchanged:
            return self._route
        self.records.append(record)
        routes = shortlist(self.records, self.baseline_ms, 1.0)
        self._route = min(routes, key=self._log_ratio, default=BuildRoute())
        if self._log_ratio(self._route) >= 0:
            self._route = BuildRoute()
        return self._route

    def _log_ratio(self, route: BuildRoute) -> float:
        if not route:
            return 0.0
        if route not in self._fresh:
            self._fresh[route] = _measured(self.evaluator.evaluate(route, _NOWHERE, _RULE))
        return self._fresh[route]


def _measured(trial: Trial) -> float:
    return trial.comparisons[0].log_ratio if trial.comparisons else 0.0
