"""What each picture shows, in sentences: for who cannot see it, and for ``explain``."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from smart_tuner.knobs.text import many
from smart_tuner.report.analysis.conditions import FIGURES
from smart_tuner.report.analysis.outlook import expected_percent
from smart_tuner.report.analysis.tradeoff import winners_of
from smart_tuner.report.words import (
    DEFAULT_WORD,
    counted,
    duration,
    percent,
    times,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from smart_tuner.report.analysis.conditions import MachineState
    from smart_tuner.report.analysis.confirmation import Confirmation
    from smart_tuner.report.analysis.history import History
    from smart_tuner.report.analysis.outlook import Outlook
    from smart_tuner.report.analysis.phases import PhaseTimes
    from smart_tuner.report.analysis.prior import PriorReview
    from smart_tuner.report.analysis.tradeoff import SweepStep, Tradeoff

LEAST_SHARE = 0.05
"""Percent of the latency below which a tenth of a percent is not worth naming."""

VISIBLE = 0.005
"""A baseline that moves by less than half a percent has not moved."""


def history_words(history: History) -> str:
    """How the search went."""
    points = history.points
    if not points:
        return "No trial has finished yet, so there is nothing to draw."
    counts = Counter(point.word for point in points if point.word != DEFAULT_WORD)
    default = ["the default itself (trial 0)"] if len(points) > counts.total() else []
    ended = ", ".join([*default, counted(dict(counts.most_common()))])
    text = f"{many(len(points), 'trial')}: {ended.removesuffix(', ')}."
    steps = history.improvements
    if not steps:
        return f"{text} None was measured faster than the default."
    last = steps[-1]
    after = len(points) - 1 - [point.number for point in points].index(last.number)
    since = (
        f"the last {many(after, 'trial')} brought nothing better"
        if after
        else "that was the last trial"
    )
    return (
        f"{text} The best gain rose {times(len(steps))}, to {last.gain:.3f}x at trial "
        f"{last.number} (one measurement, so partly luck); {since}."
    )


def tradeoff_words(tradeoff: Tradeoff) -> str:
    """What speed costs in accuracy."""
    if not tradeoff.points:
        return "No trial has both a latency and an accuracy loss, so there is nothing to draw."
    over = [point for point in tradeoff.points if not point.feasible]
    text = f"{many(len(tradeoff.points), 'trial')} with both a latency and a loss"
    if any(not point.route for point in tradeoff.points):
        text += ", the default among them"
    if tradeoff.untimed:
        text += f" ({tradeoff.untimed} more were too inaccurate to be timed)"
    if not over:
        return f"{text}: all are within epsilon, so no measured speed was given up for accuracy."
    best = max((p.gain for p in tradeoff.points if p.feasible), default=1.0)
    lost = max(over, key=lambda point: point.gain)
    beyond = (
        f"the fastest of them, trial {lost.number}, would have been {lost.gain:.3f}x against "
        f"{best:.3f}x within epsilon"
        if lost.gain > best
        else "none of them is faster than the best within epsilon"
    )
    return f"{text}; {len(over)} of them over epsilon or a limit: {beyond}."


def sweep_words(steps: Sequence[SweepStep]) -> str:
    """What another epsilon would have changed, among routes that were tried."""
    if not steps:
        return "No tried route has a finite accuracy loss, so no epsilon makes one eligible."
    here = [step for step in steps if step.ratio <= 1 + 1e-9]
    changes = winners_of(steps)
    text = (
        f"Within this study's epsilon: {many(here[-1].eligible, 'tried route')}, the default "
        f"counted, the fastest of them at {here[-1].gain:.3f}x (trial {here[-1].number})."
        if here
        else "No tried route is within this study's epsilon."
    )
    looser = [step for step in changes if step.ratio > 1 + 1e-9]
    if not looser:
        return f"{text} A larger epsilon would not have let a faster tried route in."
    most = looser[-1]
    return (
        f"{text} From {most.ratio:.3g} times this epsilon on, trial {most.number} would be the "
        f"fastest, at {most.gain:.3f}x."
    )


def confirmation_words(confirmation: Confirmation) -> str:
    """What fresh builds showed."""
    if not confirmation.builds:
        return confirmation.why_none
    report = [build for build in confirmation.builds if build.phase == "report"]
    measured = [build.gain for build in report if build.gain is not None]
    count = len(confirmation.builds)
    text = f"{many(count, 'fresh build')} {'was' if count == 1 else 'were'} made"
    if not measured:
        return f"{text}{_no_report(confirmation)}."
    failed = len(report) - len(measured)
    also = f", {failed} failed" if failed else ""
    return (
        f"{text}; the {len(measured)} behind the verdict gave {min(measured):.3f}x to "
        f"{max(measured):.3f}x{also}."
    )


def _no_report(confirmation: Confirmation) -> str:
    """Why no round of fresh builds followed."""
    gains = [build.gain for build in confirmation.builds if build.gain is not None]
    if not gains:
        return ", but none could be measured"
    best, least = max(gains), confirmation.min_gain
    if best < least:
        return f": the best gave {best:.4f}x, less than the {least:g}x that ships, so no more followed"
    return f": the best gave {best:.4f}x, and the rounds behind a verdict did not follow"


def machine_words(machine: MachineState) -> tuple[str, ...]:
    """What the machine was like."""
    if not machine.measured or machine.baseline is None:
        return ("No trial tells what the machine was like: none was measured, or none is kept.",)
    values = sorted(machine.baseline.values)
    low, high = values[len(values) // 20], values[-1 - len(values) // 20]
    beside = many(machine.measured, "measured trial")
    most = "nine in ten of " if len(values) >= 20 else ""
    lines = []
    if high > (1 + VISIBLE) * low:
        lines.append(
            f"The baseline took {low:.4g} to {high:.4g} ms beside {most}{beside}; each trial is "
            "compared with the baseline beside it, so that slow drift cancels."
        )
    else:
        lines.append(f"The baseline held still beside {beside}, at {low:.4g} ms.")
    if not machine.series:
        names = "clocks, temperature and power"
        lines.append(f"The device told no {names}; only GPUs do.")
    for series in machine.series:
        low, high = min(series.values), max(series.values)
        name, _, unit = FIGURES[series.name].partition(", ")
        lines.append(f"{name.capitalize()}: {low:.4g} to {high:.4g} {unit}.")
    if disturbed := [f"in {count} {words}" for words, count in machine.disturbances[:3]]:
        lines.append(f"Of {beside}, {', '.join(disturbed)}.")
    return tuple(lines)


def prior_words(prior: PriorReview) -> str:
    """What the prior was worth."""
    if not prior.used:
        return "No prior was used: what is known here comes from this study's own trials."
    if not prior.rows:
        return "The study began from a prior; too little was measured to hold against it."
    counts = ", ".join(f"{count} {verdict}" for verdict, count in prior.verdicts.items())
    return f"The prior spoke of {many(len(prior.rows), 'value')}: {counts}."


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
        f"{many(outlook.further_trials, 'trial')} more, about {duration(outlook.further_seconds)}"
    )
    if outlook.further_gain is None:
        few = f"{many(outlook.further_trials, 'trial')} for {many(outlook.knobs, 'knob')}"
        lines.append(f"Too few trials ({few}) to tell what going on would bring: go on.")
    elif outlook.worth_it:
        lines.append(
            f"Going on looks worth it: {cost}, may take off up to {expected_percent(outlook):.1f} % of the "
            "latency, "
            "as the second half of the trials did."
        )
    else:
        share = expected_percent(outlook)
        brings = "next to nothing" if share < LEAST_SHARE else f"about {share:.1f} %"
        lines.append(
            f"Going on does not look worth it: {cost}, would take {brings} off the latency, "
            "judging by the second half of the trials."
        )
    if outlook.is_within_noise:
        lines.append(
            f"But noise alone moves one trial by +-{percent(outlook.noise or 0.0)}: smaller gains "
            "hardly show, and a quieter machine would help more than more trials."
        )
    if outlook.untried:
        lines.append(f"{many(outlook.untried, 'value')} no trial has had yet.")
    if outlook.unclear:
        lines.append(f"{many(outlook.unclear, 'value')} with an effect that is not clear yet.")
    return tuple(lines)
