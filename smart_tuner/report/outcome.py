"""The verdict on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from smart_tuner.report.prior_found import prior_sentence
from smart_tuner.report.words import counted, duration
from smart_tuner.study.folder import StudyFolder
from smart_tuner.study.prior import prior_outcome
from smart_tuner.study.result import Verdict

if TYPE_CHECKING:
    from rich.console import Console

    from smart_tuner.study.result import TuneResult


def print_result(result: TuneResult, console: Console) -> None:
    """Print the verdict, what stands behind it, and where everything lies."""
    won = result.verdict is Verdict.WINNER
    console.print()
    console.print(Text(result.sentence, style="bold green" if won else "bold"))
    gains = Table.grid(padding=(0, 2))
    for name, gain in (
        ("engine, over the fastest default build", result.engine_gain if won else None),
        ("under sustained load", result.sustained_gain),
        ("over the bare default, base included", result.bare_gain),
    ):
        if gain is not None:
            gains.add_row("", Text(name), Text(str(gain)))
    if gains.row_count:
        console.print(gains)
    trials = counted(result.trials) or "none"
    console.print(Text(f"  trials: {trials}; {duration(result.spent_seconds)} spent"))
    is_here = StudyFolder(result.study).exists  # a result may be read after its study has moved
    if rows := prior_outcome(result.study) if is_here else ():
        console.print(Text(f"  prior: {prior_sentence(rows)}"), soft_wrap=True)
    console.print(Text(f"  study: {result.study}"), soft_wrap=True)
    if won:
        console.print(Text(f"  to deploy: {result.study / 'winner'}"), soft_wrap=True)
