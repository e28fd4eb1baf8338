"""The verdict on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from smart_tuner.report.analysis.headline import GAIN_NAMES
from smart_tuner.report.prior_found import prior_sentence
from smart_tuner.report.words import duration, ended
from smart_tuner.study.folder import StudyFolder
from smart_tuner.study.prior import prior_outcome
from smart_tuner.study.result import Verdict

if TYPE_CHECKING:
    from rich.console import Console

    from smart_tuner.report.analysis.headline import Headline
    from smart_tuner.study.result import TuneResult


SAID = ("route_gain",)
UNSHIPPED = ("route_gain", "engine_gain")
"""Gains that the verdict itself has, and of a file that does not ship."""


def print_result(result: TuneResult, headline: Headline, console: Console) -> None:
    """Print the verdict, what stands behind it, and where everything lies."""
    won = result.verdict is Verdict.WINNER
    console.print()
    console.print(Text(headline.sentence, style="bold green" if won else "bold"))
    for caution in headline.cautions:
        console.print(Text(f"  ! {caution}"))
    if won:
        console.print(Text(f"  route: {result.route}"), soft_wrap=True)
    gains = Table.grid(padding=(0, 2))
    for key, name in GAIN_NAMES.items():
        gain = getattr(result, key)
        if gain is not None and key not in (SAID if won else UNSHIPPED):
            gains.add_row("", Text(name), Text(str(gain)))
    if gains.row_count:
        console.print(gains)
    trials = ended(result.trials) or "none"
    console.print(Text(f"  trials: {trials}; {duration(result.spent_seconds)} spent"))
    is_here = StudyFolder(result.study).exists  # a result may be read after its study has moved
    if rows := prior_outcome(result.study) if is_here else ():
        console.print(Text(f"  prior: {prior_sentence(rows)}"), soft_wrap=True)
    console.print(Text(f"  study: {result.study}"), soft_wrap=True)
    if won:
        console.print(Text(f"  to deploy: {result.study / 'winner'}"), soft_wrap=True)
