from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from smart_tuner.model.spec import ModelSpec, TensorSpec
from smart_tuner.model.tensors import load_tensors, save_tensors
from smart_tuner.model.workload import ReferencePair, Workload, WorkloadPoint
from smart_tuner.trial.evaluate import Evaluator, EvaluatorOptions

HERE = Path(__file__).parent
MakeEvaluator = Callable[..., Evaluator]


@pytest.fixture
def workload(tmp_path: Path) -> Workload:
    return make_workload(tmp_path)


def make_workload(tmp_path: Path) -> Workload:
    """Two points with two search pairs each, and a held-out pair at the first."""
    folder = tmp_path / "model"
    folder.mkdir(exist_ok=True)
    path = folder / "toy.model"
    path.write_text("toy")
    tensors = (TensorSpec("x", "float32", ("n",)),), (TensorSpec("y", "float32", ("n",)),)
    model = ModelSpec(path, "0" * 64, 3, *tensors, ir_version=8, opsets={"": 17}, operators={})
    points = []
    for number, name in enumerate(("small", "large"), start=1):
        pairs: list[ReferencePair] = []
        for pair in ("a", "b", "held") if number == 1 else ("a", "b"):
            inputs = folder / f"{name}-{pair}.inputs"
            x = np.arange(1, 4 * number + 1, dtype=np.float32) + len(pairs)
            save_tensors(inputs, {"x": x})
            outputs = tmp_path / "references" / f"{name}-{pair}.outputs"
            pairs.append(ReferencePair(pair, inputs, outputs, held_out=pair == "held"))
        points.append(WorkloadPoint(name, 1.0, {"x": (4 * number,)}, tuple(pairs), synthetic=True))
    return Workload(model, tuple(points))


def write_references(workload: Workload) -> None:
    for point in workload.points:
        for pair in point.pairs:
            pair.outputs.parent.mkdir(exist_ok=True)
            save_tensors(pair.outputs, {"y": 2 * load_tensors(pair.inputs)["x"]})


@pytest.fixture
def make_evaluator(
    workload: Workload, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[MakeEvaluator]:
    """Make evaluators on the toy backend; in the end, no child of this test is left."""
    monkeypatch.syspath_prepend(HERE)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    # Direct children only: a browser or database that other tests share starts more of its own.
    before = {process.pid for process in psutil.Process().children()}
    made: list[Evaluator] = []

    def make(
        base: Mapping[str, str] | None = None, *, given: bool = True, **options: Any
    ) -> Evaluator:
        if given:
            write_references(workload)
        settings = EvaluatorOptions("toy_backend:ToyBackend", base or {}, **options)
        made.append(Evaluator(workload, settings, tmp_path))
        made[-1].make_references()
        return made[-1]

    yield make
    for evaluator in made:
        evaluator.close()
    left = {process.pid for process in psutil.Process().children()}
    assert left <= before
