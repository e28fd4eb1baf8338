"""Logs and engines as artifacts of a study in a database, in a folder that all workers share.

Optuna's dashboard shows them when it is given the same folder:
``optuna-dashboard URL --artifact-dir STUDY/artifacts``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optuna.artifacts import FileSystemArtifactStore, upload_artifact

from smart_tuner.storages.gathering import one_append
from smart_tuner.trial.attempt import CHILD_LOG

if TYPE_CHECKING:
    from pathlib import Path

    import optuna

    from smart_tuner.study.files.folder import StudyFolder


def attach_log(study: optuna.Study, trial: optuna.Trial, folder: StudyFolder) -> None:
    """Attach what the compiler said to a trial in flight; a trial that others closed stays so.

    Raises:
        EnvironmentNotFit: It cannot be written.
    """
    log = folder.trial(trial.number) / CHILD_LOG
    if not log.is_file():
        return
    with one_append(study):
        if not study.get_trials(deepcopy=False)[trial.number].state.is_finished():
            _upload(folder, log, trial)


def attach_winner(study: optuna.Study, folder: StudyFolder) -> None:
    """Attach everything that ships to the study; each verdict adds its own."""
    for path in sorted(folder.winner.iterdir()):
        if path.is_file():
            _upload(folder, path, study)


def _upload(folder: StudyFolder, path: Path, owner: optuna.Trial | optuna.Study) -> None:
    folder.artifacts.mkdir(exist_ok=True)
    store = FileSystemArtifactStore(folder.artifacts)
    upload_artifact(artifact_store=store, file_path=str(path), study_or_trial=owner)
