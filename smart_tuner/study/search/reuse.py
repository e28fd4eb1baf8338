"""Trials of other studies about the same thing: what one of them measured is not measured again.

That is for comparing samplers, or for trying again with another seed or fewer knobs: a route that
two searches ask for is measured once, against the same baseline, so they share its noise as well.
"""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING

from smart_tuner.errors import StudyMismatch, UserInputError
from smart_tuner.model.store import workload_differences
from smart_tuner.study.files.folder import StudyFolder
from smart_tuner.study.setup.identity import differences, platform_identity
from smart_tuner.trial.evaluate import RESULT_FILE
from smart_tuner.trial.record import trial_from_json
from smart_tuner.trial.trial import TrialOutcome
from smart_tuner.validate.constraint import constraint_to_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from smart_tuner.study.session import Session
    from smart_tuner.trial.trial import Trial


def measured_trials(session: Session, folders: Iterable[Path]) -> tuple[Trial, ...]:
    """Read the trials of other studies that count in this one.

    Those that timed out are left out: another study may have more time for them.

    Args:
        session: This study.
        folders: Folders of the other studies.

    Raises:
        StudyMismatch: One of them is about something else; names what differs.
        UserInputError: A folder holds no study.
    """
    return tuple(
        trial
        for folder in folders
        for trial in _trials(_checked(session, folder.expanduser().absolute()))
        if trial.outcome is not TrialOutcome.TIMED_OUT and trial.route.settings
    )


def _checked(session: Session, root: Path) -> StudyFolder:
    folder = StudyFolder(root)
    if not folder.exists:
        msg = f"--reuse {root}: no study is there."
        raise UserInputError(msg)
    document = folder.read_settings()
    now = {**session.plan.identity, **platform_identity(session.platform)}
    found = list(differences(document["identity"], now))
    if document["accuracy"] != constraint_to_json(session.constraint):
        found.append("epsilon differs")
    found += workload_differences(folder.references, session.folder.references)
    if found:
        msg = (
            f"--reuse {root}: that study is about something else: {'; '.join(found)}. Leave it "
            "out, or tune with its settings."
        )
        raise StudyMismatch(msg)
    return folder


def _trials(folder: StudyFolder) -> Iterator[Trial]:
    """Every whole record; one that a kill left half written is skipped."""
    for number in folder.trial_numbers():
        with contextlib.suppress(OSError, ValueError, UserInputError):
            data = json.loads((folder.trial(number) / RESULT_FILE).read_bytes())
            yield trial_from_json(data)
