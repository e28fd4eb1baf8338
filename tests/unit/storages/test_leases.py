from pathlib import Path
from typing import Any

import optuna
import pytest

from smart_tuner.storages import leases
from smart_tuner.storages.journal import open_study
from smart_tuner.storages.leases import LEASE_SECONDS, PREFIX, Lease, Observer


class Clock:
    """A monotonic clock that a test moves on."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def elsewhere(beat: int, **more: Any) -> dict[str, Any]:
    """What a worker of another machine wrote."""
    return {PREFIX + "w": {"beat": beat, "machine": "another", "pid": 1, "start": "1", **more}}


def test_a_worker_elsewhere_is_gone_when_its_sign_no_longer_changes(clock: Clock) -> None:
    observer = Observer(clock)
    assert not observer.is_gone("w", elsewhere(0)), "the first look begins the wait"
    clock.now += LEASE_SECONDS - 1
    assert not observer.is_gone("w", elsewhere(0))
    clock.now += 2
    assert observer.is_gone("w", elsewhere(0))
    assert not observer.is_gone("w", elsewhere(1)), "it was only slow"


def test_who_left_or_never_was_is_gone_at_once(clock: Clock) -> None:
    observer = Observer(clock)
    assert observer.is_gone("w", elsewhere(5, left=True))
    assert observer.is_gone("w", {})
    assert observer.is_gone("w", {PREFIX + "w": "damaged"})


def test_a_lease_is_renewed_and_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    monkeypatch.setattr(leases, "BEAT_SECONDS", 0.02)
    study = open_study(tmp_path / "journal.log", "s", None, create=True)
    with Lease(study, "me"):
        while study.user_attrs[PREFIX + "me"]["beat"] < 3:
            assert not Observer().is_gone("me", study.user_attrs)
    assert Observer().is_gone("me", study.user_attrs)


def test_a_process_of_this_machine_that_ended_is_gone_at_once(tmp_path: Path) -> None:
    study = open_study(tmp_path / "journal.log", "s", None, create=True)
    with Lease(study, "me"):
        sign = dict(study.user_attrs[PREFIX + "me"])
    assert not Observer().is_gone("me", {PREFIX + "me": sign})
    for change in ({"pid": 2**22 + 1}, {"start": "1"}):
        assert Observer().is_gone("me", {PREFIX + "me": {**sign, **change}}), "another process"
