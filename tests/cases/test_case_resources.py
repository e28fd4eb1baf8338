"""O26 and O27: children that die, and memory, as a user of the command sees them."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

import psutil
import pytest

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

    from tests.cases.conftest import Product, Study

PATIENCE_SECONDS = 60


def building_child(process: subprocess.Popen[str], trial: Path) -> psutil.Process:
    """The child of a running study that builds a trial's engine."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (trial / "engine").exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    children = psutil.Process(process.pid).children()
    return max(children, key=lambda child: child.create_time())


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGABRT", "SIGKILL"])
def test_o26_a_child_that_dies_is_an_outcome_with_its_signal(trouble: Study, name: str) -> None:
    trial = trouble.trials[f"-death={name}"]
    assert trial["outcome"] == "build_failed"
    assert f"while building: killed by {name}" in trial["message"]
    assert trial["latency_ms"] is None


def test_o26_the_next_trial_is_healthy_and_the_baseline_is_what_it_was(trouble: Study) -> None:
    # Loaded once to be measured against, and once beside it to see whether it repeats itself.
    loads = (trouble.folder.parent / "loads.txt").read_text(encoding="utf-8").split()
    assert len(set(loads)) == 2
    healthy = trouble.trials["-latency=float32"]
    assert (healthy["outcome"], healthy["latency_ms"], healthy["gain"]) == ("feasible", 2, 1)
    assert trouble.trials["-level=1"]["latency_ms"] == pytest.approx(3)


def test_o26_a_child_killed_from_outside_in_mid_trial_costs_that_trial_only(
    trouble: Study, product: Product, tmp_path: Path
) -> None:
    study = tmp_path / "study"
    words = (*trouble.call, "--study", study, "--only", "level", "--only", "switch")
    with product.started(*words, CASE_SLOW="0.5") as process:
        for number, how in ((1, signal.SIGSEGV), (2, signal.SIGABRT)):
            building_child(process, study / "trials" / str(number)).send_signal(how)
        out, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0
    assert not err
    assert "while building: killed by SIGSEGV" in out
    trials = product.trials(study)
    assert trials["-level=1"]["message"].startswith("while building: killed by SIGSEGV")
    assert trials["-level=2"]["message"].startswith("while building: killed by SIGABRT")
    assert trials["-switch=on"]["outcome"] == "feasible"
    assert trials["-switch=on"]["gain"] == 1


@pytest.mark.parametrize("name", ["a_oom_at_build", "b_oom_at_run"])
def test_o27_memory_that_is_not_there_ends_the_study_with_that_reason(
    cases: Path, product: Product, name: str
) -> None:
    text = product.refuse(cases / f"O27/{name}.onnx")
    assert "out of memory" in text
    assert "4398046511104" in text


def test_o27_a_route_that_runs_out_of_memory_costs_that_trial_only(trouble: Study) -> None:
    trial = trouble.trials["-death=memory"]
    assert trial["outcome"] == "build_failed"
    assert trial["message"].startswith("out of memory: ")


def test_o27_children_are_held_to_the_memory_limit(cases: Path, product: Product) -> None:
    text = product.refuse(cases / "O23/b_conv_stack.onnx", "--memory-limit=20M")
    assert "out of memory" in text
    assert "GB over the limit of 0.021 GB" in text
