"""One study folder as the dashboard shows it."""

from __future__ import annotations

import threading
from collections.abc import Callable, ItemsView, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from optuna.study import StudyDirection
from optuna.study._frozen import FrozenStudy
from typing_extensions import override

from smart_tuner.dashboard.artifacts import study_artifacts, trial_artifacts
from smart_tuner.dashboard.notes import study_note, trial_note
from smart_tuner.dashboard.plots import Plots
from smart_tuner.dashboard.trials import shown_trial
from smart_tuner.errors import SmartTunerError
from smart_tuner.report.status import is_running, study_status
from smart_tuner.report.words import budget_phrase, counted, duration
from smart_tuner.study.files.kept import kept_study
from smart_tuner.study.files.names import BASELINE_MS
from smart_tuner.study.proof.result import read_result

if TYPE_CHECKING:
    from pathlib import Path

    import optuna
    from optuna.trial import FrozenTrial

    from smart_tuner.report.status import StudyStatus
    from smart_tuner.study.files.folder import StudyFolder

TRIALS_A_STUDY = 10**6
"""Trials are numbered through over all studies that are shown: so many numbers for each."""

PREFIXES = ("dashboard:", "artifacts:", "study:")
METRIC_NAMES = "study:metric_names"
NOTE_VERSION = "dashboard:note_ver"
NOTE_TEXT = "dashboard:note_str:0"


class Lazy(Mapping[str, Any]):
    """Attributes that are put together when they are first looked at.

    The dashboard lists all studies each time that it looks at one, and asks each for attributes
    that no study of ours has.

    Args:
        make: Puts them together.
        prefixes: How their names begin; other names are known to be missing.
    """

    def __init__(self, make: Callable[[], dict[str, Any]], prefixes: tuple[str, ...]) -> None:
        self._make = make
        self._prefixes = prefixes
        self._made: dict[str, Any] | None = None

    @property
    def _all(self) -> dict[str, Any]:
        if self._made is None:
            self._made = self._make()
        return self._made

    def __getitem__(self, key: str) -> Any:
        if not key.startswith(self._prefixes):
            raise KeyError(key)
        return self._all[key]

    @override
    def items(self) -> ItemsView[str, Any]:
        """At the speed of a dict: the dashboard goes through all of them for each trial."""
        return self._all.items()

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)


@dataclass(slots=True)
class ShownStudy:
    """A study folder, opened when somebody looks at it and read again when it has grown.

    Attributes:
        study_id: Its number among the studies that are shown.
        name: Its name for people.
        folder: The folder.
    """

    study_id: int
    name: str
    folder: StudyFolder
    _plots: Plots = field(init=False)
    _opened: optuna.Study | None = None
    _place: int = 0
    _trials: dict[int, FrozenTrial] = field(default_factory=dict)
    _notes: dict[str, Any] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        self._plots = Plots(self.folder.root)

    def frozen(self) -> FrozenStudy:
        """The study's attributes; what costs time is read when it is looked at."""
        return FrozenStudy(
            study_name=self.name,
            direction=StudyDirection.MINIMIZE,
            user_attrs=self.user_attributes(),
            system_attrs=Lazy(self.system_attributes, PREFIXES),  # type: ignore[arg-type]
            study_id=self.study_id,
        )

    def trials(self) -> list[FrozenTrial]:
        """All trials, in order; finished ones are converted once."""
        with self._lock:
            study = self._study
            if study is None:
                return []
            baseline_ms = study.user_attrs.get(BASELINE_MS)
            return [self._shown(trial, baseline_ms) for trial in study.get_trials(deepcopy=False)]

    def _shown(self, trial: FrozenTrial, baseline_ms: float | None) -> FrozenTrial:
        number = trial.number
        if number in self._trials:
            return self._trials[number]
        trial_id = self.study_id * TRIALS_A_STUDY + number
        files = trial_artifacts(self.study_id, number, self.folder)
        shown = shown_trial(trial, trial_id, baseline_ms, files)
        note = trial_note(trial, self.folder, baseline_ms)
        self._notes |= {
            f"dashboard:{trial_id}:note_ver": 1,
            f"dashboard:{trial_id}:note_str:0": note,
        }
        if trial.state.is_finished():
            self._trials[number] = shown
        return shown

    @property
    def _study(self) -> optuna.Study | None:
        """The study, once anything was tried; opened anew if another one took its place."""
        place = _stamp(self.folder.journal)[-1]
        if place != self._place:
            self._opened, self._trials, self._notes = None, {}, {}
        if self._opened is None:
            try:
                self._opened = kept_study(self.folder)
            except SmartTunerError:
                return None  # its note says why
            self._place = place
        return self._opened

    @property
    def token(self) -> object:
        """Changes whenever what is shown may; without opening anything.

        Of a study in a database nobody can tell that nothing has changed.
        """
        if not self.folder.journal.is_file():
            return object()
        files = (self.folder.journal, self.folder.result_file, self.folder.root / "report.html")
        return (*map(_stamp, files), is_running(self.folder), self._plots.is_due)

    def user_attributes(self) -> dict[str, Any]:
        """What the list of studies says of it; the journal stays closed."""
        try:
            settings = self.folder.read_settings()["settings"]
            finished = self.folder.result_file.is_file()
            verdict = read_result(self.folder.result_file).sentence if finished else ""
        except SmartTunerError as error:
            return {"problem": str(error)}
        state = "running" if is_running(self.folder) else "finished" if finished else "stopped"
        facts = {
            "state": state,
            "verdict": verdict,
            "model": str(settings.get("model", "")),
            "backend": str(settings.get("backend", "")),
            "budget": duration(float(settings.get("budget", 0.0))),
            "folder": str(self.folder.root),
        }
        return {name: value for name, value in facts.items() if value}

    def system_attributes(self) -> dict[str, Any]:
        """Notes, files and figures, where the dashboard looks for them."""
        with self._lock:
            trials = self.trials()
            finished = sum(trial.state.is_finished() for trial in trials)
            state = (finished, _stamp(self.folder.result_file))
            return {
                METRIC_NAMES: ["latency in ms"],
                NOTE_VERSION: 1,
                NOTE_TEXT: self._note(),
                **self._notes,
                **study_artifacts(self.study_id, self.folder),
                **(self._plots.attributes(state, self._study) if finished else {}),
            }

    def _note(self) -> str:
        try:
            status = study_status(self.folder, self._study)
        except SmartTunerError as error:
            return study_note(str(error), {})
        best = f"Best so far, not yet confirmed: {status.best_gain:.3f}x."
        return study_note(status.verdict or best, _facts(status))


def _stamp(path: Path) -> tuple[int, int, int]:
    """Size, time of change and place of a file; zeros where there is none."""
    try:
        found = path.stat()
    except OSError:
        return 0, 0, 0
    return found.st_size, found.st_mtime_ns, found.st_ino


def _facts(status: StudyStatus) -> dict[str, str]:
    baseline = "" if status.baseline_ms is None else f"{status.baseline_ms:.4g} ms"
    return {
        "state": f"{status.state}, {status.phase}" if status.phase else status.state,
        "model": status.model,
        "best route": status.best_route,
        "trials": counted(status.trials),
        "baseline": baseline,
        "budget": budget_phrase(status.spent_seconds, status.budget_seconds),
        "folder": status.study,
    }
