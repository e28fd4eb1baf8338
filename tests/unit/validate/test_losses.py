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
from smart_tuner.validate.constraint import METRIC_NAMES, AccuracyConstraint, is_acceptable
from smart_tuner.validate.losses import (
    OutputLoss,
    losses_of,
    unreferenced_outputs,
    violation,
    worst,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    Tensor = npt.NDArray[Any]

L1 = AccuracyConstraint("l1", 0.01)


def judge(reference: object, actual: object, constraint: AccuracyConstraint = L1) -> OutputLoss:
    (judged,) = losses_of(
        {"y": np.asarray(reference)},
        {"y": np.asarray(actual)},
        constraint,
        point="p",
        pair="0",
    )
    return judged


def made(loss: float, epsilon: float, output: str = "y") -> OutputLoss:
    return OutputLoss("p", "0", output, "l1", loss, epsilon)


def test_every_output_is_judged_by_itself_and_the_worst_one_named() -> None:
    x = np.abs(np.random.default_rng(4).standard_normal((1, 100))).astype(np.float32)
    reference = {"boxes": x * np.float32(640), "scores": np.zeros_like(x)}
    actual = {"boxes": x * np.float32(640), "scores": x * np.float32(1e-3)}
    constraint = AccuracyConstraint("l1", 0.5, per_output={"scores": 1e-4})
    losses = losses_of(reference, actual, constraint, point="p", pair="a")
    assert [(judged.output, judged.pair, judged.point) for judged in losses] == [
        ("boxes", "a", "p"),
        ("scores", "a", "p"),
    ]
    assert losses[0].loss == 0.0
    assert worst(losses).output == "scores"
    assert not is_acceptable(losses)
    # The other way round: tiny scores do not excuse boxes, nor big boxes the scores.
    actual = {"boxes": x * np.float32(641), "scores": reference["scores"]}
    assert worst(losses_of(reference, actual, constraint, point="p", pair="a")).output == "boxes"


def test_a_missing_output_fails_and_an_extra_one_is_not_judged() -> None:
    one = {"y": np.ones(2)}
    losses = losses_of(one | {"z": np.ones(1)}, one | {"w": np.ones(1)}, L1, point="p", pair="0")
    assert [judged.loss for judged in losses] == [0.0, math.inf]
    assert "no such output" in losses[1].message
    assert unreferenced_outputs(["w", "y", "v"], one) == ("w", "v")
    with pytest.raises(UserInputError, match=r"'0'.*nothing to judge"):
        losses_of({}, one, L1, point="p", pair="0")


@pytest.mark.parametrize("epsilon", [0.0, 0.1, math.inf])
@pytest.mark.parametrize(
    ("actual", "message"),
    [
        (np.ones((3, 2), np.float32), "shape"),
        (np.ones(6, np.float32), "shape"),
        (np.ones((2, 3), np.float16), "type float16.*float32"),
        (np.ones((2, 3), np.int32), "type int32"),
        (np.full((2, 3), "1"), "type"),
        (np.full((2, 3), np.nan, np.float32), "NaN or infinity.*6 of 6"),
    ],
)
def test_shape_type_and_non_finite_fail_at_any_epsilon(
    actual: Tensor, message: str, epsilon: float
) -> None:
    reference = np.ones((2, 3), np.float32)
    judged = judge(reference, actual, AccuracyConstraint("l1", epsilon))
    assert judged.loss == math.inf
    assert not is_acceptable([judged])
    assert violation([judged]) == 6.0
    assert all(part in judged.message for part in message.split(".*"))


def test_an_infinite_epsilon_accepts_any_finite_error() -> None:
    judged = judge([1.0], [1e30], AccuracyConstraint("linf", math.inf))
    assert is_acceptable([judged])
    assert violation([judged]) == -6.0


@pytest.mark.parametrize(
    "reference",
    [
        np.linspace(0, 1, 12, dtype=np.float32),
        np.arange(12, dtype=np.int64),
        np.array(["a", "b"], dtype=object),
    ],
    ids=["numbers", "ids", "text"],
)
def test_a_constant_is_no_answer_even_where_any_error_is_accepted(reference: Tensor) -> None:
    unlimited = AccuracyConstraint("linf", math.inf)
    for constant in (reference[:1], reference[-1:]):
        judged = judge(reference, np.repeat(constant, reference.size), unlimited)
        assert judged.loss == math.inf
        assert "same value everywhere" in judged.message
        assert violation([judged]) == 6.0
    assert is_acceptable([judge(reference, reference[::-1].copy(), unlimited)])


def test_a_constant_is_an_answer_where_the_reference_is_one_or_a_metric_judges() -> None:
    unlimited = AccuracyConstraint("linf", math.inf)
    nearly = np.array([5.0, 5.0, 5.001])
    assert is_acceptable([judge(nearly, np.full(3, 4.0), unlimited)]), "rounding is no variation"
    assert is_acceptable([judge([3.0], [9.0], unlimited)])
    blank = np.array([0.0, 1e-6, 2e-6])
    assert is_acceptable([judge(blank, np.zeros(3), AccuracyConstraint("linf", 1e-3))])


def test_byte_order_is_not_a_type() -> None:
    assert judge(np.array([1.5], ">f4"), np.array([1.5], "<f4")).loss == 0.0


@pytest.mark.parametrize("epsilon", [0.0, 0.01])
@pytest.mark.parametrize("metric", METRIC_NAMES)
def test_tensors_of_nothing_and_scalars(metric: str, epsilon: float) -> None:
    constraint = AccuracyConstraint(metric, epsilon)
    assert judge(np.zeros((0, 3)), np.zeros((0, 3)), constraint).loss == 0.0
    assert judge(np.zeros((0, 3)), np.zeros((3, 0)), constraint).loss == math.inf
    assert judge(np.zeros((0,), np.int64), np.zeros((0,), np.int64), constraint).loss == 0.0
    assert judge(np.float32(2), np.float32(2), constraint).loss == 0.0
    assert judge(np.float32(2), np.ones(1, np.float32) * 2, constraint).loss == math.inf


def test_ids_are_judged_by_agreement() -> None:
    reference = np.array([0, 1, 2, 9], np.int64)
    for wrong in (1, 9, 2**40):
        judged = judge(reference, np.array([wrong, 1, 2, 9]), AccuracyConstraint("linf", 5.0))
        assert (judged.metric, judged.loss, judged.epsilon) == ("mismatch", 0.25, 1e-3)
    big = np.array([2**53 + 1, -(2**62)], np.int64)
    assert judge(big, big - [1, 0]).loss == 0.5
    assert judge(np.array([True, False]), np.array([True, True])).loss == 0.5
    nibbles = np.array([1, -2, 3, 4]).astype(ml_dtypes.int4)
    assert judge(nibbles, nibbles).loss == 0.0
    assert judge(nibbles, np.array([1, 2, 3, 4]).astype(ml_dtypes.int4)).loss == 0.25
    own = AccuracyConstraint("l2", 1e-9, per_output={"y": 0.5})
    assert is_acceptable([judge(reference, reference[::-1].copy()[[3, 1, 2, 0]], own)])


@pytest.mark.parametrize("epsilon", [0.0, 0.01])
def test_text_is_judged_by_agreement_however_it_is_stored(epsilon: float) -> None:
    constraint = AccuracyConstraint("cos", epsilon)
    plain = np.array(["a", "é", "", "x\0y"])
    stored = np.array(["a", "é".encode(), "", "x\0y"], dtype=object)
    assert judge(plain, stored, constraint).loss == 0.0
    stored[1] = "e"
    judged = judge(plain, stored, constraint)
    assert (judged.metric, judged.loss) == ("mismatch", 0.25)
    assert judge(plain, stored[:3], constraint).loss == math.inf


@pytest.mark.parametrize("metric", METRIC_NAMES)
def test_epsilon_zero_compares_bytes_whatever_the_metric(metric: str) -> None:
    exact = AccuracyConstraint(metric, 0.0)
    one = np.array([1.0, 0.0, 1e-30, np.nan, np.inf], np.float32)
    assert judge(one, one.copy(), exact).loss == 0.0
    assert judge(one, one.astype(">f4"), exact).loss == 0.0
    for place, other in ((0, np.nextafter(np.float32(1), np.float32(2))), (1, -0.0), (2, 2e-30)):
        actual = one.copy()
        actual[place] = other
        judged = judge(one, actual, exact)
        assert 0 < judged.loss < math.inf
        assert not is_acceptable([judged])
        assert violation([judged]) == 6.0
    payload = one.view(np.uint32).copy()
    payload[3] ^= 1
    assert judge(one, payload.view(np.float32), exact).loss == pytest.approx(0.2)


def test_epsilon_zero_on_small_floats() -> None:
    exact = AccuracyConstraint("l1", 0.0)
    for dtype in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2):
        one = np.array([1, 0, np.nan]).astype(dtype)
        assert judge(one, one.copy(), exact).loss == 0.0
        assert judge(one, np.array([1, -0.0, np.nan]).astype(dtype), exact).loss > 0


@pytest.mark.parametrize("metric", METRIC_NAMES)
def test_what_is_not_finite_may_stand_where_the_reference_has_it(metric: str) -> None:
    with np.errstate(all="ignore"):
        logarithm = np.log(np.array([[1, -1, 0, 2], [3, 4, 5, 6]], np.float32))
    attention = np.array([[1, -1, -np.inf, 2], [-np.inf] * 4], np.float32)
    softmax = np.array([[0.2, 0.1, 0.0, 0.7], [np.nan] * 4], np.float32)
    constraint = AccuracyConstraint(metric, 1e-3)
    for reference in (logarithm, attention, softmax):
        assert judge(reference, reference.copy(), constraint).loss == 0.0
        wrong = np.where(np.isfinite(reference), reference, 0).astype(np.float32)
        assert judge(reference, wrong, constraint).loss == math.inf
        flipped = np.where(np.isinf(reference), -reference, reference)
        if np.isinf(reference).any():
            assert judge(reference, flipped, constraint).loss == math.inf


def test_infinity_out_of_a_metric_is_explained() -> None:
    judged = judge([1e308], [-1e308], AccuracyConstraint("l2", 1.0))
    assert judged.loss == math.inf
    assert "infinity" in judged.message


def test_worst_compares_by_epsilon_not_by_loss() -> None:
    assert worst([made(5.0, 10.0, "a"), made(0.2, 0.1, "b")]).output == "b"
    assert worst([made(0.5, 1.0, "a"), made(0.5, 1.0, "b")]).output == "a"
    assert worst([made(9.0, 0.0, "a"), made(math.inf, 1.0, "b")]).output == "b"
    assert worst([made(math.inf, 1.0, "a"), made(math.nan, 1.0, "b")]).output == "a"
    assert worst([made(1e300, math.inf, "a"), made(1e-9, 1.0, "b")]).output == "b"
    with pytest.raises(ValueError, match="No losses"):
        worst([])


@pytest.mark.parametrize(
    ("loss", "epsilon", "expected"),
    [
        (0.1, 0.01, 1.0),
        (0.001, 0.01, -1.0),
        (0.01, 0.01, 0.0),
        (0.0, 0.01, -6.0),
        (0.0, 0.0, -6.0),
        (1e-300, 0.0, 6.0),
        (1e9, 1e-9, 6.0),
        (1e-12, 1.0, -6.0),
        (math.inf, 0.01, 6.0),
        (math.nan, 0.01, 6.0),
        (math.inf, math.inf, 6.0),
        (1e308, 5e-324, 6.0),
        (5e-324, 1e308, -6.0),
        (3.0, math.inf, -6.0),
    ],
)
def test_violation(loss: float, epsilon: float, expected: float) -> None:
    assert violation([made(loss, epsilon)]) == pytest.approx(expected)


def test_violation_just_above_epsilon_is_above_zero() -> None:
    for epsilon in (0.1, 1e-3, 7.0, 1e300, 5e-324):
        assert violation([made(epsilon, epsilon)]) <= 0
        assert violation([made(math.nextafter(epsilon, math.inf), epsilon)]) > 0


LIMITS = st.floats(min_value=0, allow_nan=False)


@given(st.lists(st.tuples(st.floats(min_value=0), LIMITS), min_size=1, max_size=5))
def test_violation_is_at_most_zero_iff_acceptable(cases: list[tuple[float, float]]) -> None:
    losses = [made(loss, epsilon, str(place)) for place, (loss, epsilon) in enumerate(cases)]
    figure = violation(losses)
    assert -6 <= figure <= 6
    assert (figure <= 0) == is_acceptable(losses)
    assert is_acceptable([worst(losses)]) == is_acceptable(losses)


TENSORS = st.sampled_from(["f2", "f4", "f8", "i1", "i8", "u8", "?", "c8", "U3", ">f8"]).flatmap(
    lambda dtype: st.tuples(hnp.arrays(dtype, 3), hnp.arrays(dtype, 3))
)


@given(TENSORS, st.sampled_from(METRIC_NAMES), st.sampled_from([0.0, 1e-3, 0.5, math.inf]))
def test_any_two_tensors_get_a_verdict(
    tensors: tuple[Tensor, Tensor], metric: str, epsilon: float
) -> None:
    reference, actual = tensors
    constraint = AccuracyConstraint(metric, epsilon)
    judged = judge(reference, actual, constraint)
    assert judged.loss >= 0
    assert (violation([judged]) <= 0) == is_acceptable([judged])
    assert bool(judged.message) == math.isinf(judged.loss)
    assert judge(reference, reference.copy(), constraint).loss == 0.0
    if epsilon == 0:
        assert is_acceptable([judged]) == (reference.tobytes() == actual.tobytes())
