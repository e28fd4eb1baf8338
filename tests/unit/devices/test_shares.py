import os
import subprocess
import sys

import pytest

from smart_tuner.devices.cpu import cpu_quota
from smart_tuner.devices.shares import (
    CREW,
    Place,
    crew_pids,
    gpu_places,
    processor_places,
    processors_in_use,
    settled,
)
from smart_tuner.errors import UserInputError


def test_processors_are_shared_out_equally_and_without_overlap() -> None:
    for workers in range(2, cpu_quota() + 1):
        places = processor_places(workers)
        taken = [number for place in places for number in place.processors]
        assert len(places) == workers
        assert len(taken) == len(set(taken)) == workers * (cpu_quota() // workers)
        assert set(taken) <= set(processors_in_use())
    assert processor_places(1) == (Place(),), "one worker is left where it is"


def test_more_workers_than_processors_are_refused() -> None:
    with pytest.raises(UserInputError, match=rf"this process may use {cpu_quota()} processors"):
        processor_places(cpu_quota() + 1)


def test_what_is_started_in_a_place_stays_there_and_this_process_comes_back() -> None:
    before = processors_in_use()
    one = frozenset(before[:1])
    look = "import os; print(sorted(os.sched_getaffinity(0)), os.environ['CUDA_VISIBLE_DEVICES'])"
    with settled(Place("here", one, {"CUDA_VISIBLE_DEVICES": "3"})):
        said = subprocess.check_output([sys.executable, "-c", look], text=True)
    assert said == f"[{before[0]}] 3\n"
    assert processors_in_use() == before
    assert os.environ.get("CUDA_VISIBLE_DEVICES") != "3"


def test_each_gpu_is_named_as_nvidia_smi_counts_or_among_those_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    visible = [place.environment["CUDA_VISIBLE_DEVICES"] for place in gpu_places("0, 2")]
    assert visible == ["0", "2"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-aa,GPU-bb")
    visible = [place.environment["CUDA_VISIBLE_DEVICES"] for place in gpu_places("1,0")]
    assert visible == ["GPU-bb", "GPU-aa"]
    with pytest.raises(UserInputError, match="shows 2 of them"):
        gpu_places("0,2")
    for wrong in ("", "0,", "all", "-1"):
        with pytest.raises(UserInputError, match="as in --devices 0,1"):
            gpu_places(wrong)


def test_who_started_a_worker_is_no_stranger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CREW, raising=False)
    assert crew_pids() == ()
    monkeypatch.setenv(CREW, "123")
    assert crew_pids() == (123,)
