"""Ctrl-C in the middle of ending a child must not hide behind an error of the second try."""

import os
from pathlib import Path

import psutil
import pytest

from smart_tuner.engine.process import ChildProcess


@pytest.mark.parametrize("closed", [1, 2, 3])
def test_a_child_that_is_closed_again_after_an_interruption_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, closed: int
) -> None:
    child = ChildProcess("smart_tuner.trial.child", log=tmp_path / "child.log")
    really_close, count = os.close, 0

    def interrupted_close(descriptor: int) -> None:
        nonlocal count
        really_close(descriptor)
        count += 1
        if count == closed:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("smart_tuner.engine.process.os.close", interrupted_close)
        with pytest.raises(KeyboardInterrupt):
            child.close()
    child.close()
    assert not child.is_alive
    assert not psutil.pid_exists(child.pid) or psutil.Process(child.pid).status() == "zombie"
