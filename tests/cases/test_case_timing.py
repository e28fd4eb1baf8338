"""O23 to O25: latencies and the number of processors, as a user of the command sees them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from smart_tuner.model.toml import read_toml

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cases.conftest import Product, Study

SAME_SPEED = "--route=-session:enable_mem_pattern=off"
"""Another engine, that does the same work."""

SAME = 2.0
"""Two measurements of the same runs on a machine that others use as well."""


@contextmanager
def busy_loop() -> Iterator[None]:
    """A neighbour that keeps one processor busy."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as neighbour:
        try:
            yield
        finally:
            neighbour.kill()


@contextmanager
def one_processor() -> Iterator[None]:
    """What ``taskset`` does: children inherit it."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def test_o23_a_microsecond_model_has_a_latency_and_no_endless_gain(
    cases: Path, product: Product
) -> None:
    with busy_loop():
        trial = product.apply(cases / "O23/a_microseconds.onnx", SAME_SPEED)
    assert trial["outcome"] == "feasible"
    [measured] = trial["comparisons"]
    fast, slow = sorted(measured[arm]["median_ms"] for arm in ("baseline", "candidate"))
    assert 0 < fast <= slow < SAME * fast
    assert 0 < measured["half_width"] < 1
    assert any("processors busy meanwhile" in note for note in measured["notes"])


def test_o23_a_latency_is_shown_with_digits_and_spread(cases: Path, product: Product) -> None:
    run = product.run("apply", cases / "O23/b_conv_stack.onnx", SAME_SPEED)
    assert run.code == 0
    line = re.search(
        r"gain at default: (\S+)x .* (\S+) ms against (\S+) ms, spread \S+ %", run.out
    )
    assert line is not None
    gain, candidate, baseline = map(float, line.groups())
    assert min(candidate, baseline) > 0
    assert 1 / SAME < gain < SAME


def test_o24_no_gain_keeps_the_default_and_is_a_proper_answer(trouble: Study) -> None:
    assert trouble.run.code == 0
    assert "No gain of 1.01x or more" in trouble.run.out
    assert not (trouble.folder / "winner").exists()


def test_o25_thread_choices_follow_the_processors_and_a_change_is_told(
    cases: Path, product: Product, tmp_path: Path
) -> None:
    study = tmp_path / "study"
    words = ("tune", cases / "O23/a_microseconds.onnx", "--study", study, "--only", "threads:*")
    limits = ("--trials", "2", "--budget", "40s", "--min-gain", "9")
    with one_processor():
        run = product.run(*words, *limits)
    assert run.code == 0
    space = read_toml(study / "study.toml", "study file")["space"]
    assert space == {"threads:intra": ["auto", "1"], "threads:inter": ["auto", "1"]}
    assert '"cpu_quota": "1"' in (study / "platform.json").read_text(encoding="utf-8")
    if len(os.sched_getaffinity(0)) == 1:
        pytest.skip("one processor: there is no other number to resume with")
    run = product.run(*words, *limits)
    assert run.code == 0
    assert re.search(r"cpu_quota was 1, is \d+: earlier trials may rank routes", run.notes)
