from __future__ import annotations

import json
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from smart_tuner.errors import EnvironmentNotFit, UserInputError
from smart_tuner.model.tensors import (
    is_tensor_file,
    load_tensors,
    save_tensors,
    tensors_digest,
)

BITS = {
    "bfloat16": np.uint16,
    "float8_e4m3fn": np.uint8,
    "float8_e5m2": np.uint8,
    "int8": np.int8,
    "bool": np.bool_,
    "float16": np.float16,
    "float32": np.float32,
    "float64": np.float64,
    "int64": np.int64,
    "uint64": np.uint64,
    "complex64": np.complex64,
}


@st.composite
def arrays(draw: st.DrawFn) -> np.ndarray[Any, Any]:
    name = draw(st.sampled_from([*BITS, "text"]))
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3))
    if name == "text":
        count = int(np.prod(shape))
        flat = np.empty(count, object)
        flat[:] = draw(st.lists(st.text(max_size=4), min_size=count, max_size=count))
        return flat.reshape(shape)
    stored = draw(hnp.arrays(np.dtype(BITS[name]), shape))
    wanted = getattr(ml_dtypes, name, None)
    return stored if wanted is None else stored.view(wanted)


def same(left: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> bool:
    if left.dtype != right.dtype or left.shape != right.shape:
        return False
    if left.dtype == object:
        return bool(left.tolist() == right.tolist())
    return left.tobytes() == right.tobytes()


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.text(max_size=8), arrays(), max_size=4))
def test_every_name_and_every_bit_survives(tensors: dict[str, np.ndarray[Any, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pair.inputs"
        save_tensors(path, tensors)
        again = load_tensors(path)
        assert list(again) == list(tensors)
        assert all(same(again[name], tensors[name]) for name in tensors)
        assert tensors_digest(again) == tensors_digest(tensors)
        assert [file.name for file in Path(folder).iterdir()] == ["pair.inputs"]


@pytest.mark.parametrize("name", ["int4", "uint4", "int2", "float4_e2m1fn", "float8_e8m0fnu"])
def test_narrow_types_are_kept(tmp_path: Path, name: str) -> None:
    array = np.array([[0, 1], [1, 1]], np.float32).astype(getattr(ml_dtypes, name))
    save_tensors(
        tmp_path / "t", {"x": array, "empty": array[:0], "scalar": array[0, 0:1].reshape(())}
    )
    again = load_tensors(tmp_path / "t")
    assert same(again["x"], array)
    assert again["empty"].shape == (0, 2)
    assert again["scalar"].shape == ()


def test_layout_and_byte_order_do_not_matter(tmp_path: Path) -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    forms = {
        "c": array,
        "fortran": np.asfortranarray(array),
        "strided": np.repeat(array, 2, 1)[:, ::2],
    }
    forms["big"] = array.astype(">f4")
    save_tensors(tmp_path / "t", forms)
    for again in load_tensors(tmp_path / "t").values():
        assert again.dtype == np.float32
        np.testing.assert_array_equal(again, array)


def test_unicode_arrays_come_back_as_objects(tmp_path: Path) -> None:
    save_tensors(tmp_path / "t", {"s": np.array(["\u00e9", ""]), "b": np.array([b"ab"])})
    again = load_tensors(tmp_path / "t")
    assert again["s"].dtype == object
    assert again["s"].tolist() == ["\u00e9", ""]
    assert again["b"].tolist() == ["ab"]


def test_what_was_read_can_be_changed(tmp_path: Path) -> None:
    save_tensors(tmp_path / "t", {"x": np.zeros(2, np.float32)})
    again = load_tensors(tmp_path / "t")["x"]
    again[0] = 1
    assert again[0] == 1


def test_equal_tensors_give_equal_files_and_digests(tmp_path: Path) -> None:
    x, y = np.zeros(2, np.float32), np.ones(3, np.int64)
    save_tensors(tmp_path / "a", {"x": x, "y": y})
    save_tensors(tmp_path / "b", {"x": x.copy(), "y": y.copy()})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    digest = tensors_digest({"x": x, "y": y})
    assert tensors_digest({"y": y, "x": x}) == digest
    assert tensors_digest({"x": x.reshape(2, 1), "y": y}) != digest
    assert tensors_digest({"x": x.view(np.int32), "y": y}) != digest


def test_numpy_alone_reads_the_numbers(tmp_path: Path) -> None:
    save_tensors(tmp_path / "t.npz", {"file": np.arange(3)})
    with np.load(tmp_path / "t.npz") as archive:
        np.testing.assert_array_equal(archive["0"], np.arange(3))


@pytest.mark.parametrize(
    "array",
    [np.array([object()]), np.array([1, "a"], object), np.zeros(1, "M8[s]"), np.zeros(1, "i4,f4")],
)
def test_what_no_onnx_tensor_holds_is_refused(tmp_path: Path, array: np.ndarray[Any, Any]) -> None:
    with pytest.raises(UserInputError, match="'x'"):
        save_tensors(tmp_path / "t", {"x": array})
    assert not list(tmp_path.iterdir())


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "t"
    save_tensors(path, {"x": np.zeros(1)})
    before = path.read_bytes()
    with pytest.raises(UserInputError):
        save_tensors(path, {"x": np.zeros(1), "y": np.array([object()])})
    assert path.read_bytes() == before
    with pytest.raises(EnvironmentNotFit, match="cannot be written"):
        save_tensors(tmp_path / "missing" / "t", {"x": np.zeros(1)})
    assert [file.name for file in tmp_path.iterdir()] == ["t"]


def test_a_missing_or_foreign_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserInputError, match="No such file"):
        load_tensors(tmp_path / "none")
    (tmp_path / "text").write_text("hello")
    np.savez(tmp_path / "plain.npz", x=np.zeros(1))
    for name in ("text", "plain.npz"):
        assert not is_tensor_file(tmp_path / name)
        with pytest.raises(UserInputError, match="not a tensor file"):
            load_tensors(tmp_path / name)


def test_damage_anywhere_is_noticed_or_harmless(tmp_path: Path) -> None:
    path = tmp_path / "t"
    tensors = {"x": np.arange(4, dtype=np.float32), "s": np.array(["a"])}
    save_tensors(path, tensors)
    digest, whole = tensors_digest(tensors), path.read_bytes()
    for place in range(0, len(whole), 3):
        for damaged in (
            whole[:place],
            whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :],
        ):
            path.write_bytes(damaged)
            try:
                assert tensors_digest(load_tensors(path)) == digest
            except UserInputError as error:
                assert "\n" not in str(error)  # noqa: PT017


def rewritten(path: Path, table: object, members: dict[str, bytes], packing: int = 0) -> None:
    with zipfile.ZipFile(path, "w", packing) as archive:
        archive.writestr("table.json", table if isinstance(table, str) else json.dumps(table))
        for name, data in members.items():
            archive.writestr(name, data)


def header(text: str) -> bytes:
    raw = text.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(raw).to_bytes(2, "little") + raw


ROW = {"name": "x", "dtype": "float32", "shape": [2]}
GOOD = header("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }") + bytes(8)
ABSURD = header("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000000,), }")
PICKLED = header("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }") + b"."


def table(*rows: object, **other: object) -> dict[str, object]:
    return {"format": "smart_tuner tensors", "version": 1, "tensors": list(rows), **other}


@pytest.mark.parametrize(
    ("content", "data"),
    [
        (table(ROW), ABSURD),
        (table(ROW), PICKLED),
        (table(ROW), GOOD[:-1]),
        (table(ROW), GOOD + b"\0"),
        (table(ROW), b""),
        (table({**ROW, "dtype": "float64"}), GOOD),
        (table({**ROW, "dtype": "nonsense"}), GOOD),
        (table({**ROW, "dtype": "string"}), GOOD),
        (table({**ROW, "shape": [-1]}), GOOD),
        (table({**ROW, "shape": [True, 2]}), GOOD),
        (table({**ROW, "more": 1}), GOOD),
        (table(ROW, ROW), GOOD),
        (table(ROW, version=2), GOOD),
        (table(ROW, format="other"), GOOD),
        (table(tensors={}), GOOD),
        ([1], GOOD),
        ("[" * 100_000, GOOD),
        ("{", GOOD),
    ],
)
def test_hostile_content_is_refused(tmp_path: Path, content: object, data: bytes) -> None:
    rewritten(tmp_path / "t", content, {"0.npy": data, "1.npy": data})
    with pytest.raises(UserInputError) as caught:
        load_tensors(tmp_path / "t")
    assert "\n" not in str(caught.value)


def test_good_content_of_that_form_is_read(tmp_path: Path) -> None:
    rewritten(tmp_path / "t", table(ROW), {"0.npy": GOOD})
    assert load_tensors(tmp_path / "t")["x"].tolist() == [0, 0]
    rewritten(tmp_path / "t", table(ROW), {})
    with pytest.raises(UserInputError, match=r"0\.npy is missing"):
        load_tensors(tmp_path / "t")


def test_archives_that_blow_up_are_refused(tmp_path: Path) -> None:
    rewritten(tmp_path / "t", table(ROW), {"0.npy": GOOD}, zipfile.ZIP_BZIP2)
    with pytest.raises(UserInputError):
        load_tensors(tmp_path / "t")
