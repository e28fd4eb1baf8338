from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from smart_tuner.errors import UserInputError
from smart_tuner.model.prepare import InputOptions, prepare_workload
from smart_tuner.model.spec import ModelSpec, TensorSpec
from smart_tuner.model.store import read_workload, workload_differences
from smart_tuner.model.tensors import save_tensors

if TYPE_CHECKING:
    from collections.abc import Callable

NET = ModelSpec(
    Path("/m.onnx"),
    "0" * 64,
    1,
    (TensorSpec("a b", "float32", ("N", 2)),),
    (TensorSpec("y", "float32", ("N", 2)),),
    10,
    {"": 17},
    {},
)
X = np.ones((2, 2), np.float32)


def prepared(folder: Path, net: ModelSpec = NET, **options: Any) -> Path:
    prepare_workload(net, InputOptions(**options), folder)
    return folder


def test_a_workload_is_opened_again_wherever_its_folder_goes(tmp_path: Path) -> None:
    old, _ = prepare_workload(NET, InputOptions(seed=1), tmp_path / "old")
    assert read_workload(NET, tmp_path / "old") == old
    shutil.move(tmp_path / "old", tmp_path / "new")
    moved = read_workload(NET, tmp_path / "new")
    assert moved.points[0].pairs[0].inputs == tmp_path / "new/default/synthetic-0.inputs"
    assert str(tmp_path) not in (tmp_path / "new/workload.json").read_text()


def test_outputs_that_the_backend_makes_later_are_no_change(tmp_path: Path) -> None:
    folder = prepared(tmp_path / "w")
    workload = read_workload(NET, folder)
    save_tensors(workload.points[0].pairs[0].outputs, {"y": X})
    assert read_workload(NET, folder) == workload
    assert workload_differences(folder, prepared(tmp_path / "again")) == ()


def test_a_changed_tensor_file_is_noticed(tmp_path: Path) -> None:
    folder = prepared(tmp_path / "w")
    pair = read_workload(NET, folder).points[0].pairs[0]
    save_tensors(pair.inputs, {"a b": X})
    with pytest.raises(UserInputError, match="was changed since the study began"):
        read_workload(NET, folder)
    pair.inputs.unlink()
    with pytest.raises(UserInputError, match=r"synthetic-0\.inputs: cannot be read"):
        read_workload(NET, folder)


def test_another_model_is_refused(tmp_path: Path) -> None:
    folder = prepared(tmp_path / "w")
    with pytest.raises(UserInputError, match="prepared for another model"):
        read_workload(replace(NET, sha256="1" * 64), folder)


def outside(data: dict[str, Any]) -> object:
    data["points"][0]["pairs"][0]["inputs"] = "../secret"
    return data


def absolute(data: dict[str, Any]) -> object:
    data["points"][0]["pairs"][0]["outputs"] = "/etc/passwd"
    return data


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (outside, "leads out of the folder"),
        (absolute, "leads out of the folder"),
        (lambda data: {**data, "schema_version": 2}, "newer smart_tuner"),
        (lambda data: {**data, "more": 1}, "damaged"),
        (lambda data: {**data, "points": "x"}, "damaged"),
        (lambda data: [data], "damaged"),
    ],
)
def test_a_doctored_file_is_refused(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], cause: str
) -> None:
    folder = prepared(tmp_path / "w")
    file = folder / "workload.json"
    file.write_text(json.dumps(change(json.loads(file.read_text()))))
    with pytest.raises(UserInputError, match=cause):
        read_workload(NET, folder)


def test_a_missing_or_torn_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserInputError, match="prepare the workload again"):
        read_workload(NET, tmp_path)
    file = prepared(tmp_path / "w") / "workload.json"
    file.write_bytes(file.read_bytes()[:-5])
    with pytest.raises(UserInputError, match="damaged"):
        read_workload(NET, file.parent)


def test_differences_are_named(tmp_path: Path) -> None:
    save_tensors(tmp_path / "in.inputs", {"a b": X})
    np.savez(tmp_path / "out.npz", y=X)
    np.savez(tmp_path / "out2.npz", y=X + 1)
    inputs = (str(tmp_path / "in.inputs"),)

    def folder(name: str, **options: Any) -> Path:
        return prepared(tmp_path / name, **options)

    seed = folder("seed", seed=1)
    assert workload_differences(seed, folder("same", seed=1)) == ()
    assert workload_differences(seed, folder("seed2", seed=2)) == (
        "point default: inputs of pair synthetic-0 changed",
        "point default: inputs of pair synthetic-1 changed",
    )
    changed = workload_differences(seed, folder("shape", seed=1, shapes={"a b": (3, 2)}))
    assert changed[0] == "point default: shapes {'a b': [1, 2]} are now {'a b': [3, 2]}"
    real = folder("real", inputs=inputs, references=(str(tmp_path / "out.npz"),))
    other = folder("other", inputs=inputs, references=(str(tmp_path / "out2.npz"),))
    assert workload_differences(real, other) == (
        "point default: trusted outputs of pair in changed",
    )
    held = folder("held", held_out=inputs)
    assert (
        "point default: pairs synthetic-0, synthetic-1 are now synthetic-0, synthetic-1, in"
        in (workload_differences(folder("synthetic", shapes={"a b": (2, 2)}), held))
    )
    other_model = prepared(tmp_path / "model", replace(NET, sha256="1" * 64), seed=1)
    assert workload_differences(seed, other_model) == ("model: the file or its weights changed",)
