"""Ways to call the command line, and simulated models to call it with."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_tuner.cli.main import main
from smart_tuner.knobs.knob import Knob
from smart_tuner.simulate.compiler import SimulatedCompiler
from smart_tuner.simulate.effects import Failure, Noise, ValueEffect
from smart_tuner.simulate.model_file import write_simulated_model

if TYPE_CHECKING:
    from pathlib import Path

REPLAY = ("--backend", "replay", "--metric", "linf")
KNOBS = (
    Knob("speed", ("slow", "fast"), "slow", help="How fast it goes, [bold]really[/bold]."),
    Knob("grave", ("no", "yes"), "no", help="Breaks the build."),
)
EFFECTS = (
    ValueEffect("speed", "fast", log_latency=-0.4),
    ValueEffect("grave", "yes", failure=Failure.BUILD_ERROR),
)


@dataclass(frozen=True)
class Ended:
    """What a call left: exit code and both streams."""

    code: int
    out: str
    err: str


def call(*words: object) -> Ended:
    """Call the command line in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(word) for word in words])
    return Ended(code, out.getvalue(), err.getvalue())


def command(*words: object) -> list[str]:
    """The words that start the command line in a process of its own."""
    return [sys.executable, "-m", "smart_tuner", *map(str, words)]


def call_process(*words: object, **environment: str) -> Ended:
    """Call the command line in a process of its own."""
    ended = subprocess.run(
        command(*words),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
    return Ended(ended.returncode, ended.stdout, ended.stderr)


def write_model(folder: Path, *, name: str = "model", real_seconds: float = 0.0) -> Path:
    """Write a model with one knob that makes it faster and one that breaks it."""
    noise = Noise(build=0.0005, measurement=0.001, spike_rate=0)
    compiler = SimulatedCompiler(KNOBS, effects=EFFECTS, noise=noise, base_latency_ms=2.0)
    return write_simulated_model(folder, compiler, name=name, seed=1, real_seconds=real_seconds)
