"""Which types TensorRT is offered, as its versions have them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from smart_tuner.backends.tensorrt import api
from smart_tuner.backends.tensorrt.builder import make_builder
from smart_tuner.backends.tensorrt.logger import make_log
from smart_tuner.backends.tensorrt.precision import allow_integers
from smart_tuner.engine.build import BuildRequest
from smart_tuner.precision.support import FP16, INT8
from tests.fake_tensorrt.scenario import Scenario

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fake_tensorrt.conftest import Install

OLD = Scenario(version="10.3.0", has_precision_flags=True)


def test_a_strongly_typed_network_says_its_types_itself(install: Install) -> None:
    support = install(Scenario()).precisions({})
    assert [value for value, reason in support.values.items() if not reason] == [INT8, FP16]
    assert support.scheme.activations == "int8"
    assert not support.scheme.stored_weights


def test_where_types_are_hints_only_pairs_of_integers_are_binding(install: Install) -> None:
    support = install(OLD).precisions({})
    assert set(support.values) == {INT8}
    assert "weakly typed" in support.where
    assert set(install(Scenario()).precisions({"flag:fp16": "on"}).values) == {INT8}


def test_integers_are_allowed_where_a_flag_forbids_them(install: Install, model: Path) -> None:
    sdk = install(OLD)._find_sdk()
    _, config = make_builder(sdk, make_log(sdk))
    flag = api.member(sdk.module.BuilderFlag, "INT8")
    assert flag is not None
    plain = BuildRequest(model)
    allow_integers(sdk, config, plain, is_strongly_typed=False)
    assert not config.get_flag(flag)
    lowered = replace(plain, precision=model.parent)
    allow_integers(sdk, config, lowered, is_strongly_typed=True)
    assert not config.get_flag(flag)
    allow_integers(sdk, config, lowered, is_strongly_typed=False)
    assert config.get_flag(flag)
