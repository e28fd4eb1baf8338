"""A pipeline to put the gate into: a simulated model in a folder, and a store beside it."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from smart_tuner.simulate.compiler import SimulatedCompiler
from smart_tuner.simulate.effects import Noise
from smart_tuner.simulate.model_file import write_simulated_model
from tests.unit.cli.calling import EFFECTS, KNOBS, REPLAY, Ended, call

if TYPE_CHECKING:
    from pathlib import Path

BRIEF = ("--budget", "60s", "--rounds", 2, "--quiet")
DEFAULT_SHIPS = ("--trials", 1, "--min-gain", 9)
"""Nothing gains that much: no finalist has to be built."""


@dataclass(frozen=True)
class Pipeline:
    """A folder that a CI job works in."""

    folder: Path

    @property
    def model(self) -> Path:
        return self.folder / "model.onnx"

    @property
    def store(self) -> Path:
        return self.folder / "store"

    def entries(self) -> list[Path]:
        return sorted((self.store / "entries").iterdir())

    def write_model(self, milliseconds: float = 2.0) -> None:
        """Another model under the same name: what a pull request changes."""
        noise = Noise(build=0.0005, measurement=0.001, spike_rate=0)
        compiler = SimulatedCompiler(
            KNOBS, effects=EFFECTS, noise=noise, base_latency_ms=milliseconds
        )
        write_simulated_model(self.folder, compiler, seed=1)

    def ci(self, *words: object) -> Ended:
        """A run in which the default ships, if it has to tune at all."""
        return self.run(*DEFAULT_SHIPS, *words)

    def run(self, *words: object) -> Ended:
        own = ("--model", self.model, "--baseline", self.store)
        return call("ci", *own, *REPLAY, *BRIEF, *words)

    def ci_json(self, *words: object) -> tuple[int, dict[str, Any]]:
        ended = self.ci("--json", *words)
        assert ended.out, ended.err
        return ended.code, json.loads(ended.out)

    def was_accepted_with(self, **facts: str) -> Path:
        """Let the first entry be a candidate, and what was accepted one with other facts.

        Returns:
            The folder of the accepted entry.
        """
        (candidate,) = self.entries()
        accepted = candidate.with_name("model-before")
        shutil.copytree(candidate, accepted)
        document = json.loads((accepted / "entry.json").read_text())
        document |= {"id": accepted.name, "key": "0" * 16}
        document["facts"] |= facts
        (accepted / "entry.json").write_text(json.dumps(document))
        (run,) = (candidate / "runs").iterdir()
        text = json.dumps({**json.loads(run.read_text()), "accepted": False})
        run.write_text(text)
        return accepted

    def copy(self, folder: Path) -> Pipeline:
        shutil.copytree(self.folder, folder)
        return Pipeline(folder)
