"""A study in words: which knobs pay, which break, what is unknown, whether to go on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.text import Text

from smart_tuner.report.analysis.effects import Finding
from smart_tuner.report.knob_sentences import effects_words, failures_words
from smart_tuner.report.sentences import (
    history_words,
    outlook_words,
    sweep_words,
)
from smart_tuner.trial.fields import to_json

if TYPE_CHECKING:
    from rich.console import Console

    from smart_tuner.report.analysis.summary import StudySummary

MOST_LINES = 12
LEAST_WIDTH = 20


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a study tells, in sentences by subject.

    Attributes:
        verdict: The verdict in one sentence.
        cautions: What weakens it.
        subjects: Sentences by subject, in the order in which they are read.
    """

    verdict: str
    cautions: tuple[str, ...]
    subjects: dict[str, tuple[str, ...]]


def explain(summary: StudySummary) -> Explanation:
    """Put a summary into words."""
    return Explanation(
        summary.headline.sentence,
        summary.headline.cautions,
        {
            "How the search went": (history_words(summary.history),),
            "What each knob does": effects_words(summary.effects, summary.failures),
            "What breaks": failures_words(summary.failures),
            "Had epsilon been another": (sweep_words(summary.sweep),),
            "Is it worth going on?": outlook_words(summary.outlook),
        },
    )


def explanation_json(summary: StudySummary) -> dict[str, Any]:
    """The same as data: sentences, and the figures that they are made of."""
    effects, failures = summary.effects, summary.failures
    return {
        **to_json(explain(summary)),
        "pays": to_json(effects.of(Finding.PAYS)),
        "costs": to_json(effects.of(Finding.COSTS)),
        "no_effect": to_json(effects.of(Finding.NO_EFFECT)),
        "unclear": to_json(effects.of(Finding.UNCLEAR)),
        "never_measured": to_json(effects.of(Finding.NEVER_MEASURED)),
        "breaks": to_json(failures.blamed),
        "breaks_together": to_json(failures.pairs),
        "outlook": to_json(summary.outlook),
    }


def print_explanation(explanation: Explanation, console: Console) -> None:
    """Print an explanation for people."""
    console.print(Text(explanation.verdict))
    for caution in explanation.cautions:
        print_item("!", caution, console)
    for subject, lines in explanation.subjects.items():
        console.print()
        console.print(Text(subject, style="bold"))
        shown = list(lines[:MOST_LINES])
        if len(lines) > MOST_LINES:
            rest = len(lines) - MOST_LINES
            shown.append(f"And {rest} more, in `smart-tuner explain --json`.")
        for line in shown:
            print_item("-", line, console)


def print_item(mark: str, line: str, console: Console) -> None:
    """One item of a list, what is wrapped indented like its beginning."""
    room = max(LEAST_WIDTH, console.width - 2)
    for place, piece in enumerate(Text(line).wrap(console, room)):
        piece.rstrip()
        console.print(Text.assemble(" " if place else mark, " ", piece))
