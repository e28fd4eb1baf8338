"""What knobs do and what breaks, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_tuner.knobs.text import many
from smart_tuner.report.analysis.effects import Finding
from smart_tuner.report.words import (
    OUTCOME_WORDS,
    latency_percent,
    percent,
    shortened,
    times,
)
from smart_tuner.storages.keys import OVER_LIMIT
from smart_tuner.trial.trial import TrialOutcome

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from smart_tuner.report.analysis.effects import Effects, ValueEffect
    from smart_tuner.report.analysis.failures import FailureMap, ValueFailures

SURELY = 0.95
MESSAGE_ROOM = 160
OVER_WORDS = (OUTCOME_WORDS[TrialOutcome.INFEASIBLE], OVER_LIMIT)

NAMED = 5
"""Values that a sentence names; the rest is counted."""


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
        lines.append(f"Pays, in latency: {_listed(pays, failures.violators)}.")
    else:
        lines.append("No value is proven to make the engine faster.")
    if costs:
        lines.append(f"Costs, in latency: {_listed(costs[::-1])}.")
    idle = effects.of(Finding.NO_EFFECT)
    if idle:
        names = _names(idle)
        lines.append(f"No effect, to within 1 %: {names}.")
    unclear = effects.of(Finding.UNCLEAR)
    if unclear:
        lines.append(
            f"Not clear yet for {many(len(unclear), 'value')}: the interval holds both no effect "
            "and one that would matter."
        )
    if effects.untried:
        lines.append(f"{many(effects.untried, 'value')} of the space no trial has had.")
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
    trials = many(failures.trials, "trial")
    lines = [f"{failures.failed} of {trials} cannot ship{failures.ended}."]
    lines += [_blamed(value) for value in failures.blamed]
    for pair in failures.pairs:
        first, second = ("=".join(setting) for setting in (pair.first, pair.second))
        lines.append(
            f"{first} together with {second} breaks routes, though each works without the other: "
            f"{many(pair.failed, 'route')} with both, none worked."
        )
    if len(lines) == 1:
        lines.append("No value or pair stands out: too few such trials to tell what is to blame.")
    if failures.messages:
        message, count = failures.messages[0]
        said = f"Said most often, {times(count)}" if count > 1 else "What one of them said"
        lines.append(f"{said}: {shortened(message, MESSAGE_ROOM)}")
    return tuple(lines)


def _blamed(value: ValueFailures) -> str:
    risk = "surely" if value.risk > SURELY else "probably"
    setting, broken = f"{value.knob}={value.value}", value.failed - value.over
    if value.violates:
        own, ran = value.over - value.excused, value.tried - broken - value.excused
        also = f" ({value.excused} more had a worse value)" if value.excused else ""
        return f"{setting} {risk} costs too much accuracy: {own} of {ran} that ran with it{also}."
    crashes = {word: count for word, count in value.counts.items() if word not in OVER_WORDS}
    return (
        f"{setting} {risk} breaks routes: {broken} of {value.tried} with it failed, "
        f"{_most(crashes)}."
    )


def _listed(
    values: Sequence[ValueEffect], violators: frozenset[tuple[str, str]] = frozenset()
) -> str:
    named = []
    for value in values[:NAMED]:
        also = " (but costs too much accuracy)" if (value.knob, value.value) in violators else ""
        share = latency_percent(value.effect or 0.0)
        named.append(f"{value.knob}={value.value} {share:+.1f} %{also}")
    return ", ".join(named) + _rest(values)


def _names(values: Sequence[ValueEffect]) -> str:
    return ", ".join(f"{value.knob}={value.value}" for value in values[:NAMED]) + _rest(values)


def _rest(values: Sequence[object]) -> str:
    return f" and {len(values) - NAMED} more" if len(values) > NAMED else ""


def _most(counts: Mapping[str, int]) -> str:
    """The most frequent way to fail, and whether it is the only one."""
    word = max(counts, key=counts.__getitem__)
    return f"{'mostly' if len(counts) > 1 else 'always'}: {word}"
