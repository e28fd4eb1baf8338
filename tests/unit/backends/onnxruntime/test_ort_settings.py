from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_tuner.backends.onnxruntime.cuda_options import CUDA_OPTION_BY_NAME, cuda_knobs
from smart_tuner.backends.onnxruntime.resolve import reference_settings, resolve_settings
from smart_tuner.backends.onnxruntime.session import session_options
from smart_tuner.backends.onnxruntime.settings import SessionSettings, effects
from smart_tuner.devices.cpu import cpu_quota
from smart_tuner.errors import EnvironmentNotFit, UserInputError
from smart_tuner.route.build_route import BuildRoute

if TYPE_CHECKING:
    from pathlib import Path

    from smart_tuner.backends.onnxruntime.catalogue import Catalogue


def resolve(catalogue: Catalogue, **values: str) -> SessionSettings:
    return resolve_settings(
        {name.replace("__", ":"): value for name, value in values.items()}, BuildRoute(), catalogue
    )


def test_the_route_wins_over_the_base(catalogue: Catalogue) -> None:
    route = BuildRoute((("execution_mode", "sequential"), ("optimizer:ConstantFolding", "off")))
    settings = resolve_settings({"execution_mode": "parallel"}, route, catalogue)
    assert settings.execution_mode == "sequential"
    assert settings.disabled_optimizers == ("ConstantFolding",)


def test_a_default_is_no_setting(catalogue: Catalogue) -> None:
    base = {
        "session:disable_prepacking": "off",
        "session:dynamic_block_base": "auto",
        "rule:ConvBNFusion": "on",
        "threads:intra": "auto",
    }
    assert resolve_settings(base, BuildRoute(), catalogue) == SessionSettings()


@pytest.mark.parametrize(
    ("name", "value", "named"),
    [
        ("optimizer:ConstantFoldin", "off", "optimizer:ConstantFolding"),
        ("rule:NoSuchRule", "off", "Unknown knob"),
        ("sesion:disable_prepacking", "on", "session:disable_prepacking"),
        ("execution_mode", "both", "sequential, parallel"),
        ("session:disable_prepacking", "1", "off, on"),
        ("session:dynamic_block_base", "-1", "auto"),
        ("provider", "tpu", "cpu, cuda"),
        ("custom_op_library", "/no/such/library.so", "no file"),
        ("free_dimension_override:n", "x", "whole number"),
        ("free_dimension_override:", "4", "Unknown knob"),
        ("threads:intra", "0", "CPU quota"),
        ("threads:inter", "1000000", "CPU quota"),
        ("cuda:use_tf32", "0", "--backend onnxruntime-cuda"),
        ("io", "device", "--backend onnxruntime-cuda"),
    ],
)
def test_wrong_names_and_values_are_named(
    catalogue: Catalogue, name: str, value: str, named: str
) -> None:
    with pytest.raises(UserInputError, match=named) as caught:
        resolve_settings({name: value}, BuildRoute(), catalogue)
    assert "\n" not in str(caught.value)


def test_pass_through_settings_of_a_base(catalogue: Catalogue, tmp_path: Path) -> None:
    library = tmp_path / "library.so"
    library.touch()
    base = {"custom_op_library": str(library), "free_dimension_override:batch": "8"}
    settings = resolve_settings(base, BuildRoute(), catalogue)
    assert settings.custom_op_library == str(library)
    assert settings.free_dimensions == (("batch", 8),)
    assert reference_settings(settings).free_dimensions == (("batch", 8),)


def test_an_open_integer_may_lie_outside_the_list(catalogue: Catalogue) -> None:
    settings = resolve(catalogue, session__dynamic_block_base="3")
    assert settings.config_entries == (("session.dynamic_block_base", "3"),)


def test_cuda_options_reach_the_provider(catalogue: Catalogue) -> None:
    base = {"provider": "cuda", "cuda:use_tf32": "0", "cuda:prefer_nhwc": "1"}
    settings = resolve_settings(base, BuildRoute(), catalogue)
    assert settings.provider == "cuda"
    assert settings.provider_options == (("prefer_nhwc", "1"), ("use_tf32", "0"))
    with pytest.raises(UserInputError, match="EXHAUSTIVE"):
        resolve_settings(
            {"provider": "cuda", "cuda:cudnn_conv_algo_search": "best"}, BuildRoute(), catalogue
        )


def test_every_cuda_option_is_a_knob() -> None:
    knobs = cuda_knobs()
    assert [knob.name for knob in knobs] == list(CUDA_OPTION_BY_NAME)
    assert all(knob.default in knob.values and knob.help for knob in knobs)


def test_options_of_the_provider_that_change_nothing_do_not_count() -> None:
    def effect(**options: str) -> object:
        given = SessionSettings(provider="cuda", provider_options=tuple(options.items()))
        return effects(given, graph_is_known=True)

    assert effect(use_tf32="1", tunable_op_tuning_enable="1") == effect()
    assert effect(use_tf32="0") != effect()
    assert effect(tunable_op_enable="1", tunable_op_tuning_enable="1") != effect(
        tunable_op_enable="1"
    )


def test_settings_of_an_earlier_version_are_read() -> None:
    kept = SessionSettings().to_json()
    del kept["io"]
    assert SessionSettings.from_json(kept) == SessionSettings()


def test_every_option_reads_back(catalogue: Catalogue) -> None:
    for option in catalogue.options:
        for value in option.values:
            settings = resolve_settings({option.name: value}, BuildRoute(), catalogue)
            session_options(settings)


@given(
    st.builds(
        SessionSettings,
        intra_threads=st.integers(0, 64),
        execution_mode=st.sampled_from(["sequential", "parallel"]),
        disabled_optimizers=st.lists(st.text()).map(tuple),
        config_entries=st.lists(st.tuples(st.text(), st.text())).map(tuple),
        free_dimensions=st.lists(st.tuples(st.text(), st.integers(0, 9))).map(tuple),
    )
)
def test_settings_survive_json(settings: SessionSettings) -> None:
    assert SessionSettings.from_json(json.loads(json.dumps(settings.to_json()))) == settings


@pytest.mark.parametrize(
    "change", [{"provider": "tpu"}, {"more": 1}, {"graph_optimization_level": "most"}]
)
def test_foreign_settings_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="session settings"):
        SessionSettings.from_json({**SessionSettings().to_json(), **change})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({}, {"threads:inter": "1"}),
        ({}, {"session:inter_op.allow_spinning": "off"}),
        ({}, {"session:prepack.enable_parallel": "on"}),
        ({}, {"optimizer:ReshapeFusion": "off", "graph_optimization_level": "basic"}),
        ({"threads:intra": "1"}, {"threads:intra": "1", "session:intra_op.allow_spinning": "off"}),
        (
            {"execution_mode": "parallel"},
            {"execution_mode": "parallel", "session:enable_mem_pattern": "off"},
        ),
        (
            {"session:intra_op.allow_spinning": "off"},
            {"session:intra_op.allow_spinning": "off", "session:intra_op.spin_duration_us": "100"},
        ),
    ],
)
def test_settings_that_cannot_act_have_no_effect(
    catalogue: Catalogue, one: dict[str, str], other: dict[str, str]
) -> None:
    first, second = (
        effects(resolve_settings(base, BuildRoute(), catalogue), graph_is_known=True)
        for base in (one, other)
    )
    assert first == second


@pytest.mark.parametrize(
    "base",
    [
        {"threads:intra": "1"},
        {"execution_mode": "parallel"},
        {"session:enable_cpu_mem_arena": "off"},
        {"session:intra_op.allow_spinning": "off"},
        {"run:memory_arena_shrinkage": "on"},
        {"session:set_denormal_as_zero": "on"},
    ],
)
def test_settings_that_can_act_have_an_effect(catalogue: Catalogue, base: dict[str, str]) -> None:
    settings = resolve_settings(base, BuildRoute(), catalogue)
    default = effects(SessionSettings(), graph_is_known=True)
    assert effects(settings, graph_is_known=True) != default


def test_without_a_graph_every_setting_counts(catalogue: Catalogue) -> None:
    settings = resolve(catalogue, optimizer__ReshapeFusion="off")
    default = effects(SessionSettings(), graph_is_known=False)
    assert effects(settings, graph_is_known=False) != default


def test_threads_may_reach_the_quota(catalogue: Catalogue) -> None:
    quota = cpu_quota()
    assert resolve(catalogue, threads__intra=str(quota)).intra_threads == quota


def test_cuda_without_its_provider_says_what_to_install(
    catalogue: Catalogue, convolution: Path
) -> None:
    import onnxruntime

    from smart_tuner.backends.onnxruntime.session import open_session

    if "CUDAExecutionProvider" in onnxruntime.get_available_providers():
        pytest.skip("CUDA is available here")
    with pytest.raises(EnvironmentNotFit, match="onnxruntime-gpu"):
        open_session(convolution, resolve(catalogue, provider="cuda"))
