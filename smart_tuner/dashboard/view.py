"""Study folders as one Optuna storage that only reads."""

from __future__ import annotations

import copy
import threading
from typing import TYPE_CHECKING, Any

from optuna.storages import BaseStorage
from optuna.trial import TrialState
from typing_extensions import override

from smart_tuner.dashboard.found import study_folders, study_name
from smart_tuner.dashboard.refusal import refuse
from smart_tuner.dashboard.shown import TRIALS_A_STUDY, ShownStudy
from smart_tuner.dashboard.trials import best_trial, outcome_of

if TYPE_CHECKING:
    from collections.abc import Container, Sequence
    from pathlib import Path

    from optuna.distributions import BaseDistribution
    from optuna.study import StudyDirection
    from optuna.study._frozen import FrozenStudy
    from optuna.trial import FrozenTrial

    from smart_tuner.study.files.folder import StudyFolder


class StudiesView(BaseStorage):
    """The studies of a folder, for looking at.

    Whatever writes is refused; studies that appear later are found when the list is asked for,
    and those that vanish are left out of it.

    Args:
        root: A study folder, or a folder above some.
        shared: Another view of it, whose studies are shown again without opening them.
        feasible_only: Leave out trials that broke a constraint.
    """

    def __init__(
        self, root: Path, shared: StudiesView | None = None, *, feasible_only: bool = False
    ) -> None:
        self.root = root
        self._studies: dict[Path, ShownStudy] = {}
        self._lock = threading.Lock()
        self._shared = shared
        self._feasible_only = feasible_only

    def folder_of(self, study_id: int) -> StudyFolder:
        """The folder of a study.

        Raises:
            KeyError: There is no such study.
        """
        return self._shown(study_id).folder

    def token(self, study_id: int) -> object:
        """What changes whenever the study may look different.

        Raises:
            KeyError: There is no such study.
        """
        return self._shown(study_id).token

    def outcomes(self, study_id: int) -> dict[int, str]:
        """Outcome in words by trial number, of finished trials that are not feasible.

        Raises:
            KeyError: There is no such study.
        """
        trials = self._shown(study_id).trials()
        words = ((trial.number, outcome_of(trial)) for trial in trials)
        return {number: word for number, word in words if word}

    def shown(self) -> list[ShownStudy]:
        """The studies that are there now."""
        if self._shared is not None:
            return self._shared.shown()
        with self._lock:
            folders = study_folders(self.root)
            for folder in folders:
                if folder.root not in self._studies:
                    name = study_name(folder, self.root)
                    taken = {shown.name for shown in self._studies.values()}
                    name = name if name not in taken else f"{name} ({folder.root})"
                    number = len(self._studies)
                    self._studies[folder.root] = ShownStudy(number, name, folder)
            return [self._studies[folder.root] for folder in folders]

    def _shown(self, study_id: int) -> ShownStudy:
        for shown in tuple(self._studies.values()) or self.shown():
            if shown.study_id == study_id:
                return shown
        raise KeyError(study_id)

    @override
    def get_all_studies(self) -> list[FrozenStudy]:
        return [shown.frozen() for shown in self.shown()]

    @override
    def get_study_id_from_name(self, study_name: str) -> int:
        for shown in self.shown():
            if shown.name == study_name:
                return shown.study_id
        raise KeyError(study_name)

    @override
    def get_study_name_from_id(self, study_id: int) -> str:
        return self._shown(study_id).name

    @override
    def get_study_directions(self, study_id: int) -> list[StudyDirection]:
        return list(self._shown(study_id).frozen().directions)

    @override
    def get_study_user_attrs(self, study_id: int) -> dict[str, Any]:
        return self._shown(study_id).user_attributes()

    @override
    def get_study_system_attrs(self, study_id: int) -> dict[str, Any]:
        return self._shown(study_id).system_attributes()

    @override
    def get_trial(self, trial_id: int) -> FrozenTrial:
        study_id, number = divmod(trial_id, TRIALS_A_STUDY)
        trials = self._shown(study_id).trials()
        if number >= len(trials):
            raise KeyError(trial_id)
        return trials[number]

    @override
    def get_all_trials(
        self,
        study_id: int,
        deepcopy: bool = True,
        states: Container[TrialState] | None = None,
    ) -> list[FrozenTrial]:
        trials = self._shown(study_id).trials()
        if self._feasible_only:
            trials = [trial for trial in trials if not outcome_of(trial)]
        kept = [trial for trial in trials if states is None or trial.state in states]
        return copy.deepcopy(kept) if deepcopy else kept

    @override
    def get_best_trial(self, study_id: int) -> FrozenTrial:
        complete = self.get_all_trials(study_id, deepcopy=False, states=(TrialState.COMPLETE,))
        best = best_trial(complete)
        if best is None:
            msg = "No trial is complete yet."
            raise ValueError(msg)
        return best

    @override
    def create_new_study(
        self, directions: Sequence[StudyDirection], study_name: str | None = None
    ) -> int:
        refuse()

    @override
    def delete_study(self, study_id: int) -> None:
        refuse()

    @override
    def set_study_user_attr(self, study_id: int, key: str, value: Any) -> None:
        refuse()

    @override
    def set_study_system_attr(self, study_id: int, key: str, value: Any) -> None:
        refuse()

    @override
    def create_new_trial(self, study_id: int, template_trial: FrozenTrial | None = None) -> int:
        refuse()

    @override
    def set_trial_param(
        self,
        trial_id: int,
        param_name: str,
        param_value_internal: float,
        distribution: BaseDistribution,
    ) -> None:
        refuse()

    @override
    def set_trial_state_values(
        self, trial_id: int, state: TrialState, values: Sequence[float] | None = None
    ) -> bool:
        refuse()

    @override
    def set_trial_intermediate_value(
        self, trial_id: int, step: int, intermediate_value: float
    ) -> None:
        refuse()

    @override
    def set_trial_user_attr(self, trial_id: int, key: str, value: Any) -> None:
        refuse()

    @override
    def set_trial_system_attr(self, trial_id: int, key: str, value: Any) -> None:
        refuse()
