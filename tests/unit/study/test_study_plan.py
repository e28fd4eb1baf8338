import math
from pathlib import Path
from typing import Any

import pytest

from smart_tuner.errors import BackendNotFound, ModelError, UserInputError
from smart_tuner.simulate.model_file import write_simulated_model
from smart_tuner.study.setup.plan import Plan, make_plan, query_platform, requested_constraint
from smart_tuner.study.setup.settings import make_settings
from tests.unit.study.pretend import planted_compiler


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_simulated_model(tmp_path, planted_compiler())


def plan_of(model: Path, **settings: Any) -> Plan:
    return make_plan(make_settings({"model": model, "backend": "replay", **settings}))


def test_a_plan_holds_model_knobs_and_space(model: Path) -> None:
    plan = plan_of(model)
    assert plan.model.path == model
    assert list(plan.space.choices) == ["fast", "lossy", "nan", "crash", "idle", "slow"]
    assert plan.base == {}
    assert "6 of 6 knobs are searched." in plan.notes


def test_the_user_may_narrow_the_space(model: Path) -> None:
    plan = plan_of(model, only=["f*", "s*"], freeze=["slow"])
    assert list(plan.space.choices) == ["fast"]
    assert any(note.startswith("1 of 6 knobs are searched; left out: ") for note in plan.notes)


def test_values_are_taken_from_expressions(model: Path) -> None:
    with pytest.raises(UserInputError, match="is none of its values"):
        plan_of(model, values=["fast=[on|warp]"])
    with pytest.raises(UserInputError, match="nothing"):
        plan_of(model, values=["nothing=[1]"])
    assert plan_of(model, values=["-fast=on"]).space.choices["fast"] == ("off", "on")


def test_the_base_gives_the_defaults(model: Path, tmp_path: Path) -> None:
    base = tmp_path / "base.toml"
    base.write_text("fast = true\n")
    plan = plan_of(model, base=base)
    assert plan.space.defaults["fast"] == "on"
    assert plan.space.choices["fast"] == ("on", "off")
    assert plan.evaluator_options.base == {"fast": "on"}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"only": ["zzz"]}, "zzz"),
        ({"freeze": ["*"]}, "no knob to search"),
        ({"ask": ["zzz"]}, "zzz"),
        ({"metric": "l7"}, "Unknown accuracy metric 'l7'"),
        ({"metric": "linf", "epsilon": ["-1"]}, "0 or more"),
        ({"metric": "linf", "epsilon": ["auto", "0.1"]}, "--epsilon auto sets every epsilon"),
        ({"metric": "linf", "epsilon": ["auto", "auto"]}, "--epsilon auto sets every epsilon"),
        ({"metric": "z=mae", "epsilon": "z:1"}, "--epsilon: the model has no output 'z'"),
        ({"metric": ["linf", "z=linf"]}, "--metric: the model has no output 'z'"),
        ({"metric": ["linf", "y=mae"], "epsilon": "0.1"}, "give its epsilon too"),
        ({"metric": ["linf", "mae"]}, "The metric is given twice"),
        ({"rtol": math.inf}, "rtol is infinite"),
        ({"shapes": ["x"]}, "x"),
        ({"input_range": ["x:1"]}, "x"),
        ({"base": "nowhere.toml"}, "Cannot read the base nowhere.toml"),
    ],
    ids=lambda item: str(item)[:40],
)
def test_what_is_wrong_is_found_before_anything_is_touched(
    model: Path, tmp_path: Path, settings: dict[str, Any], words: str
) -> None:
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UserInputError) as caught:
        plan_of(model, **settings)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert sorted(tmp_path.rglob("*")) == before


def test_missing_models_and_backends_are_named(model: Path, tmp_path: Path) -> None:
    with pytest.raises(UserInputError, match=r"nothing\.onnx"):
        plan_of(tmp_path / "nothing.onnx")
    text = tmp_path / "text.onnx"
    text.write_text("I am no model")
    with pytest.raises(ModelError, match=r"text\.onnx"):
        plan_of(text)
    with pytest.raises(BackendNotFound, match="nowhere"):
        plan_of(model, backend="nowhere")


class TestConstraint:
    def test_defaults(self) -> None:
        constraint = requested_constraint(make_settings({"model": "m"}))
        assert (constraint.metric, constraint.epsilon) == ("l0", 1e-3)

    def test_what_is_given_counts(self) -> None:
        settings = make_settings(
            {"model": "m", "metric": "linf", "epsilon": ["0.5", "y:0.1"], "rtol": 0.2, "atol": 0}
        )
        constraint = requested_constraint(settings)
        assert (constraint.epsilon, constraint.per_output) == (0.5, {"y": 0.1})
        assert (constraint.rtol, constraint.atol) == (0.2, 0.0)

    def test_one_output_s_limit_leaves_the_others_at_the_default(self) -> None:
        settings = make_settings({"model": "m", "metric": "linf", "epsilon": "y:0.1"})
        assert requested_constraint(settings).epsilon == 1e-3

    def test_auto_accepts_everything_until_it_is_known(self) -> None:
        settings = make_settings({"model": "m", "metric": "linf", "epsilon": "auto"})
        assert requested_constraint(settings).epsilon == math.inf


class TestIdentity:
    def test_what_means_the_same_is_the_same(self, model: Path) -> None:
        one = plan_of(model).identity
        assert one == plan_of(model, metric="L0", epsilon="1e-3").identity
        assert one == plan_of(model, budget="1h", trials=7, min_gain=1.2).identity
        assert one == plan_of(model, sampler="random", trial_timeout=5).identity

    @pytest.mark.parametrize(
        "settings",
        [
            {"metric": "linf"},
            {"metric": "l0", "epsilon": "0.01"},
            {"metric": "l0", "epsilon": "auto"},
            {"metric": "l0", "epsilon": "y:0.001"},
            {"metric": ["l0", "y=mae"], "epsilon": ["y:0.001"]},
            {"over_pairs": "mean"},
            {"rtol": 0.01},
            {"reference": "baseline"},
        ],
        ids=str,
    )
    def test_what_means_something_else_differs(
        self, model: Path, settings: dict[str, Any]
    ) -> None:
        assert plan_of(model).identity != plan_of(model, **settings).identity

    def test_every_setting_of_the_base_is_a_fact(self, model: Path, tmp_path: Path) -> None:
        base = tmp_path / "base.toml"
        base.write_text('fast = "on"\nidle = "on"\n')
        identity = plan_of(model, base=base).identity
        assert identity["base fast"] == identity["base idle"] == "on"


def test_a_platform_is_asked_in_a_process_of_its_own(tmp_path: Path) -> None:
    assert query_platform("replay", tmp_path).device == "simulated"
    assert {path.name for path in tmp_path.iterdir()} == {"platform.log"}
