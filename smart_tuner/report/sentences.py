"""What each picture shows, in sentences: for who cannot see it, and for ``explain``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from smart_tuner.report.analysis.conditions import FIGURES
from smart_tuner.report.analysis.effects import Finding
from smart_tuner.report.analysis.outlook import expected_percent
from smart_tuner.report.analysis.tradeoff import winners_of
from smart_tuner.report.words import counted, duration, percent, shortened

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from smart_tuner.report.analysis.conditions import MachineState
    from smart_tuner.report.analysis.confirmation import Confirmation
    from smart_tuner.report.analysis.effects import Effects, ValueEffect
    from smart_tuner.report.analysis.failures import FailureMap, ValueFailures
    from smart_tuner.report.analysis.history import History
    from smart_tuner.report.analysis.outlook import Outlook
    from smart_tuner.report.analysis.phases import PhaseTimes
    from smart_tuner.report.analysis.prior import PriorReview
    from smart_tuner.report.analysis.tradeoff import SweepStep, Tradeoff

SURELY = 0.95
MESSAGE_ROOM = 160

NAMED = 5
"""Values that a sentence names; the rest is counted."""


def history_words(history: History) -> str:
    """How the search went."""
    points = history.points
    if not points:
        return "No trial has finished yet, so there is nothing to draw."
    counts: dict[str, int] = {}
    for point in points:
        counts[point.word] = counts.get(point.word, 0) + 1
    ordered = dict(sorted(counts.items(), key=lambda item: -item[1]))
    text = f"{_many(len(points), 'trial')}: {counted(ordered)}."
    steps = history.improvements
    if not steps:
        return f"{text} None was faster than the default."
    last = steps[-1]
    after = len(points) - 1 - [point.number for point in points].index(last.number)
    since = (
        f"the last {_many(after, 'trial')} brought nothing better"
        if after
        else "that was the last trial"
    )
    return (
        f"{text} The best gain rose {_times(len(steps))}, to {last.gain:.3f}x at trial "
        f"{last.number} (one measurement, so partly luck); {since}."
    )


def tradeoff_words(tradeoff: Tradeoff) -> str:
    """What speed costs in accuracy."""
    if not tradeoff.points:
        return "No trial has both a latency and an accuracy loss, so there is nothing to draw."
    over = [point for point in tradeoff.points if not point.feasible]
    text = f"{_many(len(tradeoff.points), 'trial')} with both a latency and a loss"
    if not over:
        return f"{text}: all are feasible, so no measured speed was given up for accuracy."
    best = max((p.gain for p in tradeoff.points if p.feasible), default=1.0)
    lost = max(over, key=lambda point: point.gain)
    beyond = (
        f"the fastest of them, trial {lost.number}, would have been {lost.gain:.3f}x against "
        f"{best:.3f}x within epsilon"
        if lost.gain > best
        else "none of them is faster than the best feasible one"
    )
    return f"{text}, {len(over)} infeasible; {beyond}."


def sweep_words(steps: Sequence[SweepStep]) -> str:
    """What another epsilon would have changed, among routes that were tried."""
    if not steps:
        return "No tried route has a finite accuracy loss, so no epsilon makes one eligible."
    here = [step for step in steps if step.ratio <= 1 + 1e-9]
    changes = winners_of(steps)
    text = (
        f"At this study's epsilon {_many(here[-1].eligible, 'tried route')} "
        f"{'is' if here[-1].eligible == 1 else 'are'} eligible, the fastest of them at "
        f"{here[-1].gain:.3f}x (trial {here[-1].number})."
        if here
        else "At this study's epsilon no tried route is eligible."
    )
    looser = [step for step in changes if step.ratio > 1 + 1e-9]
    if not looser:
        return f"{text} A larger epsilon would not have let a faster tried route in."
    most = looser[-1]
    return (
        f"{text} From {most.ratio:.3g} times this epsilon on, trial {most.number} would win with "
        f"{most.gain:.3f}x."
    )


def effects_words(effects: Effects, failures: FailureMap) -> tuple[str, ...]:
    """Which values pay, which cost, which do nothing, and what is not known.

    Args:
        effects: The effects.
        failures: Names the values that cost too much accuracy: they do not pay after all.
    """
    if not effects.measured:
        return ("No trial was measured, so no effect can be estimated.",)
    lines = []
    pays, costs = effects.of(Finding.PAYS), effects.of(Finding.COSTS)
    if pays:
        lines.append(f"Pays: {_listed(pays, failures.violators)}.")
    else:
        lines.append("No value is proven to make the engine faster.")
    if costs:
        lines.append(f"Costs: {_listed(costs[::-1])}.")
    idle = effects.of(Finding.NO_EFFECT)
    if idle:
        names = _names(idle)
        lines.append(f"No effect, to within 1 %: {names}.")
    unclear = effects.of(Finding.UNCLEAR)
    if unclear:
        lines.append(
            f"Not clear yet for {_many(len(unclear), 'value')}: the interval holds both no effect "
            "and one that would matter."
        )
    if effects.untried:
        lines.append(f"{_many(effects.untried, 'value')} of the space no trial has had.")
    if effects.floor:
        lines.append(
            f"Noise floor: +-{percent(effects.floor)} for one trial, from {effects.floor_source}."
        )
    return tuple(lines)


def failures_words(failures: FailureMap) -> tuple[str, ...]:
    """What breaks, by which value or pair."""
    if not failures.trials:
        return ("No trial has finished yet.",)
    if not failures.failed:
        return ("Every trial worked and stayed within epsilon: nothing is to blame.",)
    were = "was" if failures.failed == 1 else "were"
    trials = _many(failures.trials, "trial")
    lines = [f"{failures.failed} of {trials} failed or {were} infeasible."]
    lines += [_blamed(value) for value in failures.blamed]
    for pair in failures.pairs:
        first, second = ("=".join(setting) for setting in (pair.first, pair.second))
        lines.append(
            f"{first} together with {second} breaks routes, though each works without the other: "
            f"{_many(pair.failed, 'route')} with both failed, none worked."
        )
    if len(lines) == 1:
        lines.append("No value or pair stands out: too few failures to tell who is to blame.")
    if failures.messages:
        message, count = failures.messages[0]
        often = f", {_times(count)}" if count > 1 else ""
        lines.append(f"Failed routes said{often}: {shortened(message, MESSAGE_ROOM)}")
    return tuple(lines)


def _blamed(value: ValueFailures) -> str:
    risk = "surely" if value.risk > SURELY else "probably"
    setting, broken = f"{value.knob}={value.value}", value.failed - value.over
    if value.violates:
        ran = value.tried - broken
        return f"{setting} {risk} costs too much accuracy: {value.over} of {ran} that ran with it."
    return (
        f"{setting} {risk} breaks routes: {broken} of {value.tried} with it failed, mostly "
        f"{_most(value.counts)}."
    )


def confirmation_words(confirmation: Confirmation) -> str:
    """What fresh builds showed."""
    if not confirmation.builds:
        return (
            "No route was built afresh: none seemed to reach the smallest gain that ships, or the "
            "study has not come to it."
        )
    report = [build for build in confirmation.builds if build.phase == "report"]
    measured = [build.gain for build in report if build.gain is not None]
    text = f"{_many(len(confirmation.builds), 'fresh build')} were measured"
    if not measured:
        return f"{text}; none of them is behind a verdict."
    failed = len(report) - len(measured)
    also = f", {failed} failed" if failed else ""
    return (
        f"{text}; the {len(measured)} behind the verdict gave {min(measured):.3f}x to "
        f"{max(measured):.3f}x{also}."
    )


def machine_words(machine: MachineState) -> tuple[str, ...]:
    """What the machine was like."""
    if not machine.measured or machine.baseline is None:
        return ("No trial was measured, so nothing is known of the machine.",)
    values = sorted(machine.baseline.values)
    low, high = values[len(values) // 20], values[-1 - len(values) // 20]
    beside = _many(machine.measured, "measured trial")
    lines = [
        (
            f"The baseline took {low:.4g} to {high:.4g} ms beside nine in ten of {beside}; gains "
            "are paired with it, so that such drift cancels."
        )
    ]
    if not machine.series:
        names = "clocks, temperature and power"
        lines.append(f"The device told no {names}: only GPUs do, through NVML.")
    for series in machine.series:
        low, high = min(series.values), max(series.values)
        name = FIGURES[series.name].split(",")[0]
        lines.append(f"{name.capitalize()}: {low:.4g} to {high:.4g}.")
    for note, count in machine.disturbances[:3]:
        lines.append(f"In {count} of {machine.measured} measured trials: {note}")
    return tuple(lines)


def prior_words(prior: PriorReview) -> str:
    """What the prior was worth."""
    if not prior.used:
        return "No prior was used: what is known here comes from this study's own trials."
    if not prior.rows:
        return "The study began from a prior; too little was measured to hold against it."
    counts = ", ".join(f"{count} {verdict}" for verdict, count in prior.verdicts.items())
    return f"The prior spoke of {_many(len(prior.rows), 'value')}: {counts}."


def phases_words(phases: PhaseTimes) -> str:
    """Where the time went."""
    if not phases.phases:
        return "No time was spent yet."
    most = max(phases.phases, key=lambda phase: phase.seconds)
    whole = "" if math.isinf(phases.budget_seconds) else f" of {duration(phases.budget_seconds)}"
    return (
        f"{duration(phases.spent_seconds)}{whole} spent; the largest part, "
        f"{100 * most.share:.0f} %, was {most.name}."
    )


def outlook_words(outlook: Outlook) -> tuple[str, ...]:
    """Whether it is worth going on."""
    lines = []
    cost = (
        f"{_many(outlook.further_trials, 'trial')} more, about {duration(outlook.further_seconds)}"
    )
    if outlook.further_gain is None:
        lines.append("Too few trials to tell what going on would bring: go on.")
    elif outlook.worth_it:
        lines.append(
            f"Going on looks worth it: {cost}, may bring up to {expected_percent(outlook):.1f} %, "
            "as the second half of the trials did."
        )
    else:
        lines.append(
            f"Going on does not look worth it: {cost}, would bring about "
            f"{expected_percent(outlook):.1f} %, judging by the second half of the trials."
        )
    if outlook.worth_it and outlook.is_within_noise:
        lines.append(
            f"But noise alone moves one trial by +-{percent(outlook.noise or 0.0)}: a quieter "
            "machine would help more than more trials."
        )
    if outlook.untried:
        lines.append(f"{_many(outlook.untried, 'value')} no trial has had yet.")
    if outlook.unclear:
        lines.append(f"{_many(outlook.unclear, 'value')} with an effect that is not clear yet.")
    return tuple(lines)


def _listed(
    values: Sequence[ValueEffect], violators: frozenset[tuple[str, str]] = frozenset()
) -> str:
    named = []
    for value in values[:NAMED]:
        also = " (but costs too much accuracy)" if (value.knob, value.value) in violators else ""
        share = abs(100 * ((value.gain or 1.0) - 1))
        named.append(f"{value.knob}={value.value} {share:.1f} %{also}")
    return ", ".join(named) + _rest(values)


def _names(values: Sequence[ValueEffect]) -> str:
    return ", ".join(f"{value.knob}={value.value}" for value in values[:NAMED]) + _rest(values)


def _rest(values: Sequence[object]) -> str:
    return f" and {len(values) - NAMED} more" if len(values) > NAMED else ""


def _most(counts: Mapping[str, int]) -> str:
    return max(counts, key=counts.__getitem__)


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count:,} {noun}s"


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")
