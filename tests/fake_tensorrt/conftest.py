"""Installing a fake SDK for one test."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import onnx
import pytest
from onnx import TensorProto, helper

from smart_tuner.simulate.generators import make_compiler
from smart_tuner.simulate.model_file import write_simulated_model
from tests.fake_tensorrt.backend import FakeTensorRtBackend
from tests.fake_tensorrt.scenario import VARIABLE, Scenario

if TYPE_CHECKING:
    from pathlib import Path

Install = Callable[[Scenario], FakeTensorRtBackend]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Make a scenario the SDK that this process and its children find; returns the backend."""

    def put(scenario: Scenario) -> FakeTensorRtBackend:
        path = scenario.write(tmp_path / f"scenario-{scenario.version}.json")
        monkeypatch.setenv(VARIABLE, str(path))
        return FakeTensorRtBackend()

    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return put


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model of one operator: ``y = x * x``."""
    return write_simulated_model(tmp_path, make_compiler("null", seed=1, knob_count=1))


@pytest.fixture
def odd_model(tmp_path: Path) -> Path:
    """A model with an operator that no compiler knows."""
    sides = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 16]) for name in ("x", "y")
    ]
    node = helper.make_node("Odd", ["x"], ["y"], name="odd_1", domain="com.example")
    graph = helper.make_graph([node], "odd", sides[:1], sides[1:])
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("com.example", 1)]
    path = tmp_path / "odd.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path
