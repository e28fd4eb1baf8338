from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from smart_tuner.errors import UserInputError
from smart_tuner.validate.asked import parse_metrics
from smart_tuner.validate.constraint import AccuracyConstraint
from smart_tuner.validate.losses import losses_of
from smart_tuner.validate.metrics import TASK_METRICS, resolve_metric

if TYPE_CHECKING:
    import numpy.typing as npt

INF = math.inf


def loss(metric: str, reference: object, actual: object) -> float:
    constraint = AccuracyConstraint(metric=metric)
    return resolve_metric(metric)(np.asarray(reference), np.asarray(actual), constraint)


def test_top1_is_the_share_of_rows_that_choose_another_class() -> None:
    reference = np.eye(4, 10, dtype=np.float32)
    actual = reference * np.float32(0.3) + np.float32(0.5)
    assert loss("top1", reference, actual) == 0.0, "only the order of the scores counts"
    actual[2] = actual[2][::-1]
    assert loss("top1", reference, actual) == 0.25
    for shape in ((4, 10, 1, 1), (4, 1, 10), (2, 2, 10)):
        assert loss("top1", reference.reshape(shape), actual.reshape(shape)) == 0.25
    assert loss("top1", [0.1, 0.7, 0.2], [0.1, 0.2, 0.7]) == 1.0


def test_top1_takes_either_of_equals_and_no_constant() -> None:
    assert loss("top1", [[0.5, 0.5, 0.0]], [[0.4, 0.6, 0.0]]) == 0.0
    assert loss("top1", [[0.0, 0.5, 0.1]], [[0.2, 0.2, 0.2]]) == 1.0
    assert loss("top1", [[np.nan, 1.0, 0.5]], [[np.nan, 1.0, 0.5]]) == 0.0


def test_embedding_shows_the_one_that_is_lost() -> None:
    reference = np.random.default_rng(1).standard_normal((100, 64)).astype(np.float32)
    actual = reference * np.float32(3)
    assert loss("embedding", reference, actual) == pytest.approx(0.0, abs=1e-12)
    actual[7] = -actual[7]
    assert loss("embedding", reference, actual) == pytest.approx(2.0)
    assert loss("cos", reference, actual) < 0.1, "the whole tensor hides it"
    actual[7] = 0
    assert loss("embedding", reference, actual) == 1.0
    assert loss("embedding", [[1.0, np.inf]], [[1.0, 0.0]]) == INF


def test_mae_is_in_the_outputs_unit() -> None:
    assert loss("mae", [[20.0, 30.0]], [[21.0, 30.0]]) == 0.5


@pytest.mark.parametrize("metric", ["top1", "embedding"])
@pytest.mark.parametrize(
    "tensor",
    [np.ones((8, 1)), np.ones((1, 1, 1)), np.ones((2, 21, 8, 8)), np.ones((2, 3), np.complex64)],
    ids=str,
)
def test_rows_that_cannot_be_told_are_refused_by_name(
    metric: str, tensor: npt.NDArray[np.float64]
) -> None:
    with pytest.raises(UserInputError, match=f"Output 'y': Metric '{metric}'.*--metric") as caught:
        losses_of(
            {"y": tensor}, {"y": tensor + 1}, AccuracyConstraint(metric, 0.1), point="p", pair="a"
        )
    assert "\n" not in str(caught.value)


@given(
    hnp.arrays(
        st.sampled_from(["f2", "f4", "f8"]), hnp.array_shapes(min_dims=1, max_dims=3, min_side=2)
    ),
    st.sampled_from(sorted(TASK_METRICS)),
)
def test_a_tensor_has_no_loss_against_itself(tensor: npt.NDArray[np.float64], metric: str) -> None:
    assert loss(metric, tensor, tensor) == 0.0


def test_each_output_has_its_own_metric() -> None:
    constraint = AccuracyConstraint(
        "linf", 0.5, {"scores": 0.0, "names": 0.5}, metrics={"scores": "TOP1", "names": "mae"}
    )
    reference = {
        "boxes": np.array([[1.0, 9.0]]),
        "scores": np.array([[0.2, 0.8]]),
        "names": np.array([1, 2]),
    }
    actual = {
        "boxes": np.array([[1.4, 9.0]]),
        "scores": np.array([[0.3, 0.7]]),
        "names": np.array([1, 3]),
    }
    losses = losses_of(reference, actual, constraint, point="p", pair="a")
    assert [judged.metric for judged in losses] == ["linf", "top1", "mismatch"]
    assert losses[0].loss == pytest.approx(0.4)
    assert losses[1].loss > 0, "epsilon 0 compares bytes, whatever the metric"
    assert losses[2].loss == 0.5


def test_an_own_metric_needs_an_own_epsilon() -> None:
    with pytest.raises(UserInputError, match=r"'scores'.*top1.*--epsilon scores:0.01"):
        AccuracyConstraint("linf", 0.5, metrics={"scores": "top1"})
    assert (
        AccuracyConstraint("linf", INF, metrics={"scores": "top1"}).metric_for("boxes") == "linf"
    )


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([], (None, {})),
        (["linf"], ("linf", {})),
        (["top1", "boxes = mae"], ("top1", {"boxes": "mae"})),
        (["a=b=pkg.mod:f"], (None, {"a=b": "pkg.mod:f"})),
    ],
)
def test_metrics_as_text(texts: list[str], expected: tuple[str | None, dict[str, str]]) -> None:
    assert parse_metrics(texts) == expected


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([""], "''"),
        (["=mae"], "'=mae'"),
        (["y="], "'y='"),
        (["mae", "top1"], "The metric is given twice"),
        (["y=mae", "y=top1"], "output 'y' is given twice"),
    ],
)
def test_a_wrong_metric_is_named(texts: list[str], message: str) -> None:
    with pytest.raises(UserInputError, match=message):
        parse_metrics(texts)
