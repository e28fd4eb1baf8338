from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_tuner.backends.onnxruntime.runtime import (
    binary_path,
    is_unknown_operator,
    reason,
    runtime_version,
)

SOURCE = "/onnxruntime_src/onnxruntime/core/graph/model.cc:256 "
SIGNATURE = "onnxruntime::Model::Model(onnx::ModelProto&&, const std::map<A, B(C)>&) "


def test_the_installed_runtime_is_found() -> None:
    assert runtime_version().startswith("onnxruntime")
    assert binary_path().is_file()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[ONNXRuntimeError] : 7 : INVALID_PROTOBUF : Load model from /a b/c failed:Bad.", "Bad."),
        (f"[ONNXRuntimeError] : 1 : FAIL : {SOURCE}{SIGNATURE}It is\n broken.\n", "It is broken."),
        (
            "Deserialize w failed.tensorprotoutils.cc:22 GetExtData too short",
            "Deserialize w failed.",
        ),
    ],
)
def test_reasons_are_one_line_without_noise(text: str, expected: str) -> None:
    assert reason(RuntimeError(text)).startswith(expected)
    assert "onnxruntime_src" not in reason(RuntimeError(text))


def test_version_limits_are_named() -> None:
    text = f"{SOURCE}{SIGNATURE}Unsupported model IR version: 99, max supported IR version: 14\n"
    assert "IR version 99" in reason(RuntimeError(text))
    assert "up to 14" in reason(RuntimeError(text))


def test_an_unknown_operator_names_the_remedy() -> None:
    error = RuntimeError("Fatal error: my.ops:Foo(-1) is not a registered function/op")
    assert is_unknown_operator(error)
    assert "my.ops::Foo" in reason(error)
    assert "custom_op_library" in reason(error)


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("Failed to allocate memory for requested buffer")]
)
def test_lack_of_memory_is_said(error: Exception) -> None:
    assert reason(error).startswith("out of memory")


@given(st.text())
def test_every_reason_is_one_line(text: str) -> None:
    assert "\n" not in reason(RuntimeError(text))
    assert reason(RuntimeError(text)) or not text.strip()
