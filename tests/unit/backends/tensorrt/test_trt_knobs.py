"""Knobs of NVIDIA's own TensorRT-RTX, which can be asked without a GPU, and of fake versions."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import pytest

from smart_tuner.backends.tensorrt.builder_knobs import (
    PREFIXES,
    apply_builder_knobs,
    builder_knobs,
    is_builder_knob,
    wants_weak_types,
)
from smart_tuner.backends.tensorrt.knobs import _say_once, knob_database
from smart_tuner.backends.tensorrt.route_knobs import route_knobs
from smart_tuner.backends.tensorrt.sdk import TENSORRT_RTX, Sdk, load_sdk
from smart_tuner.backends.tensorrt.survey import examine
from smart_tuner.errors import NotApplied
from smart_tuner.knobs.read import bundled_database, database_digest
from smart_tuner.model.spec import ModelSpec, TensorSpec
from tests.fake_tensorrt.scenario import VARIABLE, Scenario
from tests.fake_tensorrt.sdk import make_sdk

if TYPE_CHECKING:
    from pathlib import Path

    from smart_tuner.knobs.database import KnobDatabase

ROUTED = Scenario()
OLD = Scenario(version="8.6.0", routes=None, has_precision_flags=True)


def database(scenario: Scenario) -> KnobDatabase:
    sdk = make_sdk(scenario)
    return examine(sdk.module, str(sdk)).database


@pytest.fixture(scope="module")
def rtx() -> Sdk:
    pytest.importorskip("tensorrt_rtx_bindings", reason="TensorRT-RTX is not installed")
    return load_sdk(TENSORRT_RTX)


class TestRealSdk:
    def test_every_builder_knob_can_be_set_to_every_value_that_is_offered(self, rtx: Sdk) -> None:
        found = knob_database(rtx)
        assert len(found) >= 10
        for knob in found:
            assert is_builder_knob(knob.name)
            for value in knob.choices:
                builder = rtx.module.Builder(silent(rtx))
                apply_builder_knobs(rtx, builder.create_builder_config(), {knob.name: value})

    def test_values_that_do_not_read_back_are_not_offered(self, rtx: Sdk) -> None:
        # The compiler takes 6 and more for 5, without a word.
        levels = knob_database(rtx)["builder:optimization_level"]
        assert levels.choices == ("3", "0", "1", "2", "4", "5")
        config = rtx.module.Builder(silent(rtx)).create_builder_config()
        with pytest.raises(NotApplied, match=r"optimization_level=7: it reads back as 5"):
            apply_builder_knobs(rtx, config, {"builder:optimization_level": "7"})

    def test_there_are_no_build_routes_and_no_precision_flags(self, rtx: Sdk) -> None:
        config = rtx.module.Builder(silent(rtx)).create_builder_config()
        assert route_knobs(config) is None
        found = examine(rtx.module, str(rtx))
        (note,) = found.notes
        assert note.startswith("this installation lists no build routes (TensorRT-RTX")
        assert {knob.source for knob in found.database} == {"builder"}
        assert found.database.tuner_version == str(rtx)
        assert "flag:tf32" in found.database
        assert "flag:fp16" not in found.database

    def test_the_child_process_finds_what_this_process_finds(self, rtx: Sdk) -> None:
        assert knob_database(rtx) == examine(rtx.module, str(rtx)).database

    def test_what_the_version_lacks_is_said_once(
        self, rtx: Sdk, caplog: pytest.LogCaptureFixture
    ) -> None:
        _say_once.cache_clear()
        knob_database(rtx)
        knob_database(rtx)
        assert [record.message.partition(" (")[0] for record in caplog.records] == [
            f"{rtx}: this installation lists no build routes"
        ]


def loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def silent(sdk: Sdk) -> object:
    return type("Silent", (sdk.module.ILogger,), {"log": lambda *_: None})()


class TestBothSources:
    def test_route_knobs_come_first_and_are_those_of_the_list(self) -> None:
        found = database(ROUTED)
        assert [knob.name for knob in found][:209] == [knob.name for knob in bundled_database()]
        assert {knob.source for knob in found.knobs[:209]} == {"build route"}
        assert {knob.source for knob in found.knobs[209:]} == {"builder"}
        assert found.tuner_version == "2.19.45, tensorrt 11.1.0.106"

    def test_open_knobs_have_the_values_of_their_help(self) -> None:
        assert database(ROUTED)["kgen:topk_algo"].values == ("16", "32", "64")

    def test_builder_knobs_of_any_version_never_clash_with_route_knobs(self) -> None:
        assert not [knob.name for knob in bundled_database() if knob.name.startswith(PREFIXES)]

    def test_every_builder_knob_has_a_sentence(self) -> None:
        for scenario in (ROUTED, OLD):
            for knob in database(scenario):
                if knob.source == "builder":
                    assert knob.help.endswith(".")

    def test_defaults_are_read_off_a_fresh_configuration(self) -> None:
        found = database(ROUTED)
        defaults = {knob.name: knob.default for knob in found.knobs[209:]}
        assert defaults["builder:optimization_level"] == "3"
        assert defaults["builder:max_aux_streams"] == "auto"
        assert defaults["builder:workspace_mib"] == "auto"
        assert defaults["flag:tf32"] == "on"
        assert defaults["flag:sparse_weights"] == "off"


class TestVersions:
    def test_an_old_version_has_precision_flags_and_neither_routes_nor_tiling(self) -> None:
        found = database(OLD)
        assert {"flag:fp16", "flag:int8"} <= {knob.name for knob in found}
        assert "builder:tiling_optimization_level" not in found
        assert found.tuner_version == "tensorrt 8.6.0"
        assert examine(make_sdk(OLD).module, "tensorrt 8.6.0").notes == ()

    def test_only_a_precision_flag_that_is_on_asks_for_weak_types(self) -> None:
        assert wants_weak_types({"flag:tf32": "on", "flag:fp16": "on"})
        assert not wants_weak_types({"flag:tf32": "on", "flag:fp16": "off"})

    @pytest.mark.parametrize(
        ("operators", "idle"),
        [
            ({"Conv": 3}, "no QuantizeLinear or DequantizeLinear in this model"),
            ({"Conv": 3, "QuantizeLinear": 4}, ""),
        ],
    )
    def test_int8_is_idle_on_a_model_without_scales(
        self,
        operators: dict[str, int],
        idle: str,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setenv(VARIABLE, str(OLD.write(tmp_path / "scenario.json")))
        side = (TensorSpec("x", "float32", (1,)),)
        model = ModelSpec(
            tmp_path, "0" * 64, 1, side, side, ir_version=8, opsets={"": 13}, operators=operators
        )
        found = knob_database(make_sdk(OLD), model)
        assert found["flag:int8"].idle == idle
        assert found["flag:fp16"].idle == ""
        assert database_digest(found) == database_digest(knob_database(make_sdk(OLD)))

    def test_a_source_of_kernels_is_idle_where_its_library_is_missing(self) -> None:
        found = database(OLD)
        assert found["tactic_source:jit_convolutions"].idle == ""
        for name, library in (("cublas", "libcublas"), ("cudnn", "libcudnn")):
            is_there = any(loads(f"{library}.so.{major}") for major in range(8, 14))
            idle = "" if is_there else f"{library} does not load on this machine"
            assert found[f"tactic_source:{name}"].idle == idle

    def test_what_cannot_act_is_idle_on_every_model(self) -> None:
        idle = {knob.name for knob in database(ROUTED) if knob.idle}
        assert idle == {"flag:direct_io", "preview:aliased_plugin_io_10_03"}


def test_a_knob_that_is_set_to_its_default_is_left_alone() -> None:
    sdk = make_sdk(ROUTED)
    config = sdk.module.Builder(None).create_builder_config()
    before = {knob.name: knob.read(config) for knob in builder_knobs(sdk.module, config)}
    defaults = {knob.name: knob.default for knob in database(ROUTED) if knob.source == "builder"}
    apply_builder_knobs(sdk, config, defaults)
    assert before == {knob.name: knob.read(config) for knob in builder_knobs(sdk.module, config)}
