"""A study in short, as Markdown: for a comment on a pull request."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from smart_tuner.report.analysis.effects import Finding
from smart_tuner.report.knob_sentences import failures_words
from smart_tuner.report.markdown import code, plain, sentence, table
from smart_tuner.report.sentences import outlook_words, phases_words
from smart_tuner.report.words import latency_percent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smart_tuner.report.analysis.summary import StudySummary
    from smart_tuner.report.reading import StudyView

MOST = 8


def markdown_comment(view: StudyView, summary: StudySummary) -> str:
    """The verdict, what ships, what pays, what broke and how to do it again."""
    return "\n".join(_lines(view, summary)) + "\n"


def _lines(view: StudyView, summary: StudySummary) -> Iterator[str]:
    name = str(view.settings.get("model", "")).rsplit("/", 1)[-1]
    device = view.platform.get("device", "an unknown device")
    yield f"### {plain(name)} on {plain(device)}"
    yield ""
    yield f"**{sentence(summary.headline.sentence)}**"
    yield ""
    for caution in summary.headline.cautions:
        yield f"> {sentence(caution)}"
        yield ">"
    yield from _gains(summary)
    yield from _route(summary)
    yield from (f"- {plain(line)}" for line in failures_words(summary.failures)[:MOST])
    yield from (f"- {plain(line)}" for line in outlook_words(summary.outlook))
    yield f"- {plain(phases_words(summary.phases))}"
    yield ""
    yield "<details><summary>Do it again</summary>"
    yield ""
    commands = summary.reproduction.commands
    longest = max(map(len, re.findall("`+", " ".join(commands))), default=0)
    fence = "`" * max(3, longest + 1)
    yield f"{fence}bash"
    yield from commands
    yield fence
    yield ""
    rows = ((plain(name), code(value)) for name, value in summary.reproduction.facts.items())
    yield from table(("what", "value"), rows)
    yield ""
    yield "</details>"


def _gains(summary: StudySummary) -> Iterator[str]:
    gains = summary.headline.gains
    if not gains:
        return
    rows = ((plain(name), f"{gain.value:.3f}x", gain.interval) for name, gain in gains.items())
    yield from table(("gain", "estimate", "95 % interval"), rows)
    yield ""


def _route(summary: StudySummary) -> Iterator[str]:
    """The knobs that ship with what each was found to do; without a winner those that pay."""
    effects = {(item.knob, item.value): item for item in summary.effects.values}
    shipped = summary.headline.route
    pays = tuple((item.knob, item.value) for item in summary.effects.of(Finding.PAYS))
    chosen = shipped or pays[:MOST]
    if not chosen:
        return
    rows = []
    for setting in chosen:
        effect = effects.get(setting)
        known = effect.effect if effect else None
        words = "not estimated" if known is None else f"{latency_percent(known):+.1f} %"
        rows.append((code("=".join(setting)), words))
    head = ("knob that ships" if shipped else "value that seems to pay", "latency, estimated")
    yield from table(head, rows)
    yield ""
