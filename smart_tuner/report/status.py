"""How far a study is."""

from __future__ import annotations

import fcntl
import math
import os
import shlex
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from smart_tuner.errors import EnvironmentNotFit
from smart_tuner.report.known import Known, best_words, sparkline
from smart_tuner.report.now import InFlight, in_flight, phase_of, seconds_since_last
from smart_tuner.report.words import budget_phrase, clock, counted, percent
from smart_tuner.storages.history import best_feasible, finished_trials, kept_losses, outcome_key
from smart_tuner.study.files.kept import kept_study
from smart_tuner.study.files.names import BASELINE_MS, SPENT
from smart_tuner.study.proof.result import read_result
from smart_tuner.study.setup.settings import command_line
from smart_tuner.validate.pairs import deciding

if TYPE_CHECKING:
    import optuna
    from rich.console import Console

    from smart_tuner.study.files.folder import StudyFolder

SPARKS = 16
"""Characters of the curve behind the best gain: its line fits into 80 columns."""


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
        phase: What a running study is at: ``preparing``, ``searching``, ``confirming``.
        best_trial: Its number; ``None`` if none is faster than the default.
        best_half_width: Half of the 95 % interval on ln(gain) of that trial, if known.
        noise: Half of the 95 % interval on ln(gain) of a typical trial.
        incumbents: The best gain after each trial.
        in_flight: Trials that are being tried, or were when the study was killed.
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
    phase: str = ""
    best_trial: int | None = None
    best_half_width: float | None = None
    noise: float | None = None
    incumbents: tuple[float, ...] = ()
    in_flight: tuple[InFlight, ...] = ()
    accuracy: str = ""


def study_status(folder: StudyFolder, opened: optuna.Study | None = None) -> StudyStatus:
    """Read a study's status; nothing is changed.

    Args:
        folder: The study folder.
        opened: The study in it, where it is open already.

    Raises:
        UserInputError: There is no study, or it is damaged.
    """
    document = folder.read_settings()
    settings: dict[str, Any] = document.get("settings", {})
    model = str(settings.get("model", ""))
    study = opened or _opened(folder)
    attributes = study.user_attrs if study else {}
    records = finished_trials(study) if study else ()
    baseline_ms: float | None = attributes.get(BASELINE_MS)
    known = Known.of(records, baseline_ms)
    best = best_feasible(records) if known.best else None
    verdict = read_result(folder.result_file).sentence if folder.result_file.is_file() else ""
    counts = Counter(outcome_key(record) for record in records)
    runs = is_running(folder)
    spent = float(attributes.get(SPENT, 0.0))
    return StudyStatus(
        study=str(folder.root),
        model=model,
        state="running" if runs else "finished" if verdict else "stopped",
        trials=dict(counts),
        spent_seconds=spent + (seconds_since_last(study) if runs and study else 0.0),
        budget_seconds=float(settings.get("budget", 0.0)),
        baseline_ms=baseline_ms,
        best_gain=known.best.gain if known.best else 1.0,
        best_route=str(known.best.route) if known.best else "",
        accuracy=str(deciding(kept_losses(best)) or "") if best else "",
        verdict="" if runs else verdict,
        command=shlex.join(command_line(settings, folder.root)),
        phase=phase_of(study, folder) if runs else "",
        best_trial=known.best.number if known.best else None,
        best_half_width=known.best.half_width if known.best else None,
        noise=known.noise,
        incumbents=known.incumbents,
        in_flight=in_flight(study, records) if study else (),
    )


def _opened(folder: StudyFolder) -> optuna.Study | None:
    return kept_study(folder)


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
    """Print a status for people; routes stand in lines of their own, to be copied."""
    state = f"{status.state}, {status.phase}" if status.phase else status.state
    lines = [
        f"{status.model}: {state}",
        f"  trials: {counted(status.trials) or 'none yet'}",
        f"  budget: {budget_phrase(status.spent_seconds, status.budget_seconds)}",
    ]
    if status.baseline_ms is not None:
        lines.append(f"  baseline: {status.baseline_ms:.4g} ms")
    if status.noise is not None:
        lines.append(f"  noise: +-{percent(status.noise)} on a trial's gain")
    if status.verdict:
        lines.append(f"  verdict: {status.verdict}")
    elif status.baseline_ms is not None:
        lines += _best_lines(status, ascii_only=console.options.ascii_only)
    for trial in status.in_flight if status.state == "running" else ():
        since = clock(trial.seconds, math.inf)
        lines += [f"  now: trial {trial.number} ({since}), {trial.why}", _indented(trial.route)]
    if status.state == "stopped":
        lines.append(f"  to continue: {status.command}")
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _best_lines(status: StudyStatus, *, ascii_only: bool) -> list[str]:
    if status.best_trial is None:
        return ["  best so far: the default"]
    sparks = sparkline(status.incumbents, SPARKS, ascii_only=ascii_only)
    best = best_words(status.best_trial, status.best_gain, status.best_half_width)
    return [
        f"  best so far, not yet confirmed: {best}  {sparks}".rstrip(),
        _indented(status.best_route),
        *([f"  its largest loss: {status.accuracy}"] if status.accuracy else []),
    ]


def _indented(route: str) -> str:
    return f"    {route or '(default)'}"
