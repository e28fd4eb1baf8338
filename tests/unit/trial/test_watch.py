import os
import time
from pathlib import Path

import pytest
from filelock import FileLock, Timeout

from smart_tuner.devices.gpu import GpuState
from smart_tuner.devices.lock import lock_path
from smart_tuner.engine.platform import Platform
from smart_tuner.measure.stop_rule import StopRule
from smart_tuner.trial.fields import to_json
from smart_tuner.trial.read import read_comparison
from smart_tuner.trial.watch import MIG, Watch, measuring_lock

UUID = "GPU-1"
GPU = Platform("H200", "driver", "c 1", "c 1", {"uuid": UUID})
CPU = Platform("processor", "driver", "c 1", "c 1")
RULE = StopRule.fixed(4, block_seconds=0.001)


class Arm:
    def time_block(self, iterations: int) -> tuple[float, ...]:
        return (1.0,) * iterations


def state(*pids: int, reasons: tuple[str, ...] = (), is_shared: bool = False) -> GpuState:
    return GpuState(
        uuid=UUID,
        sm_clock_mhz=1500,
        temperature_c=60,
        power_w=400.0,
        throttle_reasons=reasons,
        processes=(os.getpid(), *pids),
        is_mig=is_shared,
        is_mps=is_shared,
    )


def test_figures_of_the_gpu_are_kept_and_read_back() -> None:
    comparison = Watch(GPU, look=lambda _: state()).compare((Arm(), Arm()), "p", RULE)
    assert comparison.device == {"sm_clock_mhz": 1500, "temperature_c": 60, "power_w": 400}
    data = to_json(comparison)
    assert read_comparison(data).device == comparison.device
    del data["device"]
    assert read_comparison(data).device == {}, "records of older versions are read"


def test_what_disturbs_on_the_gpu_is_noted() -> None:
    busy = state(1, reasons=("power cap",), is_shared=True)
    watch = Watch(GPU, look=lambda _: busy, patience_seconds=0.0)
    comparison = watch.compare((Arm(), Arm()), "p", RULE)
    text = " ".join(comparison.notes)
    for words in ("power cap", "computed on the GPU: 1", "multi-process"):
        assert words in text
    assert comparison.device[MIG] == 1, "a slice is no disturbance, but worth to know"


def test_no_gpu_is_asked_for_a_platform_that_names_none() -> None:
    comparison = Watch(CPU, look=pytest.fail).compare((Arm(), Arm()), "p", RULE)
    assert comparison.device == {}


def test_measuring_waits_for_others_to_leave() -> None:
    looks = iter([state(1), state()])
    Watch(GPU, look=lambda _: next(looks)).wait_until_free()
    assert next(looks, None) is None


def test_measuring_does_not_wait_for_ever_and_not_twice_for_the_same() -> None:
    asked: list[str] = []

    def look(uuid: str) -> GpuState:
        asked.append(uuid)
        return state(1)

    told: list[str] = []
    watch = Watch(GPU, look=look, patience_seconds=0.05, on_wait=told.append)
    started = time.perf_counter()
    watch.wait_until_free()
    assert time.perf_counter() - started >= 0.05
    asked.clear()
    watch.wait_until_free()
    assert asked == [UUID]
    assert told == [f"Waiting for {GPU.device}: others compute on it (1)."]


def test_a_device_is_locked_by_the_very_gpu_where_it_has_an_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    mine = min(os.sched_getaffinity(0))
    for platform, key in ((GPU, UUID), (CPU, f"processor processor {mine}")):
        with measuring_lock(platform), pytest.raises(Timeout):
            FileLock(lock_path(key), timeout=0).acquire()
