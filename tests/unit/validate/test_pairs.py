from __future__ import annotations

import math

import pytest

from smart_tuner.errors import UserInputError
from smart_tuner.trial.fields import to_json
from smart_tuner.trial.read import read_loss
from smart_tuner.trial.verdict import describe_losses
from smart_tuner.validate.constraint import AccuracyConstraint, is_acceptable
from smart_tuner.validate.losses import OutputLoss, violation, worst
from smart_tuner.validate.pairs import deciding, judged_again, judged_over_pairs, over_pairs

MEAN = AccuracyConstraint("top1", 0.25, over_pairs="mean")
FIGURES = {"cat": 0.0, "dog": 1.0, "cow": 0.0, "hen": 0.0}


def losses(figures: dict[str, float], output: str = "y") -> list[OutputLoss]:
    return [
        OutputLoss("p", pair, output, "top1", loss, 0.25, "no shape" if loss == math.inf else "")
        for pair, loss in figures.items()
    ]


def test_the_worst_pair_decides_and_is_named() -> None:
    judged = judged_over_pairs(losses(FIGURES), AccuracyConstraint("top1", 0.25))
    assert not is_acceptable(judged)
    said = describe_losses(judged)
    assert "pair 'dog'" in said
    assert "top1 loss 1 is over epsilon 0.25" in said
    assert "mean over 4 pairs 0.25" in said


def test_the_mean_decides_where_it_is_asked_for() -> None:
    judged = judged_over_pairs(losses(FIGURES), MEAN)
    assert is_acceptable(judged)
    assert violation(judged) == 0.0
    (whole,) = over_pairs(judged)
    assert (whole.worst, whole.worst_pair, whole.mean, whole.pairs) == (1.0, "dog", 0.25, 4)
    assert (whole.over, whole.judged, whole.epsilon) == ("mean", 0.25, 0.25)
    assert "pair 'dog'" in str(whole)
    over = judged_over_pairs(losses({**FIGURES, "hen": 0.5}), MEAN)
    assert not is_acceptable(over)
    assert "mean of 4 pairs" in describe_losses(over)
    assert "worst pair 'dog' with 1" in describe_losses(over)


def test_a_pair_without_an_answer_is_refused_under_any_mean() -> None:
    broken = {f"good {number}": 0.0 for number in range(99)} | {"bad": math.inf}
    constraint = AccuracyConstraint("top1", math.inf, over_pairs="mean")
    judged = judged_over_pairs(losses(broken), constraint)
    assert not is_acceptable(judged)
    assert worst(judged).loss == math.inf
    assert "'bad'" in describe_losses(judged)
    assert "no shape" in describe_losses(judged)


def test_one_pair_is_its_own_mean() -> None:
    judged = judged_over_pairs(losses({"only": 0.5}), MEAN)
    assert [(loss.pair, loss.epsilon) for loss in judged] == [("only", 0.25)]


def test_outputs_and_points_are_summed_up_by_themselves() -> None:
    judged = judged_over_pairs([*losses(FIGURES), *losses({"cat": 0.2, "dog": 0.1}, "z")], MEAN)
    assert [(whole.output, whole.worst_pair) for whole in over_pairs(judged)] == [
        ("y", "dog"),
        ("z", "cat"),
    ]
    whole = deciding(judged)
    assert whole is not None
    assert whole.output == "y"
    assert deciding(()) is None


def test_a_pair_that_was_run_again_counts_once() -> None:
    judged = judged_over_pairs(losses(FIGURES), MEAN)
    again = judged_again(losses({"dog": 1.0}), judged)
    assert is_acceptable(again), "dog was as bad before, and the mean allows it"
    assert not is_acceptable(judged_again(losses({"cat": 0.5}), judged))
    (whole,) = over_pairs((*judged, *again))
    assert whole.pairs == 4


def test_a_mean_is_kept_and_older_records_are_single_pairs() -> None:
    judged = judged_over_pairs(losses(FIGURES), MEAN)
    assert tuple(read_loss(to_json(loss)) for loss in judged) == judged
    old = to_json(judged[0])
    del old["pairs"]
    assert read_loss(old).pairs == 1


@pytest.mark.parametrize("over", ["median", ""])
def test_another_way_over_pairs_is_refused(over: str) -> None:
    with pytest.raises(UserInputError, match="worst, mean"):
        AccuracyConstraint(over_pairs=over)
