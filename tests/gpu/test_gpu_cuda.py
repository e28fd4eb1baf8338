from __future__ import annotations

import os

import numpy as np
import pytest

from smart_tuner.devices.cuda import open_cuda, visible_devices
from smart_tuner.devices.gpu import GpuMeter, read_gpu
from smart_tuner.errors import EnvironmentNotFit, RunError

pytestmark = pytest.mark.gpu


def test_devices_are_described_and_found_by_their_id() -> None:
    for device in visible_devices():
        assert device.name
        assert device.memory_bytes > 1 << 28
        assert int(device.compute_capability) >= 50
        assert open_cuda(device.uuid).device == device
    with pytest.raises(EnvironmentNotFit, match="No GPU GPU-nothing"):
        open_cuda("GPU-nothing")


def test_nvml_and_cuda_speak_of_the_same_gpu() -> None:
    device = visible_devices()[0]
    state = read_gpu(device.bus_id)
    if not state.is_known:
        pytest.skip("no NVML here")
    assert state.driver
    assert state.memory_total_bytes is None or state.memory_total_bytes > 1 << 28
    with GpuMeter(device.bus_id, [os.getpid()]) as meter:
        meter.read().notes()


def test_copies_events_and_graphs_work() -> None:
    cuda = open_cuda()
    stream, start, end = cuda.stream(), cuda.event(), cuda.event()
    device, host = cuda.device_memory(1 << 20, "x"), cuda.pinned_memory(1 << 20, "x")
    host.data[:] = np.arange(1 << 20) % 251
    start.record(stream)
    cuda.copy(device.address, host.address, host.size, stream)
    end.record(stream)
    end.wait()
    assert 0 < end.since(start) < 1000
    cuda.begin_capture(stream)
    cuda.fill(device.address, 7, 10, stream)
    cuda.copy(host.address, device.address, host.size, stream)
    graph = cuda.end_capture(stream)
    stream.wait()
    assert host.data[0] == 0
    graph.launch(stream)
    stream.wait()
    assert host.data[:11].tolist() == [7] * 10 + [10]
    for thing in (graph, device, host, start, end, stream):
        thing.close()


def test_a_recording_that_went_wrong_leaves_a_usable_stream() -> None:
    cuda = open_cuda()
    stream = cuda.stream()
    memory = cuda.device_memory(4, "x")
    cuda.begin_capture(stream)
    with pytest.raises(RunError, match="cudaErrorStreamCapture"):
        cuda.calls("waiting", "cudaStreamSynchronize", stream.handle)
    cuda.drop_capture(stream)
    cuda.fill(memory.address, 0, 4, stream)
    stream.wait()
    assert not cuda.calls.is_broken
    memory.close()
    stream.close()


def test_too_much_memory_is_refused_and_nothing_is_lost() -> None:
    cuda = open_cuda()
    with pytest.raises(RunError, match=r"out of memory: allocating \d+ bytes for x .* are free"):
        cuda.device_memory(1 << 50, "x")
    cuda.device_memory(1 << 10, "x").close()
