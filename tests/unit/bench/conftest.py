from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


def t4_result(
    size: int, cache: int, run_ms: float | None, invalidity: str = "correct"
) -> dict[str, object]:
    """One configuration as T4 files hold it, with its times in milliseconds."""
    times: dict[str, object] = {"compilation": 900.0, "framework": 50.0, "validation": 30.0}
    if run_ms is not None:
        times["runtimes"] = [run_ms * 0.99, run_ms, run_ms * 1.01]
    return {
        "timestamp": "2026-01-01 00:00:00+00:00",
        "configuration": {"block_size": size, "use_cache": cache},
        "times": times,
        "invalidity": invalidity,
        "correctness": int(run_ms is not None),
        "measurements": [{"name": "time", "value": run_ms, "unit": "ms"}],
        "objectives": ["time"],
    }


T4 = {
    "schema_version": "1.0.0",
    "metadata": {"timeunit": "miliseconds"},
    "results": [
        t4_result(16, 0, 4.0),
        t4_result(16, 1, 3.0),
        t4_result(32, 0, 2.0),
        t4_result(32, 1, None, "runtime"),
        t4_result(128, 0, None, "compile"),
    ],
}


@pytest.fixture
def t4_file(tmp_path: Path) -> Path:
    """A T4 file of five configurations, as benchmark_hub packs its own; 128 with cache is not in it."""
    path = tmp_path / "kernel" / "GPU_T4.json.gz"
    path.parent.mkdir()
    path.write_bytes(gzip.compress(json.dumps(T4).encode()))
    return path
