"""Flags for compilers of GPUs: each wrong use is one line that names the thing and the remedy."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from smart_tuner.cli.gpu_findings import COMPILERS
from tests.unit.cli.calling import REPLAY, call, write_model

if TYPE_CHECKING:
    from pathlib import Path

TUNE = ("tune", "model.onnx", *REPLAY)

CASES = {
    "--launch": ((*TUNE, "--launch", "rocket"), 2, ("launch", "graph")),
    "--objective": ((*TUNE, "--objective", "fun"), 2, ("objective", "throughput")),
    "--io": ((*TUNE, "--io", "tape"), 2, ("io", "device")),
    "--streams": ((*TUNE, "--streams", "0"), 2, ("streams", "1")),
    "--statistic": ((*TUNE, "--statistic", "p42"), 2, ("statistic", "p99")),
    "--max-memory, text": ((*TUNE, "--max-memory", "lots"), 2, ("lots", "512M")),
    "--max-build-time, text": ((*TUNE, "--max-build-time", "soon"), 2, ("soon", "10m")),
    "--max-memory, unknown": ((*TUNE, "--max-memory", "1G"), 2, ("leave out --max-memory",)),
    "--plugin": ((*TUNE, "--plugin", "gone.so"), 2, ("gone.so", "check the path")),
    "--config": ((*TUNE, "--config", "odd.toml"), 2, ("launch", "graph")),
    "unknown to ONNX Runtime": (
        ("apply", "model.onnx", "--io", "zero-copy"),
        2,
        ("io=zero_copy: not one of host, device",),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_wrong_use_is_one_line(name: str, here: Path) -> None:
    write_model(here)
    (here / "odd.toml").write_text('launch = "rocket"\n')
    words, code, holds = CASES[name]
    before = set(here.iterdir())
    ended = call(*words)
    assert ended.code == code
    *heading, line = ended.err.splitlines()
    assert line.startswith("smart-tuner: ")
    for text in holds:
        assert text in line
    assert all("Traceback" not in text for text in heading)
    assert set(here.iterdir()) == before


def test_a_compiler_that_is_missing_is_named_with_its_remedy(here: Path) -> None:
    write_model(here)
    if any(map(find_spec, COMPILERS["tensorrt"])):
        pytest.skip("TensorRT is installed")
    ended = call("tune", "model.onnx", "--backend", "tensorrt")
    assert ended.code == 3
    (line,) = ended.err.splitlines()
    assert "TensorRT is not installed" in line
    assert "pip install" in line
