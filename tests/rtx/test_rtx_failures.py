"""What goes wrong in a build by NVIDIA's real compiler ends in one clear sentence."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import onnx
import pytest
from onnx import helper

from smart_tuner.errors import (
    BuildError,
    ChildDied,
    ChildTimedOut,
    EnvironmentNotFit,
    NotApplied,
    UserInputError,
)
from smart_tuner.trial.arm import RemoteArm
from smart_tuner.trial.options import EvaluatorOptions
from tests.rtx.building import build, network_request, small_model, small_request

if TYPE_CHECKING:
    from pathlib import Path

FIXED = (1, 3, 16, 16)


@pytest.fixture
def without_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")


def test_operators_that_are_not_supported_are_all_named(tmp_path: Path) -> None:
    path = small_model(tmp_path / "odd.onnx", *FIXED, operator="Det")
    model = onnx.load(path)
    model.graph.node.append(helper.make_node("Det", ["y"], ["z"], name="again"))
    model.graph.node.append(helper.make_node("Frobnicate", ["z"], ["v"], domain="my.ops"))
    model.opset_import.append(helper.make_opsetid("my.ops", 1))
    onnx.save(model, path)

    with pytest.raises(BuildError) as caught:
        build(small_request(path), tmp_path)

    said = str(caught.value)
    assert "operator Det (nodes 'last', 'again') is not supported" in said
    assert "operator Frobnicate (node number 3) is not known, and no plugin has that name" in said
    assert "\n" not in said


def test_a_damaged_model_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "damaged.onnx"
    path.write_bytes(small_model(path, *FIXED).read_bytes()[:-40] + b"\xff" * 40)
    with pytest.raises(BuildError, match=r"damaged\.onnx: it is no ONNX model, or a damaged one"):
        build(small_request(path), tmp_path)


def test_weights_beside_the_model_are_found_by_its_path(tmp_path: Path) -> None:
    inside = small_model(tmp_path / "inside.onnx", *FIXED)
    model = onnx.load(inside)
    (tmp_path / "other").mkdir()
    beside = tmp_path / "other" / "beside.onnx"
    onnx.save(model, beside, save_as_external_data=True, location="w.bin", size_threshold=0)

    first = build(small_request(inside), tmp_path / "a")
    second = build(small_request(beside), tmp_path / "b")
    assert first.sha256 == second.sha256

    (tmp_path / "other" / "w.bin").unlink()
    with pytest.raises(BuildError, match="w"):
        build(small_request(beside), tmp_path / "c")


@pytest.mark.parametrize(
    ("base", "said"),
    [
        ({"frobnicate": "on"}, "Unknown knob or base setting: frobnicate (tensorrt-rtx "),
        ({"refit": "perhaps"}, "refit = perhaps: not one of off, on."),
        ({"compute_capability": "70"}, "compute_capability = 70: tensorrt-rtx "),
        ({"plugins": "/no/such/library.so"}, "plugins: no file /no/such/library.so"),
        ({"io_formats": "q:fp32:chw"}, "io_formats: the model has no input or output 'q'"),
        ({"io_formats": "x:fp16:chw"}, "'x' is FLOAT in the model, fp16 asked for"),
        ({"io_formats": "x:fp32:zigzag"}, "x:fp32:zigzag is not known to tensorrt-rtx"),
        ({"builder:optimization_level": "fast"}, "builder:optimization_level=fast: it takes"),
    ],
)
def test_a_wrong_base_is_named(tmp_path: Path, base: dict[str, str], said: str) -> None:
    model = small_model(tmp_path / "m.onnx", *FIXED)
    with pytest.raises(UserInputError) as caught:
        build(small_request(model, base), tmp_path)
    assert said in str(caught.value)


def test_formats_of_inputs_and_outputs_reach_the_plan(tmp_path: Path) -> None:
    model = small_model(tmp_path / "m.onnx", *FIXED)
    plain = build(small_request(model), tmp_path / "a")
    formatted = build(small_request(model, {"io_formats": "x:fp32:chw32"}), tmp_path / "b")
    assert formatted.sha256 != plain.sha256


def test_a_route_knob_is_not_applied_where_there_are_no_routes(tmp_path: Path) -> None:
    model = small_model(tmp_path / "m.onnx", *FIXED)
    request = small_request(model, {}, **{"kgen:tiling": "1"})
    with pytest.raises(NotApplied, match="-kgen:tiling cannot be set: this installation lists no"):
        build(request, tmp_path)


def test_a_plugin_that_is_none_is_named(tmp_path: Path) -> None:
    model, library = small_model(tmp_path / "m.onnx", *FIXED), tmp_path / "plugin.so"
    library.write_bytes(b"no library")
    with pytest.raises(
        EnvironmentNotFit, match=r"plugin .*\.so does not load into .*: .*plugin\.so"
    ):
        build(small_request(model, {"plugins": str(library)}), tmp_path)


def test_no_timings_are_kept_by_a_compiler_that_takes_none(tmp_path: Path) -> None:
    model, cache = small_model(tmp_path / "m.onnx", *FIXED), tmp_path / "old.cache"
    cache.write_bytes(b"junk")
    request = small_request(model)
    engine = build(
        type(request)(model, base=request.base, timing_cache=cache), tmp_path / "engine"
    )
    assert engine.timing_cache is None
    assert "this compiler keeps no timings: the timing cache was not used" in engine.notes
    assert cache.read_bytes() == b"junk"


@pytest.fixture(scope="module")
def slow_network() -> str:
    return "densenet121"


def options(**limits: float | int) -> EvaluatorOptions:
    return EvaluatorOptions("tensorrt-rtx", **limits)  # type: ignore[arg-type]


def test_a_deadline_ends_a_build(tmp_path: Path, slow_network: str) -> None:
    with RemoteArm(options(build_timeout_seconds=2.5), tmp_path / "log") as arm:
        with pytest.raises(ChildTimedOut, match=r"passed its deadline of 2\.5 s"):
            arm.build(network_request(slow_network, "80"), tmp_path)
        assert not arm.is_alive
    assert not (tmp_path / "engine.plan").exists()


def test_a_build_that_takes_too_much_memory_is_ended(tmp_path: Path, slow_network: str) -> None:
    with RemoteArm(options(memory_limit_bytes=250_000_000), tmp_path / "log") as arm:
        with pytest.raises(ChildDied, match=r"out of memory: .* GB over the limit of 0\.25 GB"):
            arm.build(network_request(slow_network, "80"), tmp_path)
        assert not arm.is_alive


def test_a_child_goes_on_after_a_damaged_model(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.onnx"
    damaged.write_bytes(b"\x08\x07garbage" * 100)
    model = small_model(tmp_path / "m.onnx", *FIXED)
    with RemoteArm(options(), tmp_path / "log") as arm:
        with pytest.raises(BuildError, match="no ONNX model"):
            arm.build(small_request(damaged), tmp_path)
        assert arm.build(small_request(model), tmp_path).size_bytes


def test_a_build_that_is_told_to_end_ends_by_itself(tmp_path: Path, slow_network: str) -> None:
    model = network_request(slow_network, "80").model
    command = [sys.executable, "-m", "smart_tuner.backends.tensorrt", str(model)]
    log = tmp_path / "log"
    with log.open("w") as output:
        child = subprocess.Popen(
            [*command, "compute_capability=80"], cwd=tmp_path, stdout=output, stderr=output
        )
        try:
            while "progress: Building engine" not in log.read_text() and child.poll() is None:
                time.sleep(0.05)
            child.send_signal(signal.SIGTERM)
            assert child.wait(60) == BuildError.exit_code
        finally:
            child.kill()
    assert log.read_text().splitlines()[-1] == "the build was cancelled by a signal"
    assert not list(tmp_path.glob("engine-*/engine.plan"))


@pytest.mark.usefixtures("without_gpu")
def test_a_study_says_that_engines_cannot_run_here(tmp_path: Path) -> None:
    model = small_model(tmp_path / "m.onnx", *FIXED)
    command = [sys.executable, "-m", "smart_tuner", "tune", str(model)]
    done = subprocess.run(
        [*command, "--backend", "tensorrt-rtx", "--budget", "1m", "--study", str(tmp_path / "s")],
        capture_output=True,
        text=True,
        env=dict(os.environ),
        check=False,
    )
    assert done.returncode == EnvironmentNotFit.exit_code
    said = done.stderr.strip().splitlines()[-1]
    assert "is installed, but engines cannot run here: " in said
    assert "Only building one is possible: `python -m smart_tuner.backends.tensorrt " in said


@pytest.mark.usefixtures("without_gpu")
def test_a_build_for_the_gpu_at_hand_needs_one(tmp_path: Path) -> None:
    model = small_model(tmp_path / "m.onnx", *FIXED)
    command = [sys.executable, "-m", "smart_tuner.backends.tensorrt", str(model)]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, env=dict(os.environ), check=False
    )
    assert done.returncode == EnvironmentNotFit.exit_code
    assert "engines cannot run here" in done.stderr.splitlines()[-1]
