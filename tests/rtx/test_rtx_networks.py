"""Public networks through NVIDIA's real compiler, for GPUs of two generations."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.rtx.building import (
    CAPABILITIES,
    NETWORKS,
    Built,
    build,
    build_once,
    network_request,
)

if TYPE_CHECKING:
    from pathlib import Path


def built(shared: Path, name: str, capability: str = "80", **route: str) -> Built:
    settings = {name.replace("__", ":"): value for name, value in route.items()}
    request = network_request(name, capability, settings)
    words = "-".join(f"{key}={value}".replace(":", "_") for key, value in settings.items())
    return build_once(request, shared / f"{name}-{capability}-{words}")


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_compiles_for_gpus_that_are_not_here(shared: Path, name: str) -> None:
    plans = [built(shared, name, capability) for capability in CAPABILITIES]

    assert all(plan.size_bytes > 100_000 for plan in plans)
    assert plans[0].sha256 != plans[1].sha256
    assert plans[0].fingerprint != plans[1].fingerprint
    for plan, capability in zip(plans, CAPABILITIES, strict=True):
        (note,) = plan.notes
        assert note.startswith(f"built for a GPU of compute capability {capability}, which is not")
        compile(plan.loader, "load_winner.py", "exec")
        assert f"CAPABILITY = '{capability}'" in plan.loader


def test_the_same_build_in_another_process_gives_the_same_bytes(
    shared: Path, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "smart_tuner.backends.tensorrt", "public:squeezenet"]
    done = subprocess.run(
        [*command, "compute_capability=80", "shapes=data_0:1x3x224x224"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (plan,) = tmp_path.glob("engine-*/engine.plan")

    assert done.stdout.startswith(f"{plan}: ")
    first = built(shared, "squeezenet")
    assert plan.stat().st_size == first.size_bytes
    assert hashlib.sha256(plan.read_bytes()).hexdigest() == first.sha256


@pytest.mark.parametrize(
    ("knob", "value"),
    [("flag:tf32", "off"), ("builder:max_aux_streams", "0"), ("builder:workspace_mib", "32")],
)
def test_a_setting_that_acts_changes_the_plan(shared: Path, knob: str, value: str) -> None:
    default = built(shared, "squeezenet")
    changed = built(shared, "squeezenet", **{knob: value})

    assert changed.sha256 != default.sha256
    assert changed.fingerprint != default.fingerprint


@pytest.mark.parametrize(
    ("knob", "value"), [("builder:optimization_level", "0"), ("flag:sparse_weights", "on")]
)
def test_a_setting_that_does_nothing_gives_the_same_engine(
    shared: Path, knob: str, value: str
) -> None:
    default = built(shared, "squeezenet")
    same = built(shared, "squeezenet", **{knob: value})

    assert same.sha256 == default.sha256
    assert same.fingerprint == default.fingerprint


def test_a_reference_is_built_without_tf32_whatever_the_base_says(
    shared: Path, tmp_path: Path
) -> None:
    request = network_request("squeezenet", "80")
    literal = build(
        type(request)(request.model, base=request.base, shapes=request.shapes, reference=True),
        tmp_path,
    )
    no_tf32 = built(shared, "squeezenet", **{"flag:tf32": "off"})

    assert literal.sha256 == no_tf32.sha256
