from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from smart_tuner.errors import UserInputError
from smart_tuner.validate.constraint import METRIC_NAMES, AccuracyConstraint
from smart_tuner.validate.metrics import METRICS, resolve_metric

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

    Tensor = npt.NDArray[Any]

DTYPES = [
    *("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
    *(ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.int4),
    *(ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2fnuz, ml_dtypes.uint4),
]
NAN, INF = math.nan, math.inf


def loss(
    metric: str, reference: object, actual: object, *, rtol: float = 1e-3, atol: float = 1e-4
) -> float:
    constraint = AccuracyConstraint(metric=metric, rtol=rtol, atol=atol)
    return METRICS[metric](np.asarray(reference), np.asarray(actual), constraint)


def test_every_known_name_has_a_metric() -> None:
    assert tuple(METRICS) == METRIC_NAMES
    assert all(resolve_metric(name) is METRICS[name] for name in METRIC_NAMES)


def test_the_same_mismatch_under_the_five_metrics() -> None:
    # Ten outputs in trtexec's proportions on MNIST: thresholds do not carry over.
    difference = np.array([3.492, 1.9, 1.8, 1.7, 1.5, 1.2, 1.0, 0.8, 0.6, 0.328]) * 1e-3
    along = np.array([1.0, -1.0] * 5)
    across = difference * np.sqrt(np.square(difference).sum())
    reference = along - along @ across / (across @ across) * across
    reference *= math.sqrt(np.square(difference).sum() / 0.003) / np.linalg.norm(reference)
    actual = reference + difference
    figures = {name: loss(name, reference, actual, rtol=1e-5, atol=1e-5) for name in METRICS}
    assert figures["l0"] == 1.0
    assert round(figures["l1"], 6) == 0.001432
    assert round(figures["l2"], 6) == 0.000003
    assert round(figures["linf"], 6) == 0.003492
    assert figures["cos"] == pytest.approx(0.0015, rel=0.01)


def test_the_definitions() -> None:
    reference, actual = [1.0, 2.0, -4.0, 0.0], [1.5, 2.0, -4.0, -1.0]
    assert loss("l0", reference, actual) == 0.5
    assert loss("l0", reference, actual, rtol=0.5, atol=0.0) == 0.25
    assert loss("l0", reference, actual, rtol=0.0, atol=1.0) == 0.0, "at the tolerance is inside"
    assert loss("l1", reference, actual) == 0.375
    assert loss("l2", reference, actual) == 0.3125
    assert loss("linf", reference, actual) == 1.0
    cosine = np.dot(reference, actual) / np.linalg.norm(reference) / np.linalg.norm(actual)
    assert loss("cos", reference, actual) == pytest.approx(1 - cosine)
    assert loss("cos", [1.0, 0.0], [0.0, 1.0]) == pytest.approx(1.0)
    assert loss("cos", [1.0, 2.0], [-1.0, -2.0]) == pytest.approx(2.0)


@pytest.mark.parametrize("metric", METRICS)
def test_zero_references(metric: str) -> None:
    zeros, tiny = np.zeros(64, np.float32), np.full(64, 1e-9, np.float32)
    assert loss(metric, zeros, zeros) == 0.0
    assert loss(metric, zeros, -zeros) == 0.0
    figure = loss(metric, zeros, tiny)
    assert math.isfinite(figure)
    assert figure == (1.0 if metric == "cos" else pytest.approx(figure))
    assert loss(metric, tiny, tiny) == 0.0


def test_cosine_has_no_threshold_and_does_not_overflow() -> None:
    for size in (1e-300, 1e-9, 1e200):
        assert loss("cos", [size, 0.0], [size, size]) == pytest.approx(1 - math.sqrt(0.5))
        assert loss("cos", [size, 0.0], [0.0, 0.0]) == 1.0
    assert loss("cos", [1.0, 3.0], [2.0, 6.0]) == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize("metric", METRICS)
def test_what_is_not_finite_must_stand_as_in_the_reference(metric: str) -> None:
    reference = np.array([NAN, INF, -INF, 1.0], np.float32)
    assert loss(metric, reference, reference) == 0.0
    assert loss(metric, reference, [NAN, INF, -INF, 2.0]) == loss(metric, [1.0], [2.0])
    for place in range(4):
        for wrong in (NAN, INF, -INF, 0.0):
            actual = reference.copy()
            actual[place] = wrong
            same = np.array_equal(actual, reference, equal_nan=True)
            finite = place == 3 and wrong == 0.0
            figure = loss(metric, reference, actual)
            assert math.isfinite(figure) if same or finite else figure == INF


@pytest.mark.parametrize("metric", METRICS)
def test_tensors_of_nothing_and_scalars(metric: str) -> None:
    assert loss(metric, np.zeros((0, 4)), np.zeros((0, 4))) == 0.0
    assert loss(metric, [NAN], [NAN]) == 0.0
    assert loss(metric, np.float32(3), np.float32(3)) == 0.0


def test_integers_are_subtracted_exactly() -> None:
    big = np.array([2**53], np.int64)
    assert loss("linf", big, big + 1) == 1.0
    low, high = np.array([-(2**63)], np.int64), np.array([2**63 - 1], np.int64)
    assert loss("linf", low, high) == float(2**64)
    none, most = np.array([0], np.uint64), np.array([2**64 - 1], np.uint64)
    assert loss("l1", none, most) == loss("l1", most, none) == float(2**64)
    assert loss("linf", np.array([-128], np.int8), np.array([127], np.int8)) == 255.0
    assert loss("linf", np.array([0], np.uint8), np.array([255], np.uint8)) == 255.0
    assert loss("l1", np.array([True, False]), np.array([True, True])) == 0.5


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("metric", METRICS)
def test_every_element_type(metric: str, dtype: npt.DTypeLike) -> None:
    one, other = np.array([1, 0, 1, 0]).astype(dtype), np.array([1, 1, 1, 1]).astype(dtype)
    assert loss(metric, one, one) == 0.0
    figure = loss(metric, one, other)
    if one.dtype.kind != "c":
        expected = {"l0": 0.5, "l1": 0.5, "l2": 0.5, "linf": 1.0, "cos": 1 - math.sqrt(0.5)}
        assert figure == pytest.approx(expected[metric])
    assert 0 < figure < INF


@given(
    hnp.arrays(
        st.sampled_from(["f2", "f4", "f8", "c8", "c16", "i1", "i8", "u8", "?", ">f4"]),
        hnp.array_shapes(min_dims=0, min_side=0, max_side=4),
    ),
    st.sampled_from(sorted(METRICS)),
)
def test_a_tensor_has_no_loss_against_itself(tensor: Tensor, metric: str) -> None:
    assert loss(metric, tensor, tensor) == 0.0
    if tensor.dtype.kind == "f":
        for small in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2):
            with np.errstate(all="ignore"):
                rounded = tensor.astype(small)
            assert loss(metric, rounded, rounded) == 0.0


@given(
    st.sampled_from(["f2", "f4", "f8", "i8", "u8", "c16"]).flatmap(
        lambda dtype: st.tuples(hnp.arrays(dtype, 5), hnp.arrays(dtype, 5))
    ),
    st.sampled_from(sorted(METRICS)),
)
def test_a_loss_is_never_negative_and_never_nan(
    tensors: tuple[Tensor, Tensor], metric: str
) -> None:
    assert loss(metric, *tensors) >= 0


METRIC_MODULE = """
import numpy as np
class Family:
    @staticmethod
    def largest(reference, actual):
        return np.abs(reference - actual).max()
number = 3
def good(reference, actual): return np.float32(0.25)
def whole(reference, actual): return 2
def nan(reference, actual): return float("nan")
def negative(reference, actual): return -1.0
def nothing(reference, actual): return None
def text(reference, actual): return "0.5"
def truth(reference, actual): return np.allclose(reference, actual)
def tensor(reference, actual): return reference - actual
def raises(reference, actual): raise KeyError("box")
def infinite(reference, actual): return np.inf
"""


@pytest.fixture
def user_metrics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "users_own_metrics.py").write_text(METRIC_MODULE)
    (tmp_path / "users_broken_metrics.py").write_text("1 / 0")
    (tmp_path / "users_needy_metrics.py").write_text("import a_package_that_is_not_there")
    monkeypatch.syspath_prepend(str(tmp_path))


def users_loss(name: str) -> float:
    tensor = np.ones(3, np.float32)
    return resolve_metric(name)(tensor, tensor * 2, AccuracyConstraint(metric=name))


@pytest.mark.usefixtures("user_metrics")
def test_the_users_own_metric() -> None:
    assert users_loss("users_own_metrics:good") == 0.25
    assert users_loss("users_own_metrics:whole") == 2.0
    assert users_loss("users_own_metrics:Family.largest") == 1.0
    assert users_loss("users_own_metrics:infinite") == INF


@pytest.mark.usefixtures("user_metrics")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("users_own_metrics:absent", "no function 'absent'"),
        ("users_own_metrics:number", "is a int, not a function"),
        ("users_own_metrics:nan", "returned nan"),
        ("users_own_metrics:negative", "returned -1.0"),
        ("users_own_metrics:nothing", "returned None"),
        ("users_own_metrics:text", "returned '0.5'"),
        ("users_own_metrics:truth", "returned False"),
        ("users_own_metrics:tensor", "returned array"),
        ("users_own_metrics:raises", "raised KeyError: 'box'"),
        ("users_broken_metrics:f", "raised ZeroDivisionError"),
        ("users_needy_metrics:f", "no module 'a_package_that_is_not_there'"),
        ("users_absent_metrics:f", "no module 'users_absent_metrics'.*PYTHONPATH"),
    ],
)
def test_what_is_wrong_with_a_users_metric_is_said(name: str, message: str) -> None:
    with pytest.raises(UserInputError, match=message) as caught:
        users_loss(name)
    assert name in str(caught.value)


def test_a_name_that_nobody_installed() -> None:
    with pytest.raises(UserInputError, match=r"'psnr'.*l0, l1, l2, linf, cos"):
        resolve_metric("psnr")


def install_metric(folder: Path, name: str, target: str) -> None:
    info = folder / f"{name}-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[smart_tuner.metrics]\n{name} = {target}\n")


@pytest.mark.usefixtures("user_metrics")
def test_an_installed_metric_is_found_by_its_name(tmp_path: Path) -> None:
    install_metric(tmp_path, "quarter", "users_own_metrics:good")
    assert users_loss("quarter") == 0.25


def test_an_installed_metric_of_another_version_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "future_metrics.py").write_text("def f(r, a): return 0.0\nf.api_version = 99\n")
    install_metric(tmp_path, "future", "future_metrics:f")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(UserInputError, match="speaks API 99"):
        users_loss("future")
