"""The body of the page: a section for each part of the summary, each with its picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_tuner.report.analysis.tradeoff import EXACT, LARGEST_RATIO, winners_of
from smart_tuner.report.figures.accuracy import sweep_figure, tradeoff_figure
from smart_tuner.report.figures.knobs import (
    drawn_effects,
    drawn_failures,
    drawn_rows,
    effects_figure,
    failures_figure,
    prior_figure,
)
from smart_tuner.report.figures.measuring import (
    confirmation_figure,
    machine_figure,
    phases_figure,
)
from smart_tuner.report.figures.search import history_figure, slower_words
from smart_tuner.report.html.parts import (
    Picture,
    code_cell,
    folded,
    listing,
    paragraph,
    picture,
    route_cell,
    section,
    table,
    text,
)
from smart_tuner.report.html.verdict import gains
from smart_tuner.report.knob_sentences import effects_words, failures_words
from smart_tuner.report.sentences import (
    confirmation_words,
    history_words,
    machine_words,
    phases_words,
    prior_words,
    sweep_words,
    tradeoff_words,
)
from smart_tuner.report.words import SHOWN_WORDS, latency_percent, percent, shortened

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smart_tuner.report.analysis.failures import FailureMap
    from smart_tuner.report.analysis.summary import StudySummary

ROWS = 60
"""Rows of a table; what is beyond is in ``report --json``."""

BEST = 10
MESSAGE_ROOM = 300


def certainty(summary: StudySummary) -> Iterator[str]:
    """How sure the gain is: fresh builds, block by block."""
    confirmation = summary.confirmation
    measured = any(build.gain is not None for build in confirmation.builds)
    figure = confirmation_figure(confirmation) if measured else None
    parts = [
        gains(summary),
        picture(Picture("confirmation", confirmation_words(confirmation), figure)),
    ]
    noise = summary.effects.floor
    if not measured and noise:
        parts.append(
            paragraph(
                f"One trial is good to +-{percent(noise)} (half of its 95 % interval, typical): a "
                "smaller gain does not show in it."
            )
        )
    if measured:
        rows = [
            (
                b.label,
                "-" if b.gain is None else f"{b.gain:.3f}x",
                SHOWN_WORDS.get(b.outcome, b.outcome),
                route_cell(b.route),
            )
            for b in confirmation.builds[:ROWS]
        ]
        parts.append(
            folded("Each fresh build", table(("build", "gain", "outcome", "route"), rows))
        )
    yield from section("sure", "How sure is it?", parts)


def search(summary: StudySummary) -> Iterator[str]:
    """How the search went."""
    history = summary.history
    figure = history_figure(history) if history.points else None
    best = sorted(
        (point for point in history.points if point.feasible and point.gain),
        key=lambda point: (-(point.gain or 0.0), point.number),
    )[:BEST]
    rows = [
        (point.number, f"{point.gain:.3f}x", point.reason, route_cell(point.route))
        for point in best
    ]
    slow = f" {slower_words(history)}." if history.slower else ""
    parts = [picture(Picture("history", f"{history_words(history)}{slow}", figure))]
    if rows:
        head = ("trial", "gain", "why it was tried", "route")
        note = "One measurement each: the top is partly luck, which is why finalists are rebuilt."
        parts.append(folded("The fastest trials", paragraph(note) + table(head, rows)))
    yield from section("history", "The search", parts)


def accuracy(summary: StudySummary) -> Iterator[str]:
    """Latency against accuracy, and other epsilons."""
    tradeoff, steps = summary.tradeoff, summary.sweep
    drawn = tradeoff_figure(tradeoff) if tradeoff.points else None
    swept = sweep_figure(steps, tradeoff) if steps else None
    exact = any(point.is_exact for point in tradeoff.points)
    note = " Exact stands for a loss of at most a millionth of epsilon." if exact else ""
    parts = [
        picture(Picture("tradeoff", f"{tradeoff_words(tradeoff)}{note}", drawn)),
        "<h3>Had epsilon been another</h3>",
        picture(Picture("sweep", sweep_words(steps), swept)),
    ]
    if steps:
        rows = [
            (
                EXACT if s.ratio <= 1 / LARGEST_RATIO else f"{s.ratio:.3g}",
                s.eligible,
                s.number,
                f"{s.gain:.3f}x",
                route_cell(s.route),
            )
            for s in winners_of(steps)
        ]
        head = ("from epsilon times", "routes within", "trial", "gain", "fastest route")
        parts.append(folded("The fastest trial at each epsilon", table(head, rows)))
    yield from section("accuracy", "Speed against accuracy", parts)


def knobs(summary: StudySummary) -> Iterator[str]:
    """What the values of knobs do."""
    effects = summary.effects
    drawn = drawn_effects(effects)
    lines = effects_words(effects, summary.failures)
    figure = effects_figure(effects) if drawn else None
    note = (
        "Estimated from all measured trials together (additive model on log latency, 95 % "
        "intervals); a minus is faster, the grey band is the noise of one trial."
    )
    words = f"{note} {len(drawn)} of {len(effects.values)} tried values are drawn."
    parts = [listing(lines), picture(Picture("effects", words if drawn else lines[0], figure))]
    if drawn:
        parts.append(folded("Effects as a table", _effects_table(summary)))
    yield from section("effects", "What each knob does", parts)


def _effects_table(summary: StudySummary) -> str:
    effects, violators = summary.effects, summary.failures.violators
    rows = []
    for value in effects.values[:ROWS]:
        low, high = value.shares or (None, None)
        interval = "-" if low is None or high is None else f"{low:+.1f} to {high:+.1f} %"
        share = "-" if value.effect is None else f"{latency_percent(value.effect):+.1f} %"
        setting = code_cell(f"{value.knob}={value.value}")
        also = ", costs too much accuracy" if (value.knob, value.value) in violators else ""
        rows.append((setting, f"{value.finding.value}{also}", share, interval, value.measured))
    head = ("value", "finding", "latency", "95 % interval", "trials with a latency")
    rest = len(effects.values) - ROWS
    more = paragraph(f"And {rest} more, in `smart-tuner report --json`.") if rest > 0 else ""
    return table(head, rows, numbers=3) + more


def failing(summary: StudySummary) -> Iterator[str]:
    """What did not work, and who is to blame."""
    failures = summary.failures
    lines = failures_words(failures)
    drawn = drawn_failures(failures)
    figure = failures_figure(failures) if drawn else None
    words = (
        "Of the routes with each value, how many cannot ship, and why. A triangle marks values that "
        "are to blame by themselves; the others were in bad company."
    )
    none = "No route that cannot ship had a value of its own." if failures.failed else lines[0]
    parts = [
        listing(lines[: ROWS + 1] if drawn or failures.failed else ()),
        picture(Picture("failures", words if drawn else none, figure)),
    ]
    if failures.messages:
        parts.append(folded("What routes that cannot ship said", _messages(failures)))
    yield from section("failures", "What did not work, and why", parts)


def _messages(failures: FailureMap) -> str:
    rows = [(count, shortened(words, MESSAGE_ROOM)) for words, count in failures.messages[:ROWS]]
    return table(("routes", "message"), rows)


def prior(summary: StudySummary) -> Iterator[str]:
    """What the prior said against what was found."""
    review = summary.prior
    figure = prior_figure(review) if drawn_rows(review) else None
    parts = [picture(Picture("prior", prior_words(review), figure))]
    if review.weights:
        weights = [(name, f"{weight:.2f}") for name, weight in review.weights.items()]
        parts.append(folded("Earlier studies behind it", table(("study", "weight"), weights)))
    if review.rows:
        rows = [
            (
                code_cell(f"{row.knob}={row.value}"),
                row.verdict,
                f"{100 * row.said_active:.0f} %, {_share(row.said_effect)}",
                "-" if row.found_effect is None else _share(row.found_effect),
                row.tried,
            )
            for row in review.rows[:ROWS]
        ]
        head = ("value", "verdict", "said: matters, then by", "found", "trials")
        parts.append(folded("Value by value", table(head, rows, numbers=1)))
    yield from section("prior", "The prior against what was found", parts)


def _share(effect: float) -> str:
    return f"latency {latency_percent(effect):+.1f} %"


def machine(summary: StudySummary) -> Iterator[str]:
    """The machine over time, and where the time went."""
    state, phases = summary.machine, summary.phases
    lines = machine_words(state)
    drawn = machine_figure(state) if state.baseline else None
    spent = phases_figure(phases) if phases.phases else None
    parts = [
        picture(Picture("machine", " ".join(lines), drawn)),
        listing(state.notes),
        "<h3>Where the time went</h3>",
        picture(Picture("phases", phases_words(phases), spent)),
    ]
    yield from section("machine", "The machine and the time", parts)


def again(summary: StudySummary) -> Iterator[str]:
    """What it takes to do it again."""
    made = summary.reproduction
    commands = "\n".join(made.commands)
    rows = [(name, code_cell(value)) for name, value in made.facts.items()]
    parts = [
        paragraph("In the folder that holds the study:"),
        f"<pre>{text(commands)}</pre>",
        table(("what", "value"), rows),
    ]
    yield from section("again", "Do it again", parts)
