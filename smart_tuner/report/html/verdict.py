"""The top of the page: the verdict, and what follows from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_tuner.report.html.parts import (
    answers,
    code_cell,
    listing,
    paragraph,
    section,
    table,
    text,
)
from smart_tuner.report.sentences import outlook_words
from smart_tuner.report.words import latency_percent
from smart_tuner.study.proof.manifest import MANIFEST

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smart_tuner.report.analysis.effects import ValueEffect
    from smart_tuner.report.analysis.headline import Headline
    from smart_tuner.report.analysis.summary import StudySummary
    from smart_tuner.report.reading import StudyView

MEASURED = (
    f"What ships is the very file that was measured. `winner/{MANIFEST}` holds its hashes, platform, "
    "gain and losses; `smart-tuner verify` measures it again."
)


def header(view: StudyView, summary: StudySummary) -> Iterator[str]:
    """Title, verdict, and what somebody who deploys must know."""
    headline = summary.headline
    name = str(view.settings.get("model", "")).rsplit("/", 1)[-1]
    device = view.platform.get("device", "an unknown device")
    yield f'<header><h1>{text(name)} <span class="state">{headline.state}</span></h1>'
    backend = view.platform.get("backend_version", view.settings.get("backend", ""))
    yield paragraph(f"on {device}, {backend}", kind="where")
    yield paragraph(summary.brief.lead, kind="verdict")
    yield answers(summary.brief.facts)
    yield listing(headline.cautions, kind="caution")
    yield paragraph(summary.brief.meanings, kind="alt")
    yield "</header>"


def deploying(view: StudyView, summary: StudySummary) -> Iterator[str]:
    """What exactly ships, knob by knob, and how exact it is."""
    headline = summary.headline
    effects = {(item.knob, item.value): item for item in summary.effects.values}
    parts = [paragraph(MEASURED if _has_winner(view, headline) else headline.deploy)]
    if headline.route:
        rows = [
            (code_cell(knob), code_cell(value), _effect(effects.get((knob, value))))
            for knob, value in headline.route
        ]
        head = ("knob", "value", "latency, as estimated from all trials")
        parts.append(table(head, rows))
        parts.append(_left_out(summary))
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
    yield from section("deploy", "What ships", parts)


def _has_winner(view: StudyView, headline: Headline) -> bool:
    return headline.ships and bool(view.manifest) and not view.figures_only


def _effect(effect: ValueEffect | None) -> str:
    if effect is None or effect.effect is None or effect.shares is None:
        return "not estimated"
    share, (low, high) = latency_percent(effect.effect), effect.shares
    return f"{share:+.1f} % ({low:+.1f} to {high:+.1f}), {effect.finding.value}"


def _left_out(summary: StudySummary) -> str:
    """Which knobs of the fastest trial do not ship, where that is all that differs."""
    tried = [p for p in summary.history.points if p.feasible and p.gain and p.route]
    if not tried:
        return ""
    fastest = max(tried, key=lambda point: point.gain or 0.0)
    theirs = set(fastest.route.split())
    ours = {f"-{knob}={value}" for knob, value in summary.headline.route}
    if not ours < theirs:
        return ""
    names = ", ".join(f"`{word}`" for word in sorted(theirs - ours))
    return paragraph(
        f"The fastest trial, {fastest.number}, had more knobs. Fresh builds without {names} were as "
        "fast within noise, so these do not ship."
    )


def gains(summary: StudySummary) -> str:
    """All gains of the confirmed route."""
    rows = [
        (name, f"{gain.value:.3f}x", gain.interval, gain.samples)
        for name, gain in summary.headline.gains.items()
    ]
    head = ("gain of the best route", "estimate", "95 % interval", "samples")
    return table(head, rows, numbers=3) if rows else ""


def going_on(summary: StudySummary) -> Iterator[str]:
    """Whether more budget would help."""
    lines = outlook_words(summary.outlook)
    yield from section("outlook", "Would more budget help?", [listing(lines)])
