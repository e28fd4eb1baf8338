from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

from smart_tuner.model.dtypes import (
    is_extended,
    is_packed,
    numpy_type,
    stored_bytes,
    type_name,
)
from smart_tuner.model.onnx_codes import NAME_OF_CODE


def test_every_onnx_type_has_a_name_and_a_numpy_type() -> None:
    codes = set(TensorProto.DataType.values()) - {TensorProto.UNDEFINED}
    assert set(NAME_OF_CODE) == codes
    for name in NAME_OF_CODE.values():
        dtype = numpy_type(name)
        assert type_name(np.zeros(1, dtype)) == name
        assert is_extended(name) == (dtype.kind != "O" and dtype.type.__module__ == "ml_dtypes")


def test_other_names_have_none() -> None:
    for name in ("unknown", "datetime64", "float128x"):
        with pytest.raises(ValueError, match=name):
            numpy_type(name)


def test_packed_types_share_bytes() -> None:
    assert [name for name in NAME_OF_CODE.values() if is_packed(name)] != []
    assert stored_bytes("int4", 3) == 2
    assert stored_bytes("int2", 5) == 2
    assert stored_bytes("float6_e2m3fn", 5) == 4
    assert stored_bytes("bfloat16", 3) == 6
    assert stored_bytes("bool", 3) == 3
    assert stored_bytes("float64", 0) == 0


def test_text_has_one_name() -> None:
    for array in (np.array(["a"]), np.array([b"a"]), np.array(["a"], object)):
        assert type_name(array) == "string"
