"""Plays one search: a real study in memory, fed exactly as the product feeds its own."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import optuna
from threadpoolctl import ThreadpoolController

from smart_tuner.bench.recommend import Recommender
from smart_tuner.bench.run import Run
from smart_tuner.bench.samplers import Stopwatch, make_contestant
from smart_tuner.bench.trying import WEIGHTS, PretendEvaluator
from smart_tuner.errors import SearchExhausted
from smart_tuner.measure.stop_rule import StopRule
from smart_tuner.route.build_route import BuildRoute
from smart_tuner.storages.ask import ask_trial, enqueue, route_of
from smart_tuner.storages.history import TrialRecord, best_feasible
from smart_tuner.storages.tell import tell_trial
from smart_tuner.study.progress.budget import Budget
from smart_tuner.study.proof.confirm import confirm
from smart_tuner.study.proof.finalists import REPORT_ROUNDS
from smart_tuner.study.proof.fresh import FreshBuilder
from smart_tuner.trial.trial import TrialOutcome

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

    from smart_tuner.bench.recorded import Compiler
    from smart_tuner.bench.run import Task
    from smart_tuner.samplers.route_sampler.beliefs import Beliefs
    from smart_tuner.trial.trial import Trial

MIN_GAIN = 1.01
"""The gain that a winner has to prove, as in ``tune``."""

NO_REGRESSION = 1.0
"""With one workload point there is none to pay for another."""

CONFIRM_SECONDS = 60.0
"""Room for every rebuild, which takes no time here, and none for blocks of ten seconds: a pretend
engine has no power limit that they could show."""

DIGITS = 7


def play(task: Task) -> Run:
    """Run one search to its end, the confirmation included.

    The study is an ordinary one in memory, asked and told by the functions that ``tune`` uses.
    Its first trial is the default route, for every sampler. Linear algebra gets one thread, so
    that runs side by side do not disturb each other's clocks.

    Raises:
        UserInputError: The sampler's or the generator's name is unknown.
        EnvironmentNotFit: The sampler's package is missing.
    """
    return play_with(task, task.workload.compiler(), task.sampler)[0]


def play_with(
    task: Task, compiler: Compiler, sampler: str, beliefs: Beliefs | None = None
) -> tuple[Run, tuple[TrialRecord, ...]]:
    """The same on a compiler at hand, from beliefs if there are some.

    Args:
        task: What the run is called.
        compiler: What is searched.
        sampler: Name of the sampler.
        beliefs: What it holds already.

    Returns:
        The run and its trials.
    """
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with ThreadpoolController().limit(limits=1):
        evaluator = PretendEvaluator(task.workload, compiler)
        search = _Search(task, evaluator, (sampler, beliefs))
        search.run()
        return search.result(), tuple(search.records)


@dataclass(slots=True)
class _Search:
    """A search and what is kept of it after each trial."""

    task: Task
    evaluator: PretendEvaluator
    begins: tuple[str, Beliefs | None]
    records: list[TrialRecord] = field(default_factory=list)
    shipped: list[float] = field(default_factory=list)
    observed: list[float] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)
    ask_seconds: list[float] = field(default_factory=list)

    def run(self) -> None:
        """Ask and tell until the trials are used up or nothing more is proposed."""
        choices = {knob.name: knob.choices for knob in self.evaluator.compiler.knobs}
        seed = self.task.workload.seed
        name, beliefs = self.begins
        sampler = Stopwatch(make_contestant(name, choices, seed, beliefs))
        study = optuna.create_study(sampler=sampler)
        enqueue(study, {}, "baseline", choices)
        recommender = Recommender(self.evaluator, self.evaluator.baseline_ms)
        best: TrialRecord | None = None
        for _ in range(self.task.trials):
            try:
                asked = ask_trial(study, choices)
            except SearchExhausted:
                break
            tried = self.evaluator.attempt(route_of(asked.params, choices))
            told = tell_trial(study, asked, tried, self.evaluator.baseline_ms, WEIGHTS)
            record = _record(told, tried)
            self.records.append(record)
            best = best_feasible([record] if best is None else [best, record])
            self.shipped.append(self._true(recommender.after(record)))
            self.observed.append(self._true(best.route if best else BuildRoute()))
            default_build = self.evaluator.compiler.build_seconds
            self.costs.append(round(self.evaluator.seconds / default_build, 3))
            self.ask_seconds.append(round(sampler.seconds, 6))

    def result(self) -> Run:
        """Confirm a winner and put everything together."""
        winner = self._confirmed(MIN_GAIN)
        compiler = self.evaluator.compiler
        return Run(
            task=self.task,
            digest=compiler.digest()[:16],
            optimum=round(compiler.optimum().log_latency, DIGITS),
            shipped=tuple(self.shipped),
            observed=tuple(self.observed),
            costs=tuple(self.costs),
            outcomes=dict(Counter(record.outcome.value for record in self.records)),
            repeated=len(self.records) - len({record.route for record in self.records}),
            ask_seconds=tuple(self.ask_seconds),
            confirmed=self._true(winner or BuildRoute()),
            is_winner=winner is not None,
            is_winner_at_one=self._confirmed(1.0) is not None,
        )

    def _true(self, route: BuildRoute) -> float:
        return round(self.evaluator.log_latency(route), DIGITS)

    def _confirmed(self, min_gain: float) -> BuildRoute | None:
        """The route that a study would ship, by its own rules, or ``None`` for the default."""
        with tempfile.TemporaryDirectory(prefix="smart-tuner-bench-") as place:
            builder = FreshBuilder(
                evaluator=self.evaluator,
                folder=Path(place),
                weights=WEIGHTS,
                budget=Budget(CONFIRM_SECONDS),
                rule=StopRule.fixed(REPORT_ROUNDS),
                listener=_ignore,
            )
            baseline_ms = self.evaluator.baseline_ms
            found = confirm(tuple(self.records), builder, baseline_ms, min_gain)
        return found.route if found and found.ships(min_gain, NO_REGRESSION) else None


def _record(told: FrozenTrial, tried: Trial) -> TrialRecord:
    """What ``finished_trials`` would read back, without reading 200 parameters again."""
    engine = tried.engine
    is_known = bool(tried.comparisons) or tried.unchanged
    return TrialRecord(
        number=told.number,
        route=tried.route,
        outcome=TrialOutcome(told.user_attrs["outcome"]),
        value_ms=told.value if is_known else None,
        violation=told.constraints.get("accuracy"),
        fingerprint=engine.fingerprint if engine else "",
        unchanged=tried.unchanged,
        half_width=told.user_attrs["half_width"],
    )


def _ignore(event: object) -> None:
    del event
