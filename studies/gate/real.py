"""The gate on a real repository, with ONNX Runtime on the processor: real comparisons of each situation.

    python studies/gate/real.py run OUT --inputs INPUTS/ppocr-cls/search --previous-python OLD/bin/python
    python studies/gate/real.py table OUT/real.jsonl

OUT/repository is a git repository as a team has it: model.onnx, real inputs, a base with one processor thread, and
ci.sh, the call of the gate. The model is a text-angle classifier (public:ppocr-cls) that looks at each line in ten
brightnesses and takes the mean, so that "one more brightness" is ten percent more work by construction. What main
ships was accepted into a store, and the gate has measured it six times.

Each change is a branch with one commit: the pull request's run (`--candidate`) tunes and compares, main's run (here
with --no-archive, so that every change meets the same baseline) takes the engine from the store and compares again.
That makes two comparisons a change, ten changes a situation:

* unchanged: nothing differs; the gate must not tune;
* weights: every weight is changed by about 0.1 %;
* shape: lines are shorter or longer; nothing can be compared, and the gate must say so;
* runtime: the store was made by another onnxruntime (`--previous-python`, an environment with smart-tuner, too);
* slower: eleven brightnesses instead of ten, and other weights;
* forced: nothing differs, but the gate is told to tune (`--retune`, both times) and compares two equal engines side by
  side.

The same command goes on where it was stopped: comparisons that OUT/real.jsonl holds are not repeated. Situations
take turns, so that a part of it is a smaller study of all. Searches are kept small (one knob, two trials, no
finalists): what is tried here is the gate, not the search.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from smart_tuner.model.public import fetch_public_model

if TYPE_CHECKING:
    from collections.abc import Iterator

VIEWS, WIDTH, KNOWN_RUNS = 10, 96, 6
WIDTHS = (56, 64, 72, 80, 88, 104, 112, 120, 128, 136)
STEPS = ("pull request", "main")
PERSON = ["-c", "user.name=study", "-c", "user.email=study@example.invalid"]

CALL = """#!/bin/sh
# The gate of this repository. STORE is the store, PYTHON an interpreter with smart-tuner.
exec "$PYTHON" -m smart_tuner ci --model model.onnx --name classifier --baseline "$STORE" --inputs inputs \\
  --base base.toml --metric linf --epsilon 0.02 --only graph_optimization_level --all-knobs \\
  --trials 2 --min-gain 9 --budget 60s "$@"
"""


@dataclass(frozen=True)
class Situation:
    """One thing that can happen to a repository.

    Attributes:
        due: What the gate must name as the reason to tune; empty if it must not tune.
        answers: The answers that are right.
        words: Options of the gate beside those of ci.sh.
        store: Which store it begins with.
    """

    due: str
    answers: tuple[str, ...]
    words: tuple[str, ...] = ()
    store: str = "store"


FINE = ("passed", "unclear")
SITUATIONS = {
    "unchanged": Situation("", FINE),
    "weights": Situation("model", FINE),
    "shape": Situation("shapes", ("not compared",)),
    "runtime": Situation("backend version", FINE, store="store-before"),
    "slower": Situation("model", ("slower",)),
    "forced": Situation("asked for", FINE, ("--retune",)),
}


@dataclass(frozen=True)
class Repository:
    """A git repository with a model, and the stores beside it."""

    out: Path
    network: onnx.ModelProto
    pictures: dict[str, np.ndarray]
    options: argparse.Namespace

    @property
    def folder(self) -> Path:
        return self.out / "repository"

    def git(self, *words: str) -> None:
        subprocess.run(["git", *PERSON, *words], cwd=self.folder, check=True, stdout=subprocess.DEVNULL)

    def write(self, *, views: int = VIEWS, width: int = WIDTH, seed: int | None = None) -> None:
        """The files of one commit."""
        onnx.save(several_views(self.network, views, seed), self.folder / "model.onnx")
        shutil.rmtree(self.folder / "inputs", ignore_errors=True)
        (self.folder / "inputs").mkdir()
        for name, picture in self.pictures.items():
            np.savez(self.folder / "inputs" / f"{name}.inputs.npz", x=np.ascontiguousarray(picture[..., :width]))

    def begin(self) -> None:
        """Main's first commit, unless it is there."""
        if (self.folder / ".git").is_dir():
            self.git("checkout", "--quiet", "--force", "main")
            return
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch", "main")
        (self.folder / "base.toml").write_text('"threads:intra" = 1\n')
        (self.folder / "ci.sh").write_text(CALL)
        (self.folder / "ci.sh").chmod(0o755)
        self.write()
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "Ship the classifier")

    def store(self, name: str) -> Path:
        """A store that has seen main, made on first use by the runtime that it is to be of."""
        store = self.out / name
        if store.is_dir():
            return store
        self.git("checkout", "--quiet", "--force", "main")
        python = self.options.previous_python if name == "store-before" else sys.executable
        growing = self.out / f"{name}.partial"
        shutil.rmtree(growing, ignore_errors=True)
        # Two runtimes are compared side by side: earlier runs play no part.
        runs = 1 if name == "store-before" else KNOWN_RUNS
        for number in range(runs):
            code, outcome, seconds = self.ci(growing, ["--init"], python)
            say(f"{name}: main's run {number + 1} of {runs}: {outcome.get('answer')}, {seconds:.0f} s")
            if code != 0:
                sys.exit(f"The gate failed on main: {outcome}")
        growing.rename(store)
        return store

    def ci(self, store: Path, words: list[str], python: str = "") -> tuple[int, dict[str, Any], float]:
        """Run ci.sh; exit code, answer, seconds."""
        own = {"STORE": str(store), "PYTHON": python or sys.executable}
        rounds = ["--rounds", str(self.options.rounds)]
        started = time.monotonic()
        ended = subprocess.run(
            ["./ci.sh", *rounds, "--json", *words],
            cwd=self.folder,
            env={**os.environ, **own},
            capture_output=True,
            text=True,
            check=False,
        )
        seconds = time.monotonic() - started
        try:
            return ended.returncode, json.loads(ended.stdout), seconds
        except ValueError:
            # No answer is no comparison: nothing is kept, the same command tries it again.
            sys.exit(f"The gate gave no answer, exit code {ended.returncode}:\n{ended.stderr[-2000:]}")


def several_views(network: onnx.ModelProto, views: int, seed: int | None) -> onnx.ModelProto:
    """The network as it judges one line in several brightnesses and takes the mean.

    Args:
        network: With one input ``x`` and one output, a row a line.
        views: How many brightnesses: the work is proportional to it.
        seed: Of a change of all weights by about 0.1 %; ``None`` for the network's own.
    """
    model = onnx.ModelProto.FromString(network.SerializeToString())
    graph = model.graph
    result = graph.output[0].name
    for node in graph.node:
        node.input[:] = ["views" if name == "x" else name for name in node.input]
        node.output[:] = ["each" if name == result else name for name in node.output]
    if seed is not None:
        dice = np.random.default_rng(seed)
        constants = [item.t for node in graph.node if node.op_type == "Constant" for item in node.attribute]
        for tensor in (*graph.initializer, *constants):
            # Matrices and kernels; a scale or a size is nothing that training changes.
            if tensor.data_type == onnx.TensorProto.FLOAT and len(tensor.dims) > 1:
                weights = numpy_helper.to_array(tensor)
                changed = weights * (1 + 1e-3 * dice.standard_normal(weights.shape))
                tensor.CopyFrom(numpy_helper.from_array(changed.astype(np.float32), tensor.name))
    factors = np.linspace(0.9, 1.1, views, dtype=np.float32).reshape(views, 1, 1, 1)
    graph.initializer.append(numpy_helper.from_array(factors, "brightnesses"))
    graph.node.insert(0, helper.make_node("Mul", ["x", "brightnesses"], ["views"]))
    graph.node.append(helper.make_node("ReduceMean", ["each"], [result], axes=[0], keepdims=1))
    onnx.checker.check_model(model)
    return model


def change(repository: Repository, situation: str, number: int) -> None:
    """Commit what happened on a branch of its own."""
    repository.git("checkout", "--quiet", "--force", "-B", f"{situation}-{number}", "main")
    if situation == "weights":
        repository.write(seed=number)
    elif situation == "slower":
        repository.write(views=VIEWS + 1, seed=100 + number)
    elif situation == "shape":
        repository.write(width=WIDTHS[number % len(WIDTHS)])
    repository.git("add", "--all")
    repository.git("commit", "--quiet", "--allow-empty", "--message", f"{situation} {number}")


def row_of(situation: str, number: int, step: str, ran: tuple[int, dict[str, Any], float]) -> dict[str, Any]:
    """One comparison as a line, with whether it is as it should be."""
    code, outcome, seconds = ran
    wanted = SITUATIONS[situation]
    answer, due = outcome.get("answer", "error"), outcome.get("due", [])
    # What the pull request tuned is in the store when main runs.
    must_tune = bool(wanted.due) and (step == "pull request" or bool(wanted.words))
    named = any(line.startswith(wanted.due) for line in due) if must_tune else not due
    right = named and bool(outcome.get("tuned")) is must_tune and answer in wanted.answers
    right = right and code == (1 if answer == "slower" else 0)
    names = ("compared", "slowdown", "ratios", "candidate_ms", "sentence", "due")
    return {
        "situation": situation,
        "change": number,
        "step": step,
        "answer": answer,
        "as_it_should_be": right,
        "exit_code": code,
        "tuned": bool(outcome.get("tuned")),
        "seconds": round(seconds, 1),
        "load": round(os.getloadavg()[0], 2),
        "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        **{name: outcome.get(name) for name in names},
    }


def compare(repository: Repository, situation: str, number: int, known: set[str]) -> Iterator[dict[str, Any]]:
    """Both comparisons of one change, less those that are known."""
    wanted = SITUATIONS[situation]
    base = repository.store(wanted.store)
    change(repository, situation, number)
    store = repository.out / "store-of-this-change"
    shutil.rmtree(store, ignore_errors=True)
    shutil.copytree(base, store)
    before = ["--previous-python", repository.options.previous_python] if situation == "runtime" else []
    for step in STEPS:
        words = [*wanted.words, "--candidate" if step == STEPS[0] else "--no-archive", *before]
        row = row_of(situation, number, step, repository.ci(store, words))
        if step not in known:
            yield row
    shutil.rmtree(store)


def run(options: argparse.Namespace) -> int:
    options.out.mkdir(parents=True, exist_ok=True)
    lines = options.out / "real.jsonl"
    rows = read(lines)
    names = [name for name in SITUATIONS if not options.situations or name in options.situations]
    if not options.previous_python and "runtime" in names:
        names.remove("runtime")
        say("runtime is left out: it needs --previous-python")
    files = sorted(options.inputs.glob("*.inputs.npz"))[: options.pictures]
    if not files:
        sys.exit(f"{options.inputs} holds no *.inputs.npz: studies/precision/inputs.py makes some")
    pictures = {file.name.removesuffix(".inputs.npz"): np.load(file)["x"] for file in files}
    repository = Repository(options.out, onnx.load(fetch_public_model("ppocr-cls")), pictures, options)
    repository.begin()
    changes = -(-options.count // len(STEPS))
    total, started, fresh = changes * len(STEPS) * len(names), time.monotonic(), 0
    for number in range(changes):
        for name in names:
            known = {row["step"] for row in rows if (row["situation"], row["change"]) == (name, number)}
            if known >= set(STEPS):
                continue
            for row in compare(repository, name, number, known):
                rows.append(row)
                fresh += 1
                with lines.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
                left = (total - len(rows)) * (time.monotonic() - started) / fresh
                mark = "" if row["as_it_should_be"] else "  <-- not as it should be"
                say(
                    f"{len(rows)} of {total}: {name} {number}, {row['step']}: {row['answer']}, {shown(row)}"
                    f"{row['seconds']:.0f} s; about {left / 60:.0f} min left{mark}"
                )
    print(f"\n{table(rows)}")
    return 0


def shown(row: dict[str, Any]) -> str:
    found = row["slowdown"]
    return f"{found['value']:.3f}x ({found['low']:.3f}-{float(found['high']):.3f}), " if found else ""


def read(path: Path) -> list[dict[str, Any]]:
    """The comparisons of a file; a line that was cut short does not count, and is taken out."""
    if not path.is_file():
        return []
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole, encoding="utf-8")
    return [json.loads(line) for line in whole.splitlines()]


def table(rows: list[dict[str, Any]]) -> str:
    """One line a situation, as Markdown."""
    head = ("situation", "comparisons", "as it should be", "passed", "unclear", "not compared", "slower", "other")
    head += ("slow-down: median (least to most)", "seconds, pull request: median (most)", "seconds, main")
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    for name in SITUATIONS:
        mine = [row for row in rows if row["situation"] == name]
        if not mine:
            continue
        counts = [sum(row["answer"] == answer for row in mine) for answer in ("passed", "unclear", "not compared", "slower")]
        values = [row["slowdown"]["value"] for row in mine if row["slowdown"]]
        spread = f"{statistics.median(values):.3f}x ({min(values):.3f} to {max(values):.3f})" if values else ""
        took = [
            f"{statistics.median(seconds):.0f} ({max(seconds):.0f})" if seconds else ""
            for seconds in ([row["seconds"] for row in mine if row["step"] == step] for step in STEPS)
        ]
        right = sum(row["as_it_should_be"] for row in mine)
        cells = (name, len(mine), right, *counts, len(mine) - sum(counts), spread, *took)
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S', time.gmtime())} {text}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run")
    running.add_argument("out", type=lambda text: Path(text).resolve())
    running.add_argument("--inputs", type=Path, required=True, help="folder with *.inputs.npz for ppocr-cls")
    running.add_argument("--pictures", type=int, default=3, help="inputs that are kept in the repository")
    running.add_argument("--previous-python", default="", help="interpreter with another onnxruntime, and smart-tuner")
    running.add_argument("--count", type=int, default=20, help="comparisons of each situation")
    running.add_argument("--rounds", type=int, default=4)
    running.add_argument("--situations", nargs="*", choices=list(SITUATIONS))
    showing = commands.add_parser("table")
    showing.add_argument("lines", type=Path, nargs="+")
    options = parser.parse_args()
    if options.command == "run":
        if options.previous_python:
            options.previous_python = os.path.abspath(options.previous_python)
        return run(options)
    print(table([row for path in options.lines for row in read(path)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
