"""Everything that reports are made of, in one frozen object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_tuner.report.analysis.brief import brief_of
from smart_tuner.report.analysis.conditions import machine_of
from smart_tuner.report.analysis.confirmation import confirmation_of
from smart_tuner.report.analysis.effects import effects_of
from smart_tuner.report.analysis.failures import failures_of
from smart_tuner.report.analysis.headline import headline_of
from smart_tuner.report.analysis.history import history_of
from smart_tuner.report.analysis.outlook import outlook_of
from smart_tuner.report.analysis.phases import phases_of
from smart_tuner.report.analysis.prior import prior_of
from smart_tuner.report.analysis.reproduction import reproduction_of
from smart_tuner.report.analysis.tradeoff import sweep_of, tradeoff_of

if TYPE_CHECKING:
    from smart_tuner.report.analysis.brief import Brief
    from smart_tuner.report.analysis.conditions import MachineState
    from smart_tuner.report.analysis.confirmation import Confirmation
    from smart_tuner.report.analysis.effects import Effects
    from smart_tuner.report.analysis.failures import FailureMap
    from smart_tuner.report.analysis.headline import Headline
    from smart_tuner.report.analysis.history import History
    from smart_tuner.report.analysis.outlook import Outlook
    from smart_tuner.report.analysis.phases import PhaseTimes
    from smart_tuner.report.analysis.prior import PriorReview
    from smart_tuner.report.analysis.reproduction import Reproduction
    from smart_tuner.report.analysis.tradeoff import SweepStep, Tradeoff
    from smart_tuner.report.reading import StudyView


@dataclass(frozen=True, slots=True)
class StudySummary:
    """What a study tells; each part is described where it is made."""

    brief: Brief
    headline: Headline
    outlook: Outlook
    history: History
    tradeoff: Tradeoff
    sweep: tuple[SweepStep, ...]
    effects: Effects
    failures: FailureMap
    confirmation: Confirmation
    machine: MachineState
    phases: PhaseTimes
    prior: PriorReview
    reproduction: Reproduction


def summarize(view: StudyView) -> StudySummary:
    """Compute every part."""
    history, effects, tradeoff = history_of(view), effects_of(view), tradeoff_of(view)
    outlook = outlook_of(history, effects)
    headline, failures = headline_of(view, outlook), failures_of(view)
    return StudySummary(
        brief=brief_of(view, headline, failures),
        headline=headline,
        outlook=outlook,
        history=history,
        tradeoff=tradeoff,
        sweep=sweep_of(tradeoff),
        effects=effects,
        failures=failures,
        confirmation=confirmation_of(view),
        machine=machine_of(view),
        phases=phases_of(view),
        prior=prior_of(view),
        reproduction=reproduction_of(view),
    )
