"""A study as reports see it: everything that the folder tells, whatever state it is in."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from optuna.trial import TrialState

from smart_tuner.errors import SmartTunerError
from smart_tuner.model.store import FILE_NAME
from smart_tuner.report.jsonl import read_trials
from smart_tuner.report.status import is_running
from smart_tuner.storages.history import finished_trials
from smart_tuner.study.files.folder import StudyFolder
from smart_tuner.study.files.kept import kept_study
from smart_tuner.study.files.names import BASELINE_MS, SPENT
from smart_tuner.study.files.prior import PRIOR, prior_outcome
from smart_tuner.study.files.runs import FreshRun, device_figures, read_runs
from smart_tuner.study.proof.manifest import MANIFEST
from smart_tuner.study.proof.result import TuneResult, Verdict, read_result
from smart_tuner.study.proof.winner import read_manifest
from smart_tuner.study.search.noise import baseline_noise
from smart_tuner.trial.evaluate import RESULT_FILE
from smart_tuner.trial.record import trial_from_json

if TYPE_CHECKING:
    from pathlib import Path

    import optuna

    from smart_tuner.priors.found import SaidAndFound
    from smart_tuner.storages.history import TrialRecord

T = TypeVar("T")
Document = Mapping[str, Any]

RUNNING, STOPPED, FINISHED = "running", "stopped", "finished"


@dataclass(frozen=True, slots=True)
class Conditions:
    """What a trial was measured under.

    Attributes:
        baseline_ms: Median latency of the baseline's blocks, in milliseconds, first point.
        device: Figures of the device, by name with unit; empty if it tells none.
        notes: What disturbed the measurement.
    """

    baseline_ms: float
    device: Mapping[str, float]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StudyView:
    """A study, read once and never written to.

    Attributes:
        root: The study folder.
        state: ``running``, ``stopped`` or ``finished``.
        document: ``study.toml``.
        platform: ``platform.json``; empty if it is missing.
        result: The verdict; ``None`` before there is one.
        manifest: Of the winner, which may itself not be kept; empty without one.
        records: Finished trials, by number.
        in_flight: Trials that are being tried, or were when the study was killed.
        interrupted: Trials closed without an outcome.
        baseline_ms: The frozen baseline latency; ``None`` before the search.
        noise: ``(log ratio, half width)`` of the baseline against itself, one a session.
        spent_seconds: Budget spent.
        runs: Fresh builds of finalists.
        conditions: What trials were measured under, by number, as far as they were.
        points: Shapes of the inputs by workload point, in words; empty if they are not kept.
        prior: What the study's prior said of each value and what was found; empty without one.
        problems: What could not be read, one sentence each.
        figures_only: Only figures are left of it: neither its journal nor what it shipped.
    """

    root: Path
    state: str
    document: Document
    platform: Document = field(default_factory=dict)
    result: TuneResult | None = None
    manifest: Document = field(default_factory=dict)
    records: tuple[TrialRecord, ...] = ()
    in_flight: int = 0
    interrupted: int = 0
    baseline_ms: float | None = None
    noise: tuple[tuple[float, float], ...] = ()
    spent_seconds: float = 0.0
    runs: tuple[FreshRun, ...] = ()
    conditions: Mapping[int, Conditions] = field(default_factory=dict)
    points: Mapping[str, str] = field(default_factory=dict)
    prior: tuple[SaidAndFound, ...] = ()
    problems: tuple[str, ...] = ()
    figures_only: bool = False

    @property
    def settings(self) -> Document:
        """The settings of the latest session."""
        settings: Document = self.document["settings"]
        return settings

    @property
    def choices(self) -> Mapping[str, tuple[str, ...]]:
        """Choices by knob name, the default first."""
        space: Mapping[str, list[str]] = self.document["space"]
        return {name: tuple(values) for name, values in space.items()}

    @property
    def budget_seconds(self) -> float:
        """The whole budget, in seconds."""
        return float(self.settings.get("budget", 0.0))

    @property
    def min_gain(self) -> float:
        """The smallest gain that ships."""
        return float(self.settings.get("min_gain", 1.01))

    @property
    def epsilon(self) -> float:
        """The epsilon of outputs that have none of their own."""
        return float(str(self.document["accuracy"].get("epsilon", "inf")))

    @property
    def metric(self) -> str:
        """The accuracy metric."""
        return str(self.document["accuracy"].get("metric", ""))

    def gain(self, record: TrialRecord) -> float | None:
        """Baseline over candidate latency of a trial; ``None`` if it has no latency."""
        if not record.value_ms or not self.baseline_ms:
            return None
        return self.baseline_ms / record.value_ms


def read_study(root: Path, opened: optuna.Study | None = None) -> StudyView:
    """Read a study; nothing is changed, and what is damaged or missing is said, not raised.

    Args:
        root: The study folder.
        opened: The study in it, where it is open already.

    Raises:
        UserInputError: There is no study, or its settings are damaged or of a newer version.
    """
    folder = StudyFolder(root)
    document = folder.read_settings()
    problems: list[str] = []
    running = is_running(folder)
    result = _tried(lambda: _result(folder), problems)
    won = result is not None and result.verdict is Verdict.WINNER
    study = opened or _tried(lambda: _opened(folder), problems)
    figures_only = study is None and not problems and result is not None and is_kept(folder)
    manifest: Document = {}
    if won and figures_only:
        manifest = _tried(lambda: _kept_manifest(folder), problems) or {}
    elif won:
        manifest = _tried(lambda: read_manifest(folder.winner), problems) or {}
    journal: dict[str, Any] = _journal(study, folder) if study else {}
    if figures_only and result is not None:
        kept = _tried(lambda: read_trials(folder.trials_file), problems) or ()
        journal = _figures(kept, result)
    began_with_prior = PRIOR in document and journal.get("baseline_ms") is not None
    return StudyView(
        root=root,
        state=RUNNING if running else FINISHED if result else STOPPED,
        document=document,
        platform=_tried(lambda: _json(folder.platform_file), problems) or {},
        result=result,
        manifest=manifest,
        runs=_tried(lambda: read_runs(folder), problems) or (),
        points=_points(folder),
        **journal,
        prior=(_tried(lambda: prior_outcome(root), problems) or ()) if began_with_prior else (),
        problems=tuple(problems),
        figures_only=figures_only,
    )


def is_kept(folder: StudyFolder) -> bool:
    """Whether this is what is kept of a finished study: its trials as lines, no winner."""
    return folder.trials_file.is_file() and not folder.winner.exists()


def _kept_manifest(folder: StudyFolder) -> Document:
    """What is kept of the winner's manifest; nothing without one.

    Raises:
        ValueError: It is none.
    """
    path = folder.root / MANIFEST
    if not path.is_file():
        return {}
    manifest = _json(path)
    keys = {"point", "pair", "output", "metric", "loss", "epsilon"}
    try:
        is_whole = all(keys <= set(row) for row in manifest["losses"])
    except (LookupError, TypeError):
        is_whole = False
    if not is_whole:
        msg = f"{path} is no manifest"
        raise ValueError(msg)
    return manifest


def _figures(records: tuple[TrialRecord, ...], result: TuneResult) -> dict[str, Any]:
    """What the journal would tell, from the lines that are kept of it."""
    default = (record.value_ms for record in records if not len(record.route))
    return {
        "records": records,
        "baseline_ms": next(default, None),
        "spent_seconds": result.spent_seconds,
    }


def _tried(read: Callable[[], T], problems: list[str]) -> T | None:
    """What ``read`` returns; a study that is damaged in one place is read in all others."""
    try:
        return read()
    except SmartTunerError as error:
        problems.append(str(error))
    except (OSError, ValueError) as error:
        problems.append(f"A file of the study cannot be read: {error}.")
    return None


def _result(folder: StudyFolder) -> TuneResult | None:
    return read_result(folder.result_file) if folder.result_file.is_file() else None


def _opened(folder: StudyFolder) -> optuna.Study | None:
    return kept_study(folder)


def _json(path: Path) -> Document:
    data: Document = json.loads(path.read_text(encoding="utf-8"))
    return data


def _points(folder: StudyFolder) -> dict[str, str]:
    """Shapes by workload point, as far as the prepared workload is there to be read."""
    try:
        points = _json(folder.references / FILE_NAME)["points"]
        return {
            str(point["name"]): ", ".join(
                f"{name} {'x'.join(map(str, shape)) or 'scalar'}"
                for name, shape in point["shapes"].items()
            )
            for point in points
        }
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return {}


def _journal(study: optuna.Study, folder: StudyFolder) -> dict[str, Any]:
    """What the journal tells."""
    records = finished_trials(study)
    states = [trial.state for trial in study.get_trials(deepcopy=False)]
    read = ((record.number, _conditions(folder, record)) for record in records)
    return {
        "records": records,
        "in_flight": states.count(TrialState.RUNNING),
        "interrupted": states.count(TrialState.FAIL),
        "baseline_ms": study.user_attrs.get(BASELINE_MS),
        "noise": tuple((ratio, width) for ratio, width in baseline_noise(study)),
        "spent_seconds": float(study.user_attrs.get(SPENT, 0.0)),
        "conditions": {number: seen for number, seen in read if seen},
    }


def _conditions(folder: StudyFolder, record: TrialRecord) -> Conditions | None:
    """What the trial's own file tells; ``None`` if it was not measured, or the file is gone."""
    if record.value_ms is None or record.unchanged:
        return None
    path = folder.trial(record.number) / RESULT_FILE
    try:
        comparisons = trial_from_json(json.loads(path.read_bytes())).comparisons
    except (OSError, ValueError, SmartTunerError):
        return None
    if not comparisons:
        return None
    notes = tuple(note for comparison in comparisons for note in comparison.notes)
    return Conditions(comparisons[0].baseline.median_ms, device_figures(comparisons), notes)
