"""The verdict on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from smart_tuner.report.explain import print_item
from smart_tuner.report.prior_found import prior_sentence
from smart_tuner.report.words import duration, ended
from smart_tuner.study.files.folder import StudyFolder
from smart_tuner.study.files.prior import prior_outcome
from smart_tuner.study.proof.result import Verdict

if TYPE_CHECKING:
    from rich.console import Console

    from smart_tuner.report.analysis.top import Top
    from smart_tuner.study.proof.result import TuneResult


OTHER_GAINS = {
    "sustained_gain": "Under sustained load",
    "bare_gain": "Over the bare default, base included",
}
"""Gains that the facts on top have not."""


def print_result(result: TuneResult, top: Top, console: Console) -> None:
    """Print the verdict, what stands behind it, and where everything lies."""
    won = result.verdict is Verdict.WINNER
    console.print()
    console.print(Text(top.lead, style="bold green" if won else "bold"))
    for name, words in top.facts:
        print_item("-", f"{name}: {words}", console)
    for key, name in OTHER_GAINS.items():
        gain = getattr(result, key)
        if gain is not None:
            print_item("-", f"{name}: {gain}", console)
    for caution in top.cautions:
        print_item("!", caution, console)
    trials = ended(result.trials) or "none"
    console.print(Text(f"  trials: {trials}; {duration(result.spent_seconds)} spent"))
    is_here = StudyFolder(result.study).exists  # a result may be read after its study has moved
    if rows := prior_outcome(result.study) if is_here else ():
        console.print(Text(f"  prior: {prior_sentence(rows)}"), soft_wrap=True)
    if won:
        console.print(Text(f"  route: {result.route}"), soft_wrap=True)
    console.print(Text(f"  study: {result.study}"), soft_wrap=True)
    if won:
        console.print(Text(f"  to deploy: {result.study / 'winner'}"), soft_wrap=True)
