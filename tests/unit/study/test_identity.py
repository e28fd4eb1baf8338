from pathlib import Path

import pytest

from smart_tuner.engine.platform import Platform
from smart_tuner.errors import StudyMismatch
from smart_tuner.study.setup.identity import (
    differences,
    platform_identity,
    refuse,
    space_differences,
    warnings,
)


def test_equal_facts_differ_in_nothing() -> None:
    facts = {"model": "abc", "driver": "1"}
    assert differences(facts, dict(facts)) == ()
    assert warnings(facts, dict(facts)) == ()


def test_each_thing_that_differs_is_named_with_both_values() -> None:
    before = {"model": "a" * 64, "metric": "l0", "base threads": "2", "same": "x"}
    now = {"model": "b" * 64, "metric": "linf", "base mode": "on", "same": "x"}
    found = differences(before, now)
    assert len(found) == 4
    text = "; ".join(found)
    assert "metric was l0, is linf" in text
    assert "base mode was not there, is on" in text
    assert "base threads was 2, is not there" in text
    assert f"model was {'a' * 37}..., is {'b' * 37}..." in text


def test_quota_and_driver_only_warn() -> None:
    before = {"driver": "Linux 6.1", "platform cpu_quota": "4", "device": "cpu"}
    now = {"driver": "Linux 6.2", "platform cpu_quota": "2", "device": "cpu"}
    assert differences(before, now) == ()
    first, second = warnings(before, now)
    assert first.startswith("driver was Linux 6.1, is Linux 6.2: ")
    assert second.startswith("platform cpu_quota was 4, is 2: ")


def test_a_platform_is_compared_detail_by_detail() -> None:
    one = Platform("cpu", "Linux", "rt 1", "rt 1", {"cpu_quota": "2", "numpy": "1"})
    other = Platform("cpu", "Linux", "rt 2", "rt 1", {"cpu_quota": "2", "numpy": "2"})
    found = differences(platform_identity(one), platform_identity(other))
    assert found == ("backend version was rt 1, is rt 2", "platform numpy was 1, is 2")


def test_spaces_are_compared_knob_by_knob() -> None:
    before = {"gone": ("0", "1"), "kept": ("a", "b"), "grown": ("0", "1")}
    now = {"kept": ("a", "b"), "grown": ("0", "1", "2"), "new": ("x", "y")}
    assert space_differences(before, now) == (
        "knobs no longer searched are gone",
        "knobs newly searched are new",
        "values of grown was 0|1, is 0|1|2",
    )
    assert space_differences(before, before) == ()


def test_another_order_of_values_is_a_difference() -> None:
    assert space_differences({"k": ("a", "b", "c")}, {"k": ("a", "c", "b")})


def test_many_knobs_stay_one_readable_line() -> None:
    (text,) = space_differences({f"k{i}": ("0", "1") for i in range(200)}, {})
    assert text == "knobs no longer searched are k0, k1, k2, k3, k4 and 195 more"


def test_a_refusal_names_everything_and_two_ways_out(tmp_path: Path) -> None:
    refuse((), tmp_path)
    with pytest.raises(StudyMismatch) as caught:
        refuse(("a was 1, is 2", "b was 3, is 4"), tmp_path)
    text = str(caught.value)
    assert "a was 1, is 2; b was 3, is 4." in text
    assert "Restore what changed, or start a new study with --study OTHER_FOLDER." in text
    assert str(tmp_path) in text
    assert "\n" not in text
