"""How far a study is."""

from __future__ import annotations

import fcntl
import os
import shlex
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from smart_tuner.errors import EnvironmentNotFit
from smart_tuner.report.words import budget_phrase, counted
from smart_tuner.storages.history import best_feasible, finished_trials, kept_losses, outcome_key
from smart_tuner.storages.journal import open_study
from smart_tuner.study.names import BASELINE_MS, SPENT, STUDY_NAME
from smart_tuner.study.result import read_result
from smart_tuner.study.settings import command_line
from smart_tuner.validate.pairs import deciding

if TYPE_CHECKING:
    from rich.console import Console

    from smart_tuner.storages.history import TrialRecord
    from smart_tuner.study.folder import StudyFolder


@dataclass(frozen=True, slots=True)
class StudyStatus:
    """A study at a glance.

    Attributes:
        study: The folder.
        model: The model's path as it was given.
        state: ``running``, ``stopped`` or ``finished``.
        trials: Finished trials by outcome.
        spent_seconds: Budget spent, up to the last finished trial.
        budget_seconds: Budget in all.
        baseline_ms: Latency of the baseline; ``None`` before the search.
        best_gain: Gain of the best feasible trial, not yet confirmed; 1.0 if none is faster.
        best_route: Its route; empty for the default.
        verdict: The verdict in one sentence; empty before there is one.
        command: Command that continues the study.
        accuracy: Largest loss of the best route, its reference pair by name; empty for the default.
    """

    study: str
    model: str
    state: str
    trials: dict[str, int]
    spent_seconds: float
    budget_seconds: float
    baseline_ms: float | None
    best_gain: float
    best_route: str
    verdict: str
    command: str
    accuracy: str = ""


def study_status(folder: StudyFolder) -> StudyStatus:
    """Read a study's status; nothing is changed.

    Raises:
        UserInputError: There is no study, or it is damaged.
    """
    document = folder.read_settings()
    settings: dict[str, Any] = document.get("settings", {})
    model = str(settings.get("model", ""))
    attributes, records = _journal(folder)
    baseline_ms: float | None = attributes.get(BASELINE_MS)
    best = best_feasible(records)
    gain = baseline_ms / best.value_ms if best and best.value_ms and baseline_ms else 1.0
    faster = best if gain > 1 else None
    verdict = read_result(folder.result_file).sentence if folder.result_file.is_file() else ""
    counts = Counter(outcome_key(record) for record in records)
    return StudyStatus(
        study=str(folder.root),
        model=model,
        state="running" if is_running(folder) else "finished" if verdict else "stopped",
        trials=dict(counts),
        spent_seconds=float(attributes.get(SPENT, 0.0)),
        budget_seconds=float(settings.get("budget", 0.0)),
        baseline_ms=baseline_ms,
        best_gain=max(gain, 1.0),
        best_route=str(faster.route) if faster else "",
        accuracy=str(deciding(kept_losses(faster)) or "") if faster else "",
        verdict=verdict,
        command=shlex.join(command_line(settings, folder.root)),
    )


def _journal(folder: StudyFolder) -> tuple[dict[str, Any], tuple[TrialRecord, ...]]:
    try:
        is_empty = folder.journal.stat().st_size == 0
    except OSError:
        is_empty = True
    if is_empty:
        return {}, ()
    study = open_study(folder.journal, STUDY_NAME, None, create=False)
    return study.user_attrs, finished_trials(study)


def is_running(folder: StudyFolder) -> bool:
    """Whether a process holds the study; asks without writing, and without being in its way."""
    try:
        descriptor = os.open(folder.root / ".lock", os.O_RDONLY)
    except FileNotFoundError:
        return False
    except OSError as error:
        msg = f"Cannot look at {folder.root}: {error.strerror}; allow reading it."
        raise EnvironmentNotFit(msg) from None
    try:
        # Shared, so that two that ask do not take each other for the study.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def print_status(status: StudyStatus, console: Console) -> None:
    """Print a status for people."""
    lines = [
        f"{status.model}: {status.state}",
        f"  trials: {counted(status.trials) or 'none yet'}",
        f"  budget: {budget_phrase(status.spent_seconds, status.budget_seconds)}",
    ]
    if status.baseline_ms is not None:
        lines.append(f"  baseline: {status.baseline_ms:.4g} ms")
    if status.verdict:
        lines.append(f"  verdict: {status.verdict}")
    elif status.baseline_ms is not None:
        best = status.best_route or "(default)"
        lines.append(f"  best so far, not yet confirmed: {status.best_gain:.3f}x  {best}")
        lines += [f"  its largest loss: {status.accuracy}"] * bool(status.accuracy)
    if status.state == "stopped":
        lines.append(f"  to continue: {status.command}")
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
