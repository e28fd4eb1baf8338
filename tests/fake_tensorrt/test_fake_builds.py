"""Single builds with the backend's own code over a fake SDK: what is refused, and how it is said."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from smart_tuner.engine.build import BuildRequest, Engine
from smart_tuner.errors import BuildError, NotApplied, RunError, UserInputError
from smart_tuner.model.load import load_model
from smart_tuner.route.build_route import BuildRoute
from smart_tuner.simulate.effects import ValueEffect
from smart_tuner.study.setup.base import read_base
from smart_tuner.testing.backend_contract import BackendContract
from tests.fake_tensorrt.scenario import Scenario

if TYPE_CHECKING:
    from smart_tuner.engine.backend import Tensors
    from smart_tuner.model.spec import ModelSpec
    from tests.fake_tensorrt.backend import FakeTensorRtBackend
    from tests.fake_tensorrt.conftest import Install

ROUTE = {"copy_ppg": "off", "kgen:tiling": "0"}
OLD = Scenario(version="10.13.3.9", routes=None)


def build(
    backend: FakeTensorRtBackend,
    model: Path,
    folder: Path,
    route: dict[str, str] | None = None,
    base: dict[str, str] | None = None,
) -> Engine:
    """Build one engine in a folder of its own."""
    workdir = folder / f"engine-{len(list(folder.glob('engine-*')))}"
    workdir.mkdir()
    settings = tuple(sorted((route or {}).items()))
    request = BuildRequest(model, BuildRoute(settings), base or {}, ({"x": (1, 16)},))
    return backend.build(request, workdir)


class TestContract(BackendContract):
    @pytest.fixture
    def backend(self, install: Install) -> FakeTensorRtBackend:
        return install(Scenario(effects=(ValueEffect("copy_ppg", "off", log_latency=-0.1),)))

    @pytest.fixture
    def model(self, model: Path) -> ModelSpec:
        return load_model(model)

    @pytest.fixture
    def inputs(self) -> Tensors:
        return {"x": np.linspace(-1, 1, 16, dtype=np.float32).reshape(1, 16)}


def test_a_route_is_set_and_confirmed(install: Install, model: Path, tmp_path: Path) -> None:
    effects = tuple(ValueEffect(*setting, log_latency=-0.1) for setting in ROUTE.items())
    backend = install(Scenario(effects=effects))
    plain, routed = build(backend, model, tmp_path), build(backend, model, tmp_path, ROUTE)
    assert plain.fingerprint != routed.fingerprint
    assert routed.size_bytes == len(routed.path.read_bytes())


def test_a_route_without_effect_gives_the_same_fingerprint(
    install: Install, model: Path, tmp_path: Path
) -> None:
    backend = install(Scenario())
    plain, routed = build(backend, model, tmp_path), build(backend, model, tmp_path, ROUTE)
    assert plain.fingerprint == routed.fingerprint


@pytest.mark.parametrize(
    ("scenario", "message"),
    [
        (
            Scenario(rejected=("-copy_ppg=off",)),
            r"rejected the route -copy_ppg=off -kgen:tiling=0: it reads back empty; it said: API",
        ),
        (
            Scenario(overridden=("-kgen:tiling=0",)),
            r"overrode kgen:tiling=0: the route reads back as 2$",
        ),
        (
            Scenario(confirms=False),
            r"did not confirm the route: its log has no line \[TuningBuildRoute\]$",
        ),
        (
            Scenario().without_knob("copy_ppg", "11.4.0.106"),
            r"knob copy_ppg is not known to tuner 2\.20\.0; Did you mean copy_ppg_\w+",
        ),
        (Scenario(routes=""), r"-copy_ppg cannot be set: this installation lists no build routes"),
        (OLD, r"tensorrt 10\.13\.3\.9 has no build routes, TensorRT 11\.1 and newer have them"),
    ],
    ids=["rejected", "overridden", "unconfirmed", "vanished", "empty", "too old"],
)
def test_a_route_that_did_not_take_is_not_applied_and_says_why(
    install: Install, model: Path, tmp_path: Path, scenario: Scenario, message: str
) -> None:
    with pytest.raises(NotApplied, match=message) as raised:
        build(install(scenario), model, tmp_path, ROUTE)
    assert "\n" not in str(raised.value)


def test_a_base_may_hold_route_knobs_and_a_route_goes_on_top(
    install: Install, model: Path, tmp_path: Path
) -> None:
    backend = install(Scenario(rejected=("-copy_ppg=off",)))
    with pytest.raises(NotApplied, match=r"-copy_ppg=off -kgen:tiling=0"):
        build(backend, model, tmp_path, {"kgen:tiling": "0"}, {"copy_ppg": "off"})
    build(backend, model, tmp_path, {"copy_ppg": "on"}, {"copy_ppg": "off"})


def test_builder_knobs_of_base_and_route_reach_the_configuration(
    install: Install, model: Path, tmp_path: Path
) -> None:
    effects = (
        ValueEffect("builder:optimization_level", "5", log_latency=-0.1),
        ValueEffect("flag:tf32", "off", log_latency=0.1),
    )
    backend = install(Scenario(effects=effects))
    both = {"builder:optimization_level": "5", "flag:tf32": "off"}
    plain = build(backend, model, tmp_path)
    mixed = build(
        backend, model, tmp_path, {"flag:tf32": "off"}, {"builder:optimization_level": "5"}
    )
    assert mixed.fingerprint == build(backend, model, tmp_path, both).fingerprint
    back = build(backend, model, tmp_path, {"flag:tf32": "on"}, {"flag:tf32": "off"})
    assert back.fingerprint == plain.fingerprint != mixed.fingerprint


def test_a_builder_knob_that_reads_back_otherwise_is_not_applied(
    install: Install, model: Path, tmp_path: Path
) -> None:
    message = r"did not take builder:optimization_level=9: it reads back as 5"
    with pytest.raises(NotApplied, match=message):
        build(install(Scenario()), model, tmp_path, {"builder:optimization_level": "9"})


@pytest.mark.parametrize(
    ("base", "message"),
    [
        ({"flag:fp16": "on"}, r"Unknown knob: flag:fp16 \(tensorrt 11\.1\.0\.106\)"),
        ({"flag:tf32": "maybe"}, r"flag:tf32=maybe: it takes off, on\."),
        ({"builder:max_aux_streams": "few"}, r"takes auto or a whole number"),
        ({"flag:tf32": "auto"}, r"flag:tf32=auto: it takes off, on\."),
    ],
)
def test_a_wrong_builder_setting_of_a_base_is_wrong_use(
    install: Install, model: Path, tmp_path: Path, base: dict[str, str], message: str
) -> None:
    with pytest.raises(UserInputError, match=message):
        build(install(Scenario()), model, tmp_path, base=base)


def test_precision_flags_work_where_the_version_has_them(
    install: Install, model: Path, tmp_path: Path
) -> None:
    effects = (ValueEffect("flag:fp16", "on", log_latency=-0.3, loss=1e-3),)
    old = Scenario(effects, "8.6.0", routes=None, has_precision_flags=True)
    backend = install(old)
    plain = build(backend, model, tmp_path)
    half = build(backend, model, tmp_path, {"flag:fp16": "on"})
    assert plain.fingerprint != half.fingerprint


def test_an_operator_that_the_compiler_lacks_is_named_with_its_node(
    install: Install, tmp_path: Path, odd_model: Path
) -> None:
    with pytest.raises(BuildError, match=r"operator Odd \(node 'odd_1'\) is not known.*plugins"):
        build(install(Scenario()), odd_model, tmp_path)


def test_a_build_starts_from_a_copy_of_a_timing_cache_and_leaves_it_alone(
    install: Install, model: Path, tmp_path: Path
) -> None:
    backend = install(Scenario())
    first = build(backend, model, tmp_path)
    assert first.timing_cache is not None
    before = first.timing_cache.read_bytes()
    workdir = tmp_path / "seeded"
    workdir.mkdir()
    request = BuildRequest(model, timing_cache=first.timing_cache)
    seeded = backend.build(request, workdir)
    assert first.timing_cache.read_bytes() == before
    assert seeded.timing_cache != first.timing_cache
    assert seeded.notes == ()


@pytest.mark.parametrize("leaks", [False, True])
def test_the_keys_of_a_timing_cache_tell_whether_routes_share_timings(
    install: Install, model: Path, tmp_path: Path, leaks: bool
) -> None:
    backend = install(Scenario(timings_leak=leaks))
    first = build(backend, model, tmp_path)
    assert first.timing_cache is not None
    workdir = tmp_path / "seeded"
    workdir.mkdir()
    route = BuildRoute((("copy_ppg", "off"),))
    seeded = backend.build(BuildRequest(model, route, timing_cache=first.timing_cache), workdir)
    assert seeded.timing_cache is not None
    before = backend.timing_cache_keys(first.timing_cache)
    after = backend.timing_cache_keys(seeded.timing_cache)
    assert before is not None
    assert after is not None
    assert len(after - before) == (0 if leaks else 1)


def test_a_timing_cache_of_another_version_is_kept_aside_and_said(
    install: Install, model: Path, tmp_path: Path
) -> None:
    first = build(install(OLD), model, tmp_path)
    backend = install(Scenario())
    workdir = tmp_path / "newer"
    workdir.mkdir()
    built = backend.build(BuildRequest(model, timing_cache=first.timing_cache), workdir)
    (note,) = built.notes
    assert re.match(r"timing cache timing\.cache was not used \(it is of another version", note)
    assert (workdir / "timing.cache.rejected").is_file()
    assert built.request.timing_cache is None, "it was built without"


def test_an_engine_of_another_version_is_refused_with_both_named(
    install: Install, model: Path, tmp_path: Path
) -> None:
    built = build(install(OLD), model, tmp_path)
    with pytest.raises(
        RunError, match=r"built with tensorrt 10\.13\.3\.9, tensorrt 11\.1\.0\.106"
    ):
        install(Scenario()).load(built)


def test_the_base_that_the_project_ships_is_one_that_the_backend_takes(
    install: Install, model: Path, tmp_path: Path
) -> None:
    base = read_base(Path(__file__).parents[2] / "configs" / "base-tensorrt.toml")
    engine = install(Scenario()).build(
        BuildRequest(model, base=base, shapes=({"x": (1, 16)},)), tmp_path
    )
    assert engine.request.base["launch"] == "graph"
    assert engine.request.base["flag:tf32"] == "on"
