from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from smart_tuner.devices.cuda import open_cuda, visible_devices
from smart_tuner.devices.cuda_calls import CudaCalls, load_runtime
from smart_tuner.errors import EnvironmentNotFit, RunError
from tests.fake_tensorrt.fake_cuda import FakeCuda, Status

if TYPE_CHECKING:
    from smart_tuner.devices.cuda import Cuda


@pytest.fixture
def fake() -> FakeCuda:
    return FakeCuda()


@pytest.fixture
def cuda(fake: FakeCuda) -> Cuda:
    return open_cuda(module=fake)


def test_devices_are_described() -> None:
    first, second = visible_devices(FakeCuda(count=2))
    assert (first.index, second.index) == (0, 1)
    assert second.name == "Fake GPU"
    assert second.uuid == "GPU-01010101-0101-0101-0101-010101010101"
    assert second.bus_id == "0000:01:00.0"
    assert second.compute_capability == "90"


@pytest.mark.parametrize(
    "uuid", ["GPU-01010101-0101-0101-0101-010101010101", "GPU-0101", "MIG-01010101-0101"]
)
def test_a_device_is_chosen_by_its_id(uuid: str) -> None:
    assert open_cuda(uuid, FakeCuda(count=2)).device.index == 1


def test_an_unknown_id_lists_those_there_are() -> None:
    with pytest.raises(EnvironmentNotFit, match=r"No GPU GPU-9 .*GPU-0000.*Fake GPU"):
        open_cuda("GPU-9", FakeCuda())


def test_without_a_driver_the_remedy_is_named() -> None:
    with pytest.raises(EnvironmentNotFit, match="no NVIDIA driver: install one"):
        visible_devices(FakeCuda(driver=0))


def test_an_old_driver_is_told_from_none() -> None:
    with pytest.raises(
        EnvironmentNotFit, match=r"supports CUDA 11\.4, .* for 12\.9: .*cuda-python==11\.\*"
    ):
        visible_devices(FakeCuda(driver=11040))


@pytest.mark.parametrize(
    ("visible", "message"), [(None, "nvidia-smi -L"), ("", "CUDA_VISIBLE_DEVICES is ''")]
)
def test_without_a_device_what_hides_it_is_named(
    visible: str | None, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    with pytest.raises(EnvironmentNotFit, match=message):
        visible_devices(FakeCuda(count=0))


def test_errors_of_the_machine_are_not_the_engines(fake: FakeCuda) -> None:
    fake.fail["cudaSetDevice"] = Status.cudaErrorInitializationError
    with pytest.raises(EnvironmentNotFit, match=r"opening Fake GPU failed: .*nvidia-smi"):
        open_cuda(module=fake)


def test_the_installed_bindings_load_without_a_driver() -> None:
    pytest.importorskip("cuda.bindings.runtime")
    module = load_runtime()
    for name in ("cudaStreamNonBlocking", "cudaEventBlockingSync", "cudaHostAllocMapped"):
        assert hasattr(module, name)


def test_every_function_that_is_called_exists_in_the_installed_bindings(cuda: Cuda) -> None:
    module = pytest.importorskip("cuda.bindings.runtime")
    fake = FakeCuda()
    functions = [name for name in vars(type(fake)) if name.startswith("cuda")]
    assert [name for name in functions if not hasattr(module, name)] == []


def test_memory_is_given_back(cuda: Cuda, fake: FakeCuda) -> None:
    device, host = cuda.device_memory(100, "x"), cuda.pinned_memory(100, "x")
    assert fake.used_bytes == 100
    device.close()
    host.close()
    assert fake.used_bytes == 0
    assert fake.pinned == {}


def test_copies_and_fills_are_queued_in_order(cuda: Cuda) -> None:
    stream = cuda.stream()
    device, host = cuda.device_memory(4, "x"), cuda.pinned_memory(4, "x")
    host.data[:] = [1, 2, 3, 4]
    cuda.copy(device.address, host.address, 4, stream)
    cuda.fill(device.address, 9, 2, stream)
    cuda.copy(host.address, device.address, 4, stream)
    stream.wait()
    assert host.data.tolist() == [9, 9, 3, 4]


def test_nothing_is_allocated_as_something(cuda: Cuda) -> None:
    stream = cuda.stream()
    device, host = cuda.device_memory(0, "x"), cuda.pinned_memory(0, "x")
    assert device.address != 0
    assert host.data.size == 0
    cuda.copy(device.address, host.address, 0, stream)
    cuda.fill(device.address, 1, 0, stream)


def test_too_little_memory_names_both_sizes() -> None:
    cuda = open_cuda(module=FakeCuda(memory_bytes=1000))
    with pytest.raises(
        RunError, match=r"out of memory: allocating 2000 bytes for weights .*1000 of 1000 bytes"
    ):
        cuda.device_memory(2000, "weights")
    cuda.device_memory(500, "weights").close()


def test_a_span_is_measured_by_the_device(cuda: Cuda, fake: FakeCuda) -> None:
    stream, start, end = cuda.stream(), cuda.event(), cuda.event()
    start.record(stream)
    fake.now_ms += 2.5
    end.record(stream)
    end.wait()
    assert end.since(start) == 2.5


def test_a_recorded_graph_runs_when_launched(cuda: Cuda) -> None:
    stream, device = cuda.stream(), cuda.pinned_memory(4, "x")
    cuda.begin_capture(stream)
    cuda.fill(device.address, 7, 4, stream)
    graph = cuda.end_capture(stream)
    assert device.data.tolist() == [0] * 4
    graph.launch(stream)
    assert device.data.tolist() == [7] * 4
    graph.close()


def test_a_dropped_recording_leaves_a_usable_stream(cuda: Cuda, fake: FakeCuda) -> None:
    stream = cuda.stream()
    cuda.begin_capture(stream)
    fake.spoil(stream.handle)
    cuda.drop_capture(stream)
    stream.wait()
    assert not fake.recordings


def test_an_error_while_recording_does_not_count_as_a_broken_context(
    cuda: Cuda, fake: FakeCuda
) -> None:
    stream, device = cuda.stream(), cuda.device_memory(4, "x")
    cuda.begin_capture(stream)
    fake.fail["cudaMemsetAsync"] = Status.cudaErrorInvalidValue
    with pytest.raises(RunError, match="cudaErrorInvalidValue"):
        cuda.fill(device.address, 0, 4, stream)
    cuda.drop_capture(stream)
    assert not cuda.calls.is_broken


def test_a_broken_context_fails_fast_with_the_first_error(cuda: Cuda, fake: FakeCuda) -> None:
    stream, device = cuda.stream(), cuda.device_memory(4, "x")
    fake.breaks(Status.cudaErrorIllegalAddress)
    with pytest.raises(RunError, match=r"running failed: cudaErrorIllegalAddress"):
        stream.wait()
    calls = len(fake.log)
    with pytest.raises(RunError, match=r"running failed: cudaErrorIllegalAddress.*lost"):
        cuda.free_bytes()
    device.close()
    stream.close()
    assert len(fake.log) == calls


def test_an_error_that_bindings_have_no_name_for_is_an_error() -> None:
    def unknown() -> None:
        raise KeyError(9999)

    module = SimpleNamespace(cudaError_t=Status, cudaStrange=unknown)
    with pytest.raises(RunError, match=r"trying failed: cudaStrange: 9999"):
        CudaCalls(module)("trying", "cudaStrange")
