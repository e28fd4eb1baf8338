from __future__ import annotations

import copy
import dataclasses

import pytest

from smart_tuner.errors import UserInputError
from smart_tuner.knobs.database import KnobDatabase
from smart_tuner.knobs.knob import Knob

LISTED = Knob("kgen:tiling", ("0", "1"), "1")
OTHER = Knob("copy_ppg", ("on", "off"), "on")
DATABASE = KnobDatabase((LISTED, OTHER), "1.0")


def test_a_knob_is_found_by_name_and_order_is_kept() -> None:
    assert DATABASE["copy_ppg"] is OTHER
    assert tuple(DATABASE) == (LISTED, OTHER)
    assert len(DATABASE) == 2
    assert "copy_ppg" in DATABASE
    assert "copy" not in DATABASE
    assert 3 not in DATABASE


def test_an_unknown_knob_is_refused_with_the_closest_names() -> None:
    with pytest.raises(UserInputError, match=r"Unknown knob: kgen:tilling .*mean kgen:tiling\?"):
        DATABASE["kgen:tilling"]
    with pytest.raises(UserInputError, match="smart-tuner knobs"):
        DATABASE["zzz"]


def test_the_same_name_twice_is_refused() -> None:
    with pytest.raises(UserInputError, match="copy_ppg is listed twice"):
        KnobDatabase((OTHER, LISTED, OTHER), "1.0")


def test_databases_are_values() -> None:
    same = KnobDatabase((LISTED, OTHER), "1.0")
    assert same == DATABASE
    assert hash(same) == hash(DATABASE)
    assert copy.deepcopy(DATABASE)["copy_ppg"] == OTHER
    assert "copy_ppg" not in dataclasses.replace(DATABASE, knobs=(LISTED,))
    with pytest.raises(dataclasses.FrozenInstanceError):
        DATABASE.tuner_version = "2"  # type: ignore[misc]
