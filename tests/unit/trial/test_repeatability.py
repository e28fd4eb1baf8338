import ml_dtypes
import numpy as np
import pytest

from smart_tuner.trial.repeatability import differences


@pytest.mark.parametrize(
    "array",
    [
        np.array([1.0, np.nan, np.inf, -np.inf], np.float32),
        np.array(["a", "b"], object),
        np.array([], np.float64),
        np.array(3, np.int64),
        np.array([1.5, 2.5], ml_dtypes.bfloat16),
        np.array([1, 2], ml_dtypes.int4),
        np.array([True, False]),
        np.array([1 + 2j]),
    ],
)
def test_equal_outputs_differ_in_nothing(array: np.ndarray) -> None:
    assert differences({"y": array}, {"y": array.copy()}) == ()


def test_nans_of_other_bits_are_equal() -> None:
    first = np.array([0x7FC00000], np.uint32).view(np.float32)
    second = np.array([0x7FC00001], np.uint32).view(np.float32)
    assert differences({"y": first}, {"y": second}) == ()


@pytest.mark.parametrize(
    ("first", "second", "line"),
    [
        (np.array([1, 2.0]), np.array([1, 2.5]), "differs in 50 % of its elements, by up to 0.5"),
        (np.array([1, 2.0]), np.array([1, np.nan]), "differs in 50 % of its elements"),
        (np.array([2**53 + 1]), np.array([2**53]), "differs in 100 % of its elements"),
        (np.array(["a"], object), np.array(["b"], object), "differs in 100 % of its elements"),
        (np.zeros(2), np.zeros(3), "had shape (3,) where it had before (2,)"),
        (np.zeros(2), np.zeros(2, np.float32), "had type float32 where it had before float64"),
    ],
)
def test_a_difference_names_output_and_size(
    first: np.ndarray, second: np.ndarray, line: str
) -> None:
    assert differences({"y": first}, {"y": second}) == (f"output 'y' {line}",)


def test_an_output_that_is_missing_once_is_named() -> None:
    one = {"y": np.zeros(1)}
    assert differences(one, {}) == ("output 'y' came only once",)
    assert differences({}, one) == ("output 'y' came only once",)
