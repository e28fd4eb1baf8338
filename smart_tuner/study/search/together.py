"""The search as one worker among several, and the workers that a session starts itself."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from optuna.exceptions import StorageInternalError

from smart_tuner.devices.shares import CREW, settled
from smart_tuner.errors import SmartTunerError
from smart_tuner.storages.leases import Lease
from smart_tuner.study.progress.crew import STOP
from smart_tuner.study.progress.events import Note
from smart_tuner.study.search.baseline import frozen_baseline_ms
from smart_tuner.study.search.search import Search

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import optuna
    from typing_extensions import Self

    from smart_tuner.devices.shares import Place
    from smart_tuner.study.files.folder import StudyFolder
    from smart_tuner.study.progress.budget import Budget
    from smart_tuner.study.progress.crew import Crew
    from smart_tuner.study.progress.events import Listener
    from smart_tuner.study.session import Session
    from smart_tuner.trial.trial import Trial

FAREWELL_SECONDS = 20.0
"""How long a worker that was told to end may take before it is killed."""

OVER, INTERRUPTED = "the search is over", "the leading session was interrupted"


def make_search(session: Session, study: optuna.Study, crew: Crew, listener: Listener) -> Search:
    """The search of a session, before it runs."""
    return Search(
        study=study,
        folder=session.folder,
        evaluator=session.evaluator,
        choices=session.space.choices,
        weights=session.weights,
        baseline_ms=frozen_baseline_ms(study, session.baseline.median_ms, session.weights),
        default=default_trial(session),
        missing=session.missing,
        trial_seconds=session.plan.settings.trial_timeout,
        listener=listener,
        min_gain=session.plan.settings.min_gain,
        rule=session.plan.goal.search_rule,
        crew=crew,
        attaches=session.plan.settings.storage is not None,
    )


def default_trial(session: Session) -> Trial:
    """The default route as the search tells it: the baseline itself, at no cost."""
    return dataclasses.replace(session.baseline.trial, comparisons=(), seconds={"total": 0.0})


def search_together(search: Search, budget: Budget, places: Sequence[Place]) -> None:
    """Lead a search to its end, with workers of our own where there are places for them.

    Others may join and leave at any time. When this returns nobody tries anything any more.

    Args:
        search: The search, recovered.
        budget: What may be spent.
        places: Where workers of our own run beside this process.
    """
    study, crew = search.study, search.crew
    if study.user_attrs.get(STOP):
        study.set_user_attr(STOP, "")
    with Lease(study, crew.name), LocalWorkers(search.folder, places, search.listener) as local:
        crew.on_look = local.look
        crew.sweep(study, search.folder.workers)
        try:
            search.run(budget)
        except BaseException:
            with contextlib.suppress(SmartTunerError, StorageInternalError, OSError):
                study.set_user_attr(STOP, INTERRUPTED)
            raise
        study.set_user_attr(STOP, OVER)
        search.await_others(budget)
    crew.sweep(study, search.folder.workers)


@dataclass(slots=True)
class LocalWorkers:
    """Workers on this machine that live no longer than the session that started them.

    Attributes:
        folder: The study folder.
        places: One for each worker.
        listener: Hears of workers that ended before their time.
    """

    folder: StudyFolder
    places: Sequence[Place]
    listener: Listener
    _processes: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)

    def __enter__(self) -> Self:
        try:
            for number, place in enumerate(self.places, start=1):
                self._processes[number] = _start(self.folder, place, self.log(number))
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, kind: object, *exc: object) -> None:
        if kind is None:
            for process in self._processes.values():
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(FAREWELL_SECONDS)
            self.look()
        self._end()

    def log(self, number: int) -> Path:
        """What a worker says."""
        return self.folder.workers / f"local-{number}.log"

    def look(self) -> None:
        """Say so when a worker has ended because something is wrong."""
        for number, process in list(self._processes.items()):
            if process.poll():
                del self._processes[number]
                lines = self.log(number).read_text(encoding="utf-8", errors="replace").splitlines()
                last = lines[-1] if lines else f"exit code {process.returncode}"
                self.listener(Note(f"worker {number} ended: {last}"))

    def _end(self) -> None:
        """Ask all that still run to end, and see to it that they do."""
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(FAREWELL_SECONDS)
            process.kill()
            process.wait()
        self._processes.clear()


def _start(folder: StudyFolder, place: Place, log: Path) -> subprocess.Popen[bytes]:
    folder.workers.mkdir(exist_ok=True)
    with settled(place), log.open("wb") as output:
        return subprocess.Popen(  # noqa: S603, our own module, no shell
            [sys.executable, "-m", "smart_tuner", "worker", str(folder.root)],
            env={**os.environ, CREW: str(os.getpid()), "COLUMNS": "200"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
