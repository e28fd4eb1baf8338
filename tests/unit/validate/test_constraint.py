from __future__ import annotations

import json
import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_tuner.errors import UserInputError
from smart_tuner.validate.asked import parse_epsilons
from smart_tuner.validate.constraint import (
    AccuracyConstraint,
    constraint_from_json,
    constraint_to_json,
    is_acceptable,
)
from smart_tuner.validate.losses import OutputLoss


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epsilon": -0.1}, "epsilon is -0.1"),
        ({"epsilon": math.nan}, "epsilon is nan"),
        ({"epsilon": "0.1"}, "epsilon is '0.1'"),
        ({"epsilon": True}, "epsilon is True"),
        ({"per_output": {"boxes": -1.0}}, "epsilon of output 'boxes' is -1.0"),
        ({"rtol": math.inf}, "rtol is infinite"),
        ({"atol": -1.0}, "atol is -1.0"),
        (
            {"metric": "l3"},
            "'l3'.*l0, l1, l2, linf, cos, mae, top1, embedding, or module:function",
        ),
        ({"metric": ""}, "Unknown accuracy metric"),
        ({"metric": "my file.py:loss"}, "Unknown accuracy metric"),
        ({"metric": "module:"}, "Unknown accuracy metric"),
    ],
)
def test_a_wrong_setting_is_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UserInputError, match=message):
        AccuracyConstraint(**settings)


def test_spellings_and_numbers_are_settled_once() -> None:
    assert AccuracyConstraint(metric="lInf") == AccuracyConstraint(metric="linf")
    assert AccuracyConstraint(metric="package.module:Class.method").metric.endswith("method")
    assert type(AccuracyConstraint(epsilon=np.float32(0.5).item()).epsilon) is float
    assert type(AccuracyConstraint(epsilon=1).epsilon) is float
    limits = {"a": 0.5}
    constraint = AccuracyConstraint(per_output=limits)
    limits["a"] = 7.0
    assert constraint.epsilon_for("a") == 0.5


def test_each_output_has_its_limit() -> None:
    constraint = AccuracyConstraint("linf", 2.0, per_output={"ids": 0.25, "boxes": 5.0})
    assert constraint.epsilon_for("boxes") == 5.0
    assert constraint.epsilon_for("scores") == 2.0
    assert constraint.epsilon_for("ids", holds_ids=True) == 0.25
    assert constraint.epsilon_for("classes", holds_ids=True) == 1e-3


@pytest.mark.parametrize(
    ("metric", "epsilon", "share"),
    [("l0", 0.2, 0.2), ("cos", 1e-5, 1e-5), ("l2", 9.0, 1e-3), ("l2", 0.0, 0.0)],
)
def test_ids_without_an_own_limit(metric: str, epsilon: float, share: float) -> None:
    assert AccuracyConstraint(metric, epsilon).epsilon_for("ids", holds_ids=True) == share
    assert AccuracyConstraint(metric, math.inf).epsilon_for("ids", holds_ids=True) == math.inf


@pytest.mark.parametrize(
    ("loss", "epsilon", "expected"),
    [
        (0.0, 0.0, True),
        (0.1, 0.1, True),
        (math.nextafter(0.1, 1), 0.1, False),
        (1e300, math.inf, True),
        (math.inf, math.inf, False),
        (math.nan, math.inf, False),
        (math.nan, 0.0, False),
    ],
)
def test_acceptable_is_finite_and_at_most_epsilon(
    loss: float, epsilon: float, expected: bool
) -> None:
    good = OutputLoss("p", "0", "y", "l1", 0.0, 1.0)
    assert is_acceptable([good, OutputLoss("p", "0", "z", "l1", loss, epsilon)]) is expected


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([], (None, {})),
        (["0.01"], (0.01, {})),
        (["0.01", "boxes:0.5"], (0.01, {"boxes": 0.5})),
        (["0.01,boxes:0.5, scores : 1e-6"], (0.01, {"boxes": 0.5, "scores": 1e-6})),
        (["images:0:0.5"], (None, {"images:0": 0.5})),
        (["/model/out 1:0"], (None, {"/model/out 1": 0.0})),
        (["'a,b=c;d':0.5"], (None, {"a,b=c;d": 0.5})),
        (['"a,b":0.5,0.1'], (0.1, {"a,b": 0.5})),
        ([r"'it\'s, h\\ere':1"], (None, {r"it's, h\ere": 1.0})),
        (["it's:1"], (None, {"it's": 1.0})),
        (["'inf':inf", "inf"], (math.inf, {"inf": math.inf})),
        (
            ["-x:0.5", "x[0|1]:0.25", "モデル:2"],
            (None, {"-x": 0.5, "x[0|1]": 0.25, "モデル": 2.0}),
        ),
    ],
)
def test_epsilons_as_text(
    texts: list[str], expected: tuple[float | None, dict[str, float]]
) -> None:
    assert parse_epsilons(texts) == expected


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([""], "'' is not a number|'' in the epsilon"),
        (["boxes"], "'boxes'.*not a number"),
        (["boxes:"], "'boxes:'"),
        ([":0.5"], "output:0.01"),
        (["-1"], "'-1'"),
        (["boxes:-0.5"], "'-0.5'"),
        (["nan"], "'nan'"),
        (["0.1,"], "'0.1,'"),
        (["'boxes:0.1"], "'boxes:0.1"),
        (["0.1", "0.2"], "global epsilon is given twice"),
        (["boxes:0.1,boxes:0.1"], "output 'boxes' is given twice"),
    ],
)
def test_a_wrong_epsilon_is_named(texts: list[str], message: str) -> None:
    with pytest.raises(UserInputError, match=message) as caught:
        parse_epsilons(texts)
    assert "\n" not in str(caught.value)


@given(st.dictionaries(st.text(min_size=1), st.floats(0, 1e9), max_size=4))
def test_quoting_carries_any_name(limits: dict[str, float]) -> None:
    texts = [
        "'" + re.sub(r"(['\\\\])", r"\\\1", name) + f"':{limit}" for name, limit in limits.items()
    ]
    assert parse_epsilons(texts) == (None, limits)
    assert parse_epsilons([",".join(texts)] if texts else []) == (None, limits)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        overall, per_output = parse_epsilons([text])
    except UserInputError:
        return
    AccuracyConstraint(epsilon=0.0 if overall is None else overall, per_output=per_output)


@pytest.mark.parametrize(
    "constraint",
    [
        AccuracyConstraint(),
        AccuracyConstraint("cos", math.inf, {"a:b": 0.0, "c": math.inf}, rtol=0.5, atol=0.0),
        AccuracyConstraint("my.metrics:loss", 0.0),
        AccuracyConstraint("mae", 2.0, {"s": 0.1}, metrics={"s": "top1"}, over_pairs="mean"),
    ],
)
def test_json_round_trip_is_strict_json(constraint: AccuracyConstraint) -> None:
    text = json.dumps(constraint_to_json(constraint), allow_nan=False)
    assert constraint_from_json(json.loads(text)) == constraint


@pytest.mark.parametrize(
    "data",
    [
        {"epsilom": 1.0},
        {"metric": 3},
        {"per_output": [1]},
        {"epsilon": "0.5"},
        {"atol": None},
        {"metrics": {"y": 1}},
        {"over_pairs": 2},
    ],
)
def test_json_that_is_no_constraint_is_refused(data: dict[str, object]) -> None:
    with pytest.raises(UserInputError):
        constraint_from_json(data)
    assert constraint_from_json({}) == AccuracyConstraint()
