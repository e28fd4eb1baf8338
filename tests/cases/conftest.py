"""The public cases, generated once a session, and the product as its users call it."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import uuid
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import psutil
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import ModuleType

    from tests.conftest import MakeOnce

HERE = Path(__file__).parent
MARK = "SMART_TUNER_CASE_RUN"
RUNTIME_FILE = ".ses"
"""What some versions of onnxruntime write into the folder of temporary files by themselves."""
PATIENCE_SECONDS = 100
NOTE = "smart-tuner: note: "
TROUBLE = ("--backend", "case_backend:CaseBackend", "--sampler", "fast", "--budget", "100s")
"""Options of studies on the misbehaving backend: every route of one knob, in order."""


@pytest.fixture(scope="session")
def case_tools() -> ModuleType:
    """The module ``make_cases``: ``make_cases``, ``mutate_cache``, ``HOSTILE_NAMES``."""
    return load_module("make_cases")


@pytest.fixture(scope="session")
def case_backend() -> ModuleType:
    """The module ``case_backend``: what its knobs do."""
    return load_module("case_backend")


def load_module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def cases(case_tools: ModuleType, make_once: MakeOnce) -> Path:
    """Folder that holds every case but the 2.3 GB one, with its ``manifest.json``."""
    return make_once("cases", case_tools.make_cases)


@pytest.fixture(scope="session")
def case_row(cases: Path) -> Callable[[str], dict[str, Any]]:
    """The manifest's line of a case by its id (``O11a``)."""
    rows = json.loads((cases / "manifest.json").read_text(encoding="utf-8"))
    by_id = {row["id"]: row for row in rows}
    return by_id.__getitem__


@dataclass(frozen=True)
class Run:
    """What one call of the command left on the screen."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """Standard output as strict JSON."""
        return strict_json(self.out)

    @property
    def notes(self) -> str:
        """All notes, whatever stream they went to."""
        lines = [*self.out.splitlines(), *self.err.splitlines()]
        notes = [line for line in lines if line.startswith((NOTE, "note: "))]
        return "\n".join(line.removeprefix("smart-tuner: ") for line in notes)

    @property
    def complaint(self) -> str:
        """The one line that says what is wrong."""
        [line] = [line for line in self.err.splitlines() if not line.startswith(NOTE)]
        assert line.startswith("smart-tuner: ")
        return line.removeprefix("smart-tuner: ")


def strict_json(text: str) -> Any:
    """Read JSON as browsers do: a bare NaN is an error."""
    return json.loads(text, parse_constant=refuse_constant)


def refuse_constant(name: str) -> NoReturn:
    raise AssertionError(f"{name} is no JSON")


@dataclass(frozen=True)
class Product:
    """The command line in a world of its own: device lock, cache and temporary files."""

    world: Path

    def environment(self, extra: Mapping[str, str]) -> dict[str, str]:
        folders = {
            "XDG_RUNTIME_DIR": self.world / "run",
            "XDG_CACHE_HOME": self.world / "cache",
            "TMPDIR": self.world / "tmp",
        }
        for folder in folders.values():
            folder.mkdir(mode=0o700, exist_ok=True)  # a runtime folder has to be private
        own = {name: str(folder) for name, folder in folders.items()}
        own["PYTHONPATH"] = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
        return {**os.environ, **own, **extra}

    @contextmanager
    def started(
        self, *words: str | Path, cwd: Path | None = None, **extra: str
    ) -> Iterator[subprocess.Popen[str]]:
        """Start the command; it does not outlive the test."""
        process = subprocess.Popen(
            [sys.executable, "-m", "smart_tuner", *map(str, words)],
            cwd=cwd or self.world,
            env=self.environment(extra),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    def run(self, *words: str | Path, cwd: Path | None = None, **extra: str) -> Run:
        """Run the command to its end; it leaves no traceback, no orphan, no temporary file.

        Args:
            words: The command line.
            cwd: Where it is called.
            extra: Environment variables.
        """
        mark = uuid.uuid4().hex
        with self.started(*words, cwd=cwd, **extra, **{MARK: mark}) as process:
            out, err = process.communicate(timeout=PATIENCE_SECONDS)
        assert "Traceback" not in out + err
        assert not alive(mark)
        assert {path.name for path in (self.world / "tmp").iterdir()} <= {RUNTIME_FILE}
        return Run(process.returncode, out, err)

    @staticmethod
    def trials(study: Path) -> dict[str, dict[str, Any]]:
        """Finished trials of a study by route."""
        lines = (study / "trials.jsonl").read_text(encoding="utf-8").splitlines()
        return {row["route"]: row for row in map(strict_json, lines)}

    def apply(self, model: Path, *words: str | Path, cwd: Path | None = None) -> dict[str, Any]:
        """Try one route of a model that can be tuned, and return the trial."""
        run = self.run("apply", model, "--json", *words, cwd=cwd)
        assert not [line for line in run.err.splitlines() if not line.startswith(NOTE)]
        trial: dict[str, Any] = run.data
        assert run.code == (0 if trial["outcome"] == "feasible" else 1)
        return {**trial, "notes": run.notes}

    def refuse(self, model: Path, *words: str | Path) -> str:
        """Begin a study that cannot be, and return why; nothing of it is left."""
        study = self.world / f"refused-{uuid.uuid4().hex}"
        run = self.run("tune", model, "--study", study, "--budget", "20s", *words)
        assert run.code == 2
        assert not study.exists()
        return run.complaint


def alive(mark: str) -> list[psutil.Process]:
    """Processes that a call of the command started and that live on."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get(MARK) == mark:
                found.append(process)
    return found


@pytest.fixture(scope="session")
def product(tmp_path_factory: pytest.TempPathFactory) -> Product:
    """The command line of this installation."""
    return Product(tmp_path_factory.mktemp("world"))


@dataclass(frozen=True)
class Study:
    """A study folder and the call that made it."""

    folder: Path
    call: tuple[str | Path, ...]
    run: Run

    @property
    def trials(self) -> dict[str, dict[str, Any]]:
        """Finished trials by route."""
        return Product.trials(self.folder)


@pytest.fixture(scope="session")
def trouble(cases: Path, product: Product, make_once: MakeOnce) -> Study:
    """A finished study in which every route is one kind of trouble; nobody writes to it."""
    call = ("tune", cases / "O23/a_microseconds.onnx", *TROUBLE)

    def fill(folder: Path) -> None:
        loads = str(folder / "loads.txt")
        run = product.run(*call, "--study", folder / "study", "--seed", "1", CASE_LOADS=loads)
        assert run.code == 0
        (folder / "run.json").write_text(json.dumps(asdict(run)), encoding="utf-8")

    folder = make_once("trouble", fill)
    run = Run(**json.loads((folder / "run.json").read_text(encoding="utf-8")))
    return Study(folder / "study", call, run)
