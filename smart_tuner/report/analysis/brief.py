"""The top of a report in plain words: what to deploy, how fast, how exact, on what."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_tuner.knobs.text import many
from smart_tuner.measure.goal import Goal
from smart_tuner.measure.latency import Statistic
from smart_tuner.report.analysis.headline import METRIC_WORDS
from smart_tuner.report.words import duration
from smart_tuner.study.proof.wording import builds_words

if TYPE_CHECKING:
    from smart_tuner.report.analysis.failures import FailureMap
    from smart_tuner.report.analysis.headline import Headline
    from smart_tuner.report.reading import StudyView
    from smart_tuner.study.proof.gain import Gain
    from smart_tuner.study.proof.result import TuneResult

SIMULATED = "replay"
"""Name of the backend that answers from simulated or recorded compilers."""

MEANINGS = (
    "A knob is one setting of the compiler. A route is the knobs that are set to something other "
    "than their default. Epsilon is the largest loss of accuracy that you allow. A gain of 1.25x "
    "means that the default takes 1.25 times as long."
)


@dataclass(frozen=True, slots=True)
class Brief:
    """What somebody who deploys must know.

    Attributes:
        lead: One sentence.
        facts: Short answers by question, in the order in which they are read.
        meanings: What the words mean that the report uses, the accuracy metrics among them.
    """

    lead: str
    facts: tuple[tuple[str, str], ...]
    meanings: str


def brief_of(view: StudyView, headline: Headline, failures: FailureMap) -> Brief:
    """Put the verdict into plain words."""
    facts = (
        ("Deploy", headline.deploy),
        ("Latency", _latency(view, headline)),
        ("Expect", _expect(view.result) if headline.ships and view.result else ""),
        ("Accuracy", _accuracy(view, headline)),
        ("Device", _device(view)),
        ("Spent", _spent(view, failures)),
    )
    return Brief(
        lead=_lead(view, headline),
        facts=tuple((name, words) for name, words in facts if words),
        meanings=" ".join([MEANINGS, *_metrics(view)]),
    )


def _file_gain(view: StudyView) -> Gain | None:
    """The gain of what ships: the file's own, if that was measured."""
    result = view.result
    return (result.engine_gain or result.route_gain) if result else None


def _lead(view: StudyView, headline: Headline) -> str:
    gain = _file_gain(view)
    if not headline.ships or not view.manifest or gain is None or not view.baseline_ms:
        return headline.sentence
    return (
        f"{gain.value:.3f}x faster than the default: {view.baseline_ms:.4g} ms becomes "
        f"{view.baseline_ms / gain.value:.4g} ms."
    )


def _latency(view: StudyView, headline: Headline) -> str:
    if not view.baseline_ms:
        return ""
    base = view.document.get("base", {})
    statistic = view.settings.get("statistic", Goal().statistic.value)
    goal = Goal(Statistic(statistic), base.get("objective", Goal().objective))
    figure = f"{view.baseline_ms:.4g} ms"
    gain = _file_gain(view)
    if headline.ships and gain is not None:
        figure = f"default {figure}, what ships {view.baseline_ms / gain.value:.4g} ms"
    else:
        figure = f"default {figure}"
    points = "; ".join(f"{name} ({shapes})" for name, shapes in view.points.items())
    return f"{figure}: {goal.words} of one inference{f', {points}' if points else ''}."


def _expect(result: TuneResult) -> str:
    engine, route = result.engine_gain, result.route_gain
    lines = []
    if engine is not None:
        lines.append(
            f"{_figure(engine)} from this very file (engine gain): quote this if you deploy the "
            "file."
        )
    if route is not None:
        lines.append(
            f"{_figure(route)} on average if you build it anew (route gain, "
            f"{builds_words(route.samples)}): quote this for the route."
        )
    return " ".join(lines)


def _figure(gain: Gain) -> str:
    if math.isinf(gain.high):
        return f"{gain.value:.3f}x"
    return f"{gain.value:.3f}x ({gain.interval})"


def _accuracy(view: StudyView, headline: Headline) -> str:
    kind = "synthetic" if view.result and view.result.provisional else "real"
    if not headline.accuracy:
        limit = "no limit" if math.isinf(view.epsilon) else f"epsilon {view.epsilon:g}"
        kept = f"Unchanged. Routes had to keep {limit} ({view.metric}) on {kind} inputs."
        return kept if view.result else ""
    worst = max(headline.accuracy, key=lambda item: item.judged / (item.epsilon or 1.0))
    limit = "no epsilon" if math.isinf(worst.epsilon) else f"epsilon {worst.epsilon:g}"
    pairs = f"{many(worst.pairs, f'{kind} pair')} of inputs and reference outputs"
    output = f"output {worst.output}, " if len(headline.accuracy) > 1 else ""
    return f"{worst.over} loss {worst.judged:.3g} against {limit} ({output}{worst.metric}), on {pairs}."


def _device(view: StudyView) -> str:
    if view.settings.get("backend") != SIMULATED:
        return ""
    return "Simulated: a replay answered instead of a compiler, so no figure here is of a real device."


def _spent(view: StudyView, failures: FailureMap) -> str:
    whole = "" if math.isinf(view.budget_seconds) else f" of {duration(view.budget_seconds)}"
    trials = many(failures.trials, "trial")
    return f"{duration(view.spent_seconds)}{whole}, {trials}{failures.ended}."


def _metrics(view: StudyView) -> list[str]:
    own = dict(view.document["accuracy"].get("metrics") or {})
    names = dict.fromkeys((view.metric, *map(str, own.values())))
    return [f"{name} is {METRIC_WORDS[name]}." for name in names if name in METRIC_WORDS]
