"""The top of the page: the verdict, and what follows from it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from smart_tuner.report.html.parts import (
    code_cell,
    listing,
    paragraph,
    prose,
    section,
    table,
    text,
)
from smart_tuner.report.sentences import outlook_words
from smart_tuner.report.words import duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smart_tuner.report.analysis.effects import ValueEffect
    from smart_tuner.report.analysis.summary import StudySummary
    from smart_tuner.report.reading import StudyView
    from smart_tuner.study.gain import Gain


def header(view: StudyView, summary: StudySummary) -> Iterator[str]:
    """Title, verdict and the four figures that matter."""
    headline = summary.headline
    name = str(view.settings.get("model", "")).rsplit("/", 1)[-1]
    device = view.platform.get("device", "an unknown device")
    yield f'<header><h1>{text(name)} <span class="state">{headline.state}</span></h1>'
    backend = view.platform.get("backend_version", view.settings.get("backend", ""))
    yield paragraph(f"on {device}, {backend}", kind="where")
    yield f'<p class="verdict">{prose(headline.sentence)}</p>'
    yield f'<div class="cards">{"".join(_cards(view, summary))}</div>'
    yield listing(headline.cautions, kind="caution")
    yield "</header>"


def _cards(view: StudyView, summary: StudySummary) -> Iterator[str]:
    headline = summary.headline
    gain = next(iter(headline.gains.values()), None)
    best = summary.history.points[-1].incumbent if summary.history.points else 1.0
    if headline.ships and gain is not None:
        yield _card("gain", f"{gain.value:.3f}x", _interval(gain), good=True)
    elif view.result is not None:
        tried = gain and f"best route: {gain.value:.3f}x, not proven, {_interval(gain)}"
        yield _card("gain", "none proven", tried or "the default ships")
    else:
        yield _card("best so far", f"{best:.3f}x", "one measurement, unconfirmed")
    if headline.accuracy:
        worst = max(headline.accuracy, key=lambda item: item.judged / (item.epsilon or 1.0))
        limit = "no limit" if math.isinf(worst.epsilon) else f"epsilon {worst.epsilon:g}"
        words = f"{worst.over} {worst.metric} loss of what ships, {limit}"
        yield _card("accuracy", f"{worst.judged:.3g}", words)
    else:
        metric = f"{view.metric}; the default keeps it" if view.records else view.metric
        limit = "no limit" if math.isinf(view.epsilon) else f"epsilon {view.epsilon:g}"
        yield _card("accuracy", limit, metric)
    knobs = len(headline.route)
    noun = "knob" if knobs == 1 else "knobs"
    ships = f"{knobs} {noun} set" if headline.ships else "the default"
    if view.result is None:
        yield _card("ships", "nothing yet", "the study has no verdict")
    else:
        yield _card("ships", ships, "winner/" if headline.ships else "nothing to change")
    trials = len(summary.history.points)
    spent = summary.phases.spent_seconds
    whole = "" if math.isinf(view.budget_seconds) else f" of {duration(view.budget_seconds)}"
    failed = f"{summary.failures.failed} failed or infeasible"
    noun = "trial" if trials == 1 else "trials"
    yield _card("spent", f"{duration(spent)}{whole}", f"{trials:,} {noun}, {failed}")


def _card(name: str, figure: str, words: str, *, good: bool = False) -> str:
    kind = "card good" if good else "card"
    return (
        f'<div class="{kind}"><i>{text(name)}</i><b>{text(figure)}</b>'
        f"<span>{text(words)}</span></div>"
    )


def _interval(gain: Gain) -> str:
    if math.isinf(gain.high):
        return "no interval"
    return f"95 % interval {gain.low:.3f} to {gain.high:.3f}"


def deploying(summary: StudySummary) -> Iterator[str]:
    """What exactly to deploy, and how exact it is."""
    headline = summary.headline
    effects = {(item.knob, item.value): item for item in summary.effects.values}
    parts = [paragraph(headline.deploy)]
    if headline.route:
        rows = [
            (code_cell(knob), code_cell(value), _effect(effects.get((knob, value))))
            for knob, value in headline.route
        ]
        head = ("knob", "value", "effect as estimated from all trials")
        parts.append(table(head, rows))
    if headline.accuracy:
        losses = [
            (
                code_cell(item.output),
                item.point,
                item.metric,
                f"{item.worst:.3g} ({item.worst_pair})",
                f"{item.mean:.3g}",
                item.pairs,
                f"{item.epsilon:g} on the {item.over}",
            )
            for item in headline.accuracy
        ]
        names = ("output", "point", "metric", "worst loss (pair)", "mean", "pairs", "epsilon")
        parts.append(table(names, losses, numbers=4))
    parts.append(paragraph(headline.judged_by, kind="alt"))
    yield from section("deploy", "What to deploy", parts)


def _effect(effect: ValueEffect | None) -> str:
    if effect is None or effect.gain is None or effect.bounds is None:
        return "not estimated"
    low, high = effect.bounds
    return f"{effect.gain:.3f}x ({low:.3f} to {high:.3f}), {effect.finding.value}"


def gains(summary: StudySummary) -> str:
    """All gains of the confirmed route."""
    rows = [
        (
            name,
            f"{gain.value:.3f}x",
            "none" if math.isinf(gain.high) else f"{gain.low:.3f} to {gain.high:.3f}",
            gain.samples,
        )
        for name, gain in summary.headline.gains.items()
    ]
    head = ("gain of the best route", "estimate", "95 % interval", "samples")
    return table(head, rows, numbers=3) if rows else ""


def going_on(summary: StudySummary) -> Iterator[str]:
    """Whether more budget would help."""
    lines = outlook_words(summary.outlook)
    yield from section("outlook", "Would more budget help?", [listing(lines)])
