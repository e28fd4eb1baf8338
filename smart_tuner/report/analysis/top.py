"""What stands on top of every account of a study: of report.md and of the terminal's verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_tuner.report.analysis.brief import brief_of
from smart_tuner.report.analysis.effects import effects_of
from smart_tuner.report.analysis.failures import failures_of
from smart_tuner.report.analysis.headline import headline_of
from smart_tuner.report.analysis.history import history_of
from smart_tuner.report.analysis.outlook import outlook_of

if TYPE_CHECKING:
    from smart_tuner.report.reading import StudyView


@dataclass(frozen=True, slots=True)
class Top:
    """The same sentences that begin ``report.html``.

    Attributes:
        lead: The verdict in one sentence.
        facts: Short answers by question, in the order in which they are read.
        cautions: What weakens the claim, one sentence each.
    """

    lead: str
    facts: tuple[tuple[str, str], ...]
    cautions: tuple[str, ...]


def top_of(view: StudyView) -> Top:
    """Sum up a study in a few sentences."""
    headline = headline_of(view, outlook_of(history_of(view), effects_of(view)))
    brief = brief_of(view, headline, failures_of(view))
    return Top(brief.lead, brief.facts, headline.cautions)
